//! From where a run's Python would import. The interpreter itself is asked, through the wrappers and with the
//! flags of the run, in an empty folder; what is installed by reference in its folders of packages is read.
//! An environment inside the slot is only read: a candidate may have had a hand in it.

use super::commands::{Invocation, base_name, interpreter_of, programs};
use super::kept::{Answer, KeptAnswers, stamp_of};
use super::planned::{Lead, PlannedRun, entries, text_of};
use super::site::{Pointer, deciding_files, pointers, site_folders};
use crate::domain::value::digest::Sha256;
use crate::error::{Failure, Result};
use crate::process::{self, Command, End};
use crate::verifier::{Halt, Host, tools};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long an interpreter may take to answer.
const ASK_TIME: Duration = Duration::from_secs(10);
/// Stands before the answer, since a start-up hook may print as well.
const MARK: &str = "git-tender-asks:";
/// Files of a project that say which interpreter a version manager starts.
const VERSIONS: [&str; 2] = [".python-version", ".tool-versions"];
/// Programs of Python's own whose file need not say so (a shim).
const OF_PYTHON: &[&str] =
    &["pytest", "py.test", "coverage", "nosetests", "nose2", "stestr", "behave", "django-admin"];
/// Runners that make environments of their own, below these folders.
const OWN_ENVIRONMENTS: &[(&str, &str)] = &[("tox", ".tox"), ("nox", ".nox")];

const CURE: &str = "install it there without `-e` (`pip install .`), or let the verifier's `setup` make an \
                    environment in the slot's scratch, or begin the command with \
                    `env PYTHONPATH=src` and an interpreter that has it not installed";

/// What an interpreter says of itself: its search path, what its finders hold, what it loaded to start.
const QUESTION: &str = r"
import sys
def paths(value, depth, found):
    if len(found) > 4000 or depth > 5: return
    if isinstance(value, str):
        if value[:1] == '/': found.append(value)
    elif isinstance(value, dict):
        for key in list(value): paths(key, depth + 1, found); paths(value[key], depth + 1, found)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in list(value): paths(item, depth + 1, found)
    elif hasattr(value, '__fspath__'): paths(str(value), depth + 1, found)
    elif hasattr(value, '__dict__') and not callable(value) and type(value).__name__ != 'module':
        paths(dict(vars(value)), depth + 1, found)
finders = []
for finder in list(sys.meta_path):
    name = getattr(finder, '__module__', None) or ''
    if name.startswith('_frozen_importlib') or name == '': continue
    try: paths(dict(vars(finder)), 0, finders)
    except Exception: pass
    module = sys.modules.get(name)
    for attribute in ('MAPPING', 'NAMESPACES'): paths(getattr(module, attribute, None), 0, finders)
loaded = [m.__file__ for m in list(sys.modules.values()) if isinstance(getattr(m, '__file__', None), str)]
import json
print('\n' + 'git-tender-asks:' + json.dumps({'path': [p for p in sys.path if isinstance(p, str)], 'finders': finders, 'loaded': loaded}))
";

#[derive(Deserialize)]
struct Said {
    path: Vec<PathBuf>,
    finders: Vec<PathBuf>,
    loaded: Vec<PathBuf>,
}

/// Who asks interpreters, and where.
pub(super) struct Asker<'a> {
    pub(super) host: &'a Host<'a>,
    /// A folder for temporary files of the run.
    pub(super) tmp: &'a Path,
    /// What the manifest links into the run's home.
    pub(super) read: &'a [String],
}

/// An interpreter as the run would start it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Interpreter {
    /// Wrappers, program, flags.
    argv: Vec<String>,
    file: PathBuf,
}

pub(super) fn leads_of_interpreters(run: &PlannedRun<'_>, asker: &Asker<'_>) -> Result<Vec<Lead>> {
    let programs = programs(run);
    let mut interpreters = BTreeSet::new();
    let mut of_slot = BTreeSet::new();
    for invocation in &programs {
        let own = OWN_ENVIRONMENTS.iter().find(|(name, _)| base_name(&invocation.program) == *name);
        if let Some((_, folder)) = own {
            of_slot.extend(entries(&run.slot.join(folder)));
            continue;
        }
        for interpreter in interpreters_of(run, invocation) {
            let environment = interpreter.file.parent().and_then(Path::parent).unwrap_or(run.slot);
            if interpreter.file.starts_with(run.slot) {
                of_slot.insert(environment.to_path_buf());
            } else {
                interpreters.insert(interpreter);
            }
        }
    }
    let mut leads: Vec<Lead> = Vec::new();
    for site in of_slot.iter().flat_map(|environment| site_folders(environment)) {
        leads.extend(pointers(&site).into_iter().map(|pointer| lead_of_pointer(&pointer)));
    }
    for interpreter in &interpreters {
        leads.extend(asker.leads_of(run, interpreter)?);
    }
    Ok(leads)
}

/// The interpreters that a program is, or that run it.
fn interpreters_of(run: &PlannedRun<'_>, invocation: &Invocation) -> Vec<Interpreter> {
    if !may_be_python(run, invocation) {
        return Vec::new();
    }
    if invocation.in_project {
        let named = ["UV_PROJECT_ENVIRONMENT", "VIRTUAL_ENV"].into_iter().filter_map(|name| run.var(name));
        let folders = named.map(|folder| run.slot.join(folder)).chain([run.slot.join(".venv")]);
        let pythons = folders.map(|folder| folder.join("bin/python"));
        let found: Vec<_> =
            pythons.filter(|file| file.exists()).map(|file| interpreter(&[], &file, &[])).collect();
        if !found.is_empty() {
            return found;
        }
    }
    let wrappers: &[String] = if invocation.in_project { &[] } else { &invocation.wrappers };
    let Some(file) = run.program(&invocation.program) else { return Vec::new() };
    if is_python(&invocation.program) {
        return vec![interpreter(wrappers, &file, &flags(&invocation.arguments))];
    }
    match interpreter_of(&file) {
        Some(words) if is_python(&words[0]) => {
            let found = run.program(&words[0]);
            found.map(|python| interpreter(wrappers, &python, &flags(&words[1..]))).into_iter().collect()
        }
        _ if OF_PYTHON.contains(&base_name(&invocation.program)) => {
            let beside = ["python3", "python"].map(|name| file.with_file_name(name));
            let found = beside.into_iter().find(|file| file.exists()).or_else(|| run.program("python3"));
            found.map(|python| interpreter(wrappers, &python, &[])).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// False for what surely is no program of Python's, so that its file need not be opened: words of a script.
fn may_be_python(run: &PlannedRun<'_>, invocation: &Invocation) -> bool {
    let name = base_name(&invocation.program);
    let is_command = run.argv.contains(&invocation.program);
    is_command || is_python(name) || OF_PYTHON.contains(&name)
}

fn interpreter(wrappers: &[String], file: &Path, flags: &[String]) -> Interpreter {
    let program = file.to_string_lossy().into_owned();
    Interpreter { argv: [wrappers, &[program], flags].concat(), file: file.to_path_buf() }
}

fn is_python(program: &str) -> bool {
    let name = base_name(program);
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

/// Those of an interpreter's flags that decide where it imports from.
fn flags(arguments: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut skip = false;
    for argument in arguments {
        if std::mem::take(&mut skip) {
            continue;
        }
        let Some(letters) = argument.strip_prefix('-').filter(|rest| !rest.is_empty()) else { break };
        if letters.starts_with('-') {
            continue;
        }
        let end = letters.find(['c', 'm', 'W', 'X']);
        let plain = &letters[..end.unwrap_or(letters.len())];
        found.extend(plain.chars().filter(|c| "IEsSP".contains(*c)).map(|c| format!("-{c}")));
        match end.map(|end| (&letters[end..=end], end + 1 == letters.len())) {
            Some(("c" | "m", _)) => break,
            Some((_, is_last)) => skip = is_last,
            None => {}
        }
    }
    found
}

fn lead_of_pointer(pointer: &Pointer) -> Lead {
    Lead::new(pointer.file.display().to_string(), &pointer.to, CURE)
}

impl Asker<'_> {
    /// What an interpreter's imports lead to, as it said when it was asked last, unless something changed.
    fn leads_of(&self, run: &PlannedRun<'_>, interpreter: &Interpreter) -> Result<Vec<Lead>> {
        let versions = VERSIONS.map(|name| text_of(&run.slot.join(name)));
        let decides = |name: &str| name == "PATH" || name == "VIRTUAL_ENV" || name.contains("PY");
        let env: Vec<_> = run.env.iter().filter(|(name, _)| name.to_str().is_some_and(decides)).collect();
        let question = Sha256::of_json(&json!({
            "argv": interpreter.argv,
            "file": stamp_of(&interpreter.file),
            "env": format!("{env:?}"),
            "versions": versions,
            "read": self.read,
        }));
        let mut kept = KeptAnswers::open(&self.host.layout.root().join("cache"));
        let answer = match kept.get(&question) {
            Some(answer) => answer,
            None => {
                let Some(said) = self.ask(run, interpreter, &versions)? else { return Ok(Vec::new()) };
                let answer = answer_of(run, &said);
                kept.put(question, answer.clone());
                answer
            }
        };
        let name = interpreter.file.display();
        let from =
            |via: &String| if via.is_empty() { format!("the search path of {name}") } else { via.clone() };
        Ok(answer.places.iter().map(|(via, to)| Lead::new(from(via), to, CURE)).collect())
    }

    /// Asks an interpreter; nothing where it does not answer, since then the run will not get far either.
    fn ask(
        &self,
        run: &PlannedRun<'_>,
        interpreter: &Interpreter,
        versions: &[Option<String>],
    ) -> Result<Option<Said>> {
        let failed = |e: std::io::Error| Failure::io("make a directory in", self.tmp, &e);
        let folder = tempfile::Builder::new().prefix("ask-").tempdir_in(self.tmp).map_err(failed)?;
        for (name, text) in VERSIONS.iter().zip(versions) {
            if let Some(text) = text {
                crate::store::layout::write_private(&folder.path().join(name), text.as_bytes())?;
            }
        }
        let mut argv: Vec<OsString> = interpreter.argv.iter().map(OsString::from).collect();
        argv.extend(["-B".into(), "-c".into(), QUESTION.into()]);
        let mut command = Command::new(argv, folder.path());
        command.env = run.env.to_vec();
        command.timeout = ASK_TIME;
        command.output_cap = 4 << 20;
        command.secrets = tools::secrets(self.host);
        let unwanted = std::cell::RefCell::new(None);
        let finished = process::run(self.host.program, &command, &|_| {
            let halt = (self.host.watch)(0);
            let may_go_on = halt.is_none();
            unwanted.replace(halt);
            may_go_on
        })?;
        if let (End::Stopped, Some(Halt::Unwanted(failure))) = (&finished.end, unwanted.into_inner()) {
            return Err(failure);
        }
        let text = String::from_utf8_lossy(&finished.stdout.bytes);
        let said = text.lines().find_map(|line| serde_json::from_str::<Said>(line.strip_prefix(MARK)?).ok());
        Ok(said.map(|said| without_folder(said, folder.path())))
    }
}

/// Relative entries of the search path stand for the run's own folder, which here was the empty one.
fn without_folder(mut said: Said, folder: &Path) -> Said {
    said.path.retain(|path| path.is_absolute() && !path.starts_with(folder));
    said
}

/// The places that an answer names, as they are really called, and what would have to change for another.
fn answer_of(run: &PlannedRun<'_>, said: &Said) -> Answer {
    let mut answer = Answer::default();
    let real = |path: &PathBuf| path.canonicalize().ok().filter(|path| !path.starts_with(run.slot));
    let search: BTreeSet<PathBuf> = said.path.iter().filter_map(real).collect();
    let is_site = |path: &&PathBuf| path.ends_with("site-packages") || path.ends_with("dist-packages");
    for site in search.iter().filter(is_site) {
        let found = pointers(site);
        answer.places.extend(found.into_iter().map(|p| (p.file.display().to_string(), p.to)));
        answer.stamped.extend(deciding_files(site));
    }
    let bare = |path: PathBuf| (String::new(), path);
    answer.places.extend(search.iter().cloned().map(bare));
    answer.places.extend(said.finders.iter().filter_map(real).map(bare));
    let loaded: BTreeSet<PathBuf> = said.loaded.iter().filter_map(real).collect();
    answer.stamped.extend(loaded.iter().filter(|path| path.ends_with("sitecustomize.py")).cloned());
    answer.places.extend(loaded.into_iter().map(bare));
    answer.stamped.extend(search);
    answer
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_flags_before_the_program_are_kept() {
        for (line, wanted) in [
            ("-I -m pytest -s", "-I"),
            ("-BPm unittest", "-P"),
            ("-W error -sE t.py -S", "-s -E"),
            ("-Xdev -c pass", ""),
            ("--check-hash-based-pycs always -I", ""),
        ] {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(super::flags(&arguments).join(" "), wanted, "{line}");
        }
    }
}
