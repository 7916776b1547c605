//! Modules by which a change would stand before those that a Python finds elsewhere.
//!
//! A Python looks in the folder of its script first, or in the folder that it runs in, and only then where it
//! is installed: a new `json.py` beside the script that judges is what that script gets for `json`.

use super::command_line::{base_name, executed_paths, place_in_tree, unwrapped};
use crate::domain::value::repo_path::RepoPath;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The names of the standard library's modules, of all versions that are about.
const STANDARD: &str = "\
    _aix_support _android_support _asyncio _bisect _blake2 _bootsubprocess _bz2 _codecs_cn _codecs_hk \
    _codecs_iso2022 _codecs_jp _codecs_kr _codecs_tw _collections_abc _colorize _compat_pickle \
    _compression _contextvars _crypt _csv _ctypes _curses _curses_panel _datetime _dbm _decimal \
    _elementtree _frozen_importlib _frozen_importlib_external _gdbm _hashlib _heapq _interpchannels \
    _interpqueues _interpreters _ios_support _json _lsprof _lzma _markupbase _md5 _multibytecodec \
    _multiprocessing _opcode _opcode_metadata _osx_support _pickle _posixshmem _posixsubprocess \
    _py_abc _pydatetime _pydecimal _pyio _pylong _pyrepl _queue _random _sha1 _sha2 _sha256 _sha3 \
    _sha512 _sitebuiltins _socket _sqlite3 _ssl _statistics _strptime _struct _threading_local \
    _tokenize _uuid _weakrefset _zoneinfo abc aifc argparse array ast asynchat asyncio asyncore \
    audioop base64 bdb binascii binhex bisect bz2 cProfile calendar cgi cgitb chunk cmath cmd code \
    codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy \
    copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest \
    email encodings ensurepip enum fcntl filecmp fileinput fnmatch fractions ftplib functools \
    genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib \
    imghdr imp importlib inspect io ipaddress json keyword lib2to3 linecache locale logging lzma \
    mailbox mailcap math mimetypes mmap modulefinder msilib multiprocessing netrc nis nntplib ntpath \
    numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil \
    platform plistlib poplib posixpath pprint profile pstats pty py_compile pyclbr pydoc pydoc_data \
    pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select \
    selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 \
    sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau \
    symtable sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading timeit \
    tkinter token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest \
    urllib uu uuid venv warnings wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile \
    zipimport zlib zoneinfo";

static STANDARD_NAMES: LazyLock<BTreeSet<&str>> = LazyLock::new(|| STANDARD.split_whitespace().collect());

/// Where the Pythons of a verifier look first; `None` is the top of the tree.
#[derive(Debug, Default)]
pub(super) struct FirstFolders {
    folders: BTreeSet<Option<RepoPath>>,
    /// The modules that are started by their names.
    started: BTreeSet<String>,
}

impl FirstFolders {
    /// Adds where the Python of a command looks first, unless it is told not to.
    pub(super) fn add_command(&mut self, argv: &[String]) {
        let Some(started) = unwrapped(argv).filter(|started| is_python(&started.program)) else { return };
        for word in &started.wrappers {
            let folders = word.strip_prefix("PYTHONPATH=").into_iter().flat_map(|all| all.split(':'));
            let relative = folders.filter(|folder| !folder.starts_with('/'));
            self.folders.extend(relative.map(place_in_tree));
        }
        let is_safe = started
            .wrappers
            .iter()
            .any(|word| word.strip_prefix("PYTHONSAFEPATH=").is_some_and(|value| !value.is_empty()));
        let mut arguments = started.arguments.iter();
        while let Some(option) = arguments.next().and_then(|word| word.strip_prefix('-')) {
            let ends = option.find(['m', 'c']).filter(|_| !option.starts_with('-'));
            let letters = &option[..ends.unwrap_or(option.len())];
            if is_safe || (!option.starts_with('-') && letters.contains(['I', 'P'])) {
                return;
            }
            let Some(at) = ends else {
                if option.ends_with(['W', 'X']) {
                    arguments.next();
                }
                continue;
            };
            self.folders.insert(None);
            if option[at..].starts_with('m') {
                let rest = Some(&option[at + 1..]).filter(|rest| !rest.is_empty());
                let module = rest.or_else(|| arguments.next().map(String::as_str)).unwrap_or_default();
                self.started.insert(module.split('.').next().unwrap_or_default().to_owned());
            }
            return;
        }
        executed_paths(argv).iter().for_each(|script| self.add_script(script));
    }

    /// Adds the folder of a script that some Python is given.
    pub(super) fn add_script(&mut self, script: &RepoPath) {
        if script.file_name().ends_with(b".py") {
            self.folders.insert(script.parent());
        }
    }

    /// Adds the top of the tree where these words of a text start a module.
    pub(super) fn add_words(&mut self, words: &BTreeSet<String>) {
        if ["-m", "-c"].iter().any(|option| words.contains(*option))
            && words.iter().any(|word| is_python(word))
        {
            self.folders.insert(None);
        }
    }

    /// True where a new file or link of this path stands before a module that is found elsewhere.
    pub(super) fn have_shadow(&self, path: &RepoPath, is_link: bool) -> bool {
        self.folders.iter().any(|folder| {
            let rest = match folder {
                None => path.as_bytes(),
                Some(folder) => {
                    let beneath = path.as_bytes().strip_prefix(folder.as_bytes());
                    beneath.and_then(|rest| rest.strip_prefix(b"/")).unwrap_or_default()
                }
            };
            let rest = String::from_utf8_lossy(rest);
            let (name, within) =
                rest.split_once('/').map_or((&*rest, None), |(name, file)| (name, Some(file)));
            let stem = name.split('.').next().unwrap_or_default();
            let is_module = match within {
                Some(file) => name == stem && file.starts_with("__init__."),
                None => {
                    [".py", ".so", ".pyc"].iter().any(|end| name.ends_with(end)) || (is_link && name == stem)
                }
            };
            is_module && (STANDARD_NAMES.contains(stem) || self.started.contains(stem))
        })
    }
}

fn is_python(program: &str) -> bool {
    let name = base_name(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    ["python", "pypy"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_module_of_the_first_folder_shadows_another_one() {
        for (line, path, shadows) in [
            ("python3 -B tools/check.py", "tools/json.py", true),
            ("python3 -B tools/check.py", "tools/json/__init__.py", true),
            ("python3 -B tools/check.py", "tools/json/data.txt", false),
            ("python3 -B tools/check.py", "tools/other.py", false),
            ("python3 -B tools/check.py", "json.py", false),
            ("python3 -P tools/check.py", "tools/json.py", false),
            ("python3 -m unittest -q", "argparse.py", true),
            ("python3 -m unittest -q", "src/argparse.py", false),
            ("env PYTHONPATH=src:/x python3 -Bm unittest", "src/argparse.so", true),
            ("env PYTHONSAFEPATH=1 python3 -m unittest", "argparse.py", false),
            ("python3.12 -X dev -mmypy.api src", "mypy/__init__.py", true),
            ("python3 -W error -c pass", "re.py", true),
            ("python3 -Im unittest", "argparse.py", false),
            ("pytest -q", "argparse.py", false),
        ] {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let mut folders = FirstFolders::default();
            folders.add_command(&argv);
            let path = RepoPath::new(path).expect("a path");
            assert_eq!(folders.have_shadow(&path, false), shadows, "{line}: {path}");
        }
    }
}
