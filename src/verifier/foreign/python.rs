//! From where a run's Python would import. The interpreter itself is asked, through the wrappers and with the
//! flags of the run, in an empty folder; what is installed by reference in its folders of packages is read.
//! An environment inside the slot is only read: a candidate may have had a hand in it.

use super::commands::{interpreter_of, programs};
use super::kept::{ImportAnswer, stamp_of};
use super::planned::{Lead, LeadUse, ModulePlace, PlannedRun, entries, joined, module_or_file, text_of};
use super::site::{Pointer, deciding_files, pointers, site_folders};
use crate::domain::value::digest::Sha256;
use crate::error::{Failure, Result};
use crate::git::answers::Answers;
use crate::process::{self, Invocation, ProgramEnd};
use crate::store::layout::create_private_dir;
use crate::verifier::command_line::{StartedProgram, base_name};
use crate::verifier::{Host, RunHalt, tools};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::time::SystemTime;

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

const CURE: &str = "let the slot's own copy come first (begin the command with `env PYTHONPATH=src`, or for pytest \
                    set `pythonpath = [\"src\"]`), install it there without `-e` (`pip install .`), or let \
                    the verifier's `setup` make an environment in the slot's scratch";

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
first, last = [], []
found = first
for finder in list(sys.meta_path):
    name = getattr(finder, '__module__', None) or ''
    if getattr(finder, '__name__', None) == 'PathFinder': found = last
    if name.startswith('_frozen_importlib') or name == '': continue
    try: paths(dict(vars(finder)), 0, found)
    except Exception: pass
    module = sys.modules.get(name)
    for attribute in ('MAPPING', 'NAMESPACES'): paths(getattr(module, attribute, None), 0, found)
loaded = [m.__file__ for m in list(sys.modules.values()) if isinstance(getattr(m, '__file__', None), str)]
import json
print('\n' + 'git-tender-asks:' + json.dumps({'path': [p for p in sys.path if isinstance(p, str)], 'first': first, 'last': last, 'loaded': loaded}))
";

#[derive(Deserialize)]
struct SaidPaths {
    path: Vec<PathBuf>,
    first: Vec<PathBuf>,
    last: Vec<PathBuf>,
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
    /// Folders of the slot that the command puts before the search path.
    before: Vec<PathBuf>,
}

pub(super) fn leads_of_interpreters(run: &PlannedRun<'_>, asker: &Asker<'_>) -> Result<Vec<Lead>> {
    let programs = programs(run);
    let mut interpreters = BTreeSet::new();
    let mut of_slot = BTreeSet::new();
    for invocation in &programs {
        let own = OWN_ENVIRONMENTS.iter().find(|(name, _)| base_name(&invocation.program) == *name);
        if let Some((_, folder)) = own {
            of_slot.extend(
                entries(&run.slot.join(folder)).into_iter().map(|environment| (environment, Vec::new())),
            );
            continue;
        }
        for interpreter in interpreters_of(run, invocation) {
            let environment = interpreter.file.parent().and_then(Path::parent).unwrap_or(run.slot);
            if interpreter.file.starts_with(run.slot) {
                let named = named_folders(run, &invocation.wrappers);
                of_slot.insert((environment.to_path_buf(), [interpreter.before, named].concat()));
            } else {
                interpreters.insert(interpreter);
            }
        }
    }
    let mut leads: Vec<Lead> = Vec::new();
    for (environment, before) in &of_slot {
        for site in site_folders(environment) {
            let after = within(run, before);
            leads.extend(pointers(&site).iter().map(|pointer| lead_of_pointer(pointer, &after)));
        }
    }
    for interpreter in &interpreters {
        leads.extend(asker.leads_of(run, interpreter)?);
    }
    Ok(leads)
}

/// Those folders that lie in the slot.
fn within(run: &PlannedRun<'_>, folders: &[PathBuf]) -> Vec<PathBuf> {
    folders.iter().filter(|folder| folder.starts_with(run.slot)).cloned().collect()
}

/// The folders that `PYTHONPATH` names, also where a wrapper sets it.
fn named_folders(run: &PlannedRun<'_>, wrappers: &[String]) -> Vec<PathBuf> {
    let set = wrappers.iter().filter_map(|word| word.strip_prefix("PYTHONPATH=")).next_back();
    let value = set.or_else(|| run.var("PYTHONPATH").and_then(|value| value.to_str()));
    let entries = value.unwrap_or_default().split(':').filter(|entry| !entry.is_empty());
    entries.map(|entry| joined(run.slot, Path::new(entry))).collect()
}

/// The folders of the slot that this command puts before the search path.
fn folders_before(run: &PlannedRun<'_>, invocation: &StartedProgram) -> Vec<PathBuf> {
    let flags = flags(&invocation.arguments);
    let is_safe = flags.iter().any(|flag| flag == "-I" || flag == "-P")
        || run.var("PYTHONSAFEPATH").is_some()
        || invocation.wrappers.iter().any(|word| word.starts_with("PYTHONSAFEPATH="));
    let mut arguments = invocation.arguments.iter().skip_while(|argument| {
        argument.starts_with('-') && !ends_with_letter(argument, 'm') && !ends_with_letter(argument, 'c')
    });
    let (first, second) = (arguments.next(), arguments.next());
    let mut folders = Vec::new();
    let module = first.filter(|first| ends_with_letter(first, 'm')).and(second);
    if is_python(&invocation.program) && !is_safe {
        folders.extend(match first {
            Some(option) if option.starts_with('-') => Some(run.slot.to_path_buf()),
            Some(script) => joined(run.slot, Path::new(script)).parent().map(Path::to_path_buf),
            None => None,
        });
    }
    let program = module.map_or(base_name(&invocation.program), |name| name.as_str());
    if matches!(program, "pytest" | "py.test") {
        folders.splice(0..0, folders_of_pytest(run));
    }
    folders
}

fn ends_with_letter(option: &str, letter: char) -> bool {
    option.starts_with('-') && !option.starts_with("--") && option.ends_with(letter)
}

/// What pytest's own setting `pythonpath` puts first, from the first of its files that is there.
fn folders_of_pytest(run: &PlannedRun<'_>) -> Vec<PathBuf> {
    let of_toml = |name: &str| {
        let table: toml::Table = text_of(&run.slot.join(name))?.parse().ok()?;
        let value = table.get("tool")?.get("pytest")?.get("ini_options")?.get("pythonpath")?;
        let one = value.as_str().map(|text| text.split_whitespace().map(str::to_owned).collect());
        let many = value
            .as_array()
            .map(|all| all.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect());
        one.or(many)
    };
    let of_ini = |name: &str| {
        let text = text_of(&run.slot.join(name))?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix("pythonpath"))?;
        let value = line.trim_start().strip_prefix('=')?;
        Some(value.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    let ini = ["pytest.ini", ".pytest.ini"].into_iter().find(|name| run.slot.join(name).is_file());
    let found = match ini {
        Some(ini) => of_ini(ini),
        None => of_toml("pyproject.toml").or_else(|| of_ini("tox.ini")).or_else(|| of_ini("setup.cfg")),
    };
    found.unwrap_or_default().iter().map(|folder| joined(run.slot, Path::new(folder))).collect()
}

/// The interpreters that a program is, or that run it.
fn interpreters_of(run: &PlannedRun<'_>, invocation: &StartedProgram) -> Vec<Interpreter> {
    if !may_be_python(run, invocation) {
        return Vec::new();
    }
    let before = folders_before(run, invocation);
    if invocation.in_project {
        let named = ["UV_PROJECT_ENVIRONMENT", "VIRTUAL_ENV"].into_iter().filter_map(|name| run.var(name));
        let folders = named.map(|folder| run.slot.join(folder)).chain([run.slot.join(".venv")]);
        let pythons = folders.map(|folder| folder.join("bin/python"));
        let found: Vec<_> =
            pythons.filter(|file| file.exists()).map(|file| interpreter(&[], &file, &[], &before)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    let wrappers: &[String] = if invocation.in_project { &[] } else { &invocation.wrappers };
    let Some(file) = run.program(&invocation.program) else { return Vec::new() };
    if is_python(&invocation.program) {
        return vec![interpreter(wrappers, &file, &flags(&invocation.arguments), &before)];
    }
    match interpreter_of(&file) {
        Some(words) if is_python(&words[0]) => {
            let found = run.program(&words[0]);
            found
                .map(|python| interpreter(wrappers, &python, &flags(&words[1..]), &before))
                .into_iter()
                .collect()
        }
        _ if OF_PYTHON.contains(&base_name(&invocation.program)) => {
            let beside = ["python3", "python"].map(|name| file.with_file_name(name));
            let found = beside.into_iter().find(|file| file.exists()).or_else(|| run.program("python3"));
            found.map(|python| interpreter(wrappers, &python, &[], &before)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// False for what surely is no program of Python's, so that its file need not be opened: words of a script.
fn may_be_python(run: &PlannedRun<'_>, invocation: &StartedProgram) -> bool {
    let name = base_name(&invocation.program);
    let is_command = run.argv.contains(&invocation.program);
    is_command || is_python(name) || OF_PYTHON.contains(&name)
}

fn interpreter(wrappers: &[String], file: &Path, flags: &[String], before: &[PathBuf]) -> Interpreter {
    let program = file.to_string_lossy().into_owned();
    Interpreter {
        argv: [wrappers, &[program], flags].concat(),
        file: file.to_path_buf(),
        before: before.to_vec(),
    }
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

/// What something installed by reference leads to, where the folders before it have it not.
fn lead_of_pointer(pointer: &Pointer, after: &[PathBuf]) -> Lead {
    let is_folder = pointer.file.extension().is_some_and(|ending| ending == "pth");
    let modules = if is_folder { ModulePlace::Within } else { ModulePlace::Itself };
    let lead = Lead::new(pointer.file.display().to_string(), &pointer.to, CURE);
    let is_note =
        pointer.file.extension().is_some_and(|ending| ending == "dist-info" || ending == "egg-link");
    if is_note { lead } else { imports(lead, after, modules) }
}

fn imports(lead: Lead, after: &[PathBuf], modules: ModulePlace) -> Lead {
    Lead { used: LeadUse::Imports { after: after.to_vec(), modules }, ..lead }
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
        let folder = self.host.layout.digests();
        create_private_dir(&folder)?;
        let mut answers = Answers::open(folder.join("imports.json"));
        let kept = answers.get(&question).and_then(|kept| serde_json::from_str(kept).ok());
        let answer: ImportAnswer = match kept {
            Some(answer) => answer,
            None => {
                let asked = SystemTime::now();
                let Some(said) = self.ask_interpreter(run, interpreter, &versions)? else {
                    return Ok(Vec::new());
                };
                let answer = answer_of(said);
                let text = serde_json::to_string(&answer).unwrap_or_default();
                answers.put(&question, &answer.stamped, asked, &text);
                answer
            }
        };
        Ok(leads_of_answer(run, interpreter, &answer))
    }

    /// Asks an interpreter; nothing where it does not answer, since then the run will not get far either.
    fn ask_interpreter(
        &self,
        run: &PlannedRun<'_>,
        interpreter: &Interpreter,
        versions: &[Option<String>],
    ) -> Result<Option<SaidPaths>> {
        let failed = |e: std::io::Error| Failure::io("make a directory in", self.tmp, &e);
        let folder = tempfile::Builder::new().prefix("ask-").tempdir_in(self.tmp).map_err(failed)?;
        for (name, text) in VERSIONS.iter().zip(versions) {
            if let Some(text) = text {
                crate::store::layout::write_private(&folder.path().join(name), text.as_bytes())?;
            }
        }
        let mut argv: Vec<OsString> = interpreter.argv.iter().map(OsString::from).collect();
        argv.extend(["-B".into(), "-c".into(), QUESTION.into()]);
        let mut command = Invocation::new(argv, folder.path());
        command.env = run.env.to_vec();
        command.timeout = ASK_TIME;
        command.output_cap = 4 << 20;
        command.secrets = tools::secrets(self.host);
        let unwanted = std::cell::RefCell::new(None);
        let finished = process::run_program(self.host.program, &command, &|_| {
            let halt = (self.host.watch)(0);
            let may_go_on = halt.is_none();
            unwanted.replace(halt);
            may_go_on
        })?;
        if let (ProgramEnd::Stopped, Some(RunHalt::Unwanted(failure))) =
            (&finished.end, unwanted.into_inner())
        {
            return Err(failure);
        }
        let text = String::from_utf8_lossy(&finished.stdout.bytes);
        let said =
            text.lines().find_map(|line| serde_json::from_str::<SaidPaths>(line.strip_prefix(MARK)?).ok());
        Ok(said.map(|said| without_folder(said, folder.path())))
    }
}

/// A place below the empty folder stands for one below the folder that the run is in.
fn without_folder(mut said: SaidPaths, folder: &Path) -> SaidPaths {
    for path in &mut said.path {
        if let Ok(below) = path.strip_prefix(folder) {
            *path = below.to_path_buf();
        }
    }
    said
}

/// An answer with its places as they are really called, and what would have to change for another.
fn answer_of(said: SaidPaths) -> ImportAnswer {
    let real = |path: PathBuf| {
        if path.is_relative() { Some(path) } else { module_or_file(&path)?.canonicalize().ok() }
    };
    let all = |paths: Vec<PathBuf>| paths.into_iter().filter_map(real).collect::<Vec<_>>();
    let path = all(said.path);
    let mut answer = ImportAnswer { first: all(said.first), last: all(said.last), ..ImportAnswer::default() };
    let is_site = |path: &&PathBuf| path.ends_with("site-packages") || path.ends_with("dist-packages");
    for site in path.iter().filter(is_site) {
        answer.pointers.extend(pointers(site).into_iter().filter_map(resolved));
        answer.stamped.extend(deciding_files(site));
    }
    answer.loaded = all(said.loaded);
    answer.stamped.extend(answer.loaded.iter().filter(|path| path.ends_with("sitecustomize.py")).cloned());
    answer.stamped.extend(path.iter().filter(|path| path.is_absolute()).cloned());
    answer.path = path;
    answer
}

/// A pointer to the place as it is really called; a link is its own place.
fn resolved(pointer: Pointer) -> Option<Pointer> {
    let to = if pointer.file == pointer.to { Some(pointer.to) } else { pointer.to.canonicalize().ok() };
    to.map(|to| Pointer { to, file: pointer.file })
}

/// Everything that an interpreter would import from, each after the folders of the slot that come before it.
fn leads_of_answer(run: &PlannedRun<'_>, interpreter: &Interpreter, answer: &ImportAnswer) -> Vec<Lead> {
    let name = format!("the search path of {}", interpreter.file.display());
    let is_folder = |pointer: &&Pointer| pointer.file.extension().is_some_and(|ending| ending == "pth");
    let named = |place: &Path| {
        let mut folders = answer.pointers.iter().filter(is_folder);
        let found = folders.find(|pointer| pointer.to == place);
        found.map_or_else(|| name.clone(), |pointer| pointer.file.display().to_string())
    };
    let mut search = interpreter.before.clone();
    let mut leads = Vec::new();
    for place in answer.path.iter().map(|place| run.slot.join(place)) {
        let after = within(run, &search);
        // A link among the packages is a module of another place.
        let links = answer.pointers.iter().filter(|p| p.file == p.to && p.file.parent() == Some(&place));
        leads.extend(links.map(|pointer| lead_of_pointer(pointer, &after)));
        leads.push(imports(Lead::new(named(&place), &place, CURE), &after, ModulePlace::Within));
        search.push(place);
    }
    let after = within(run, &search);
    let finder = format!("an import hook of {}", interpreter.file.display());
    let hooked = |place: &PathBuf| Lead::new(&finder, place, CURE);
    leads.extend(answer.last.iter().map(|place| imports(hooked(place), &after, ModulePlace::Itself)));
    leads.extend(answer.first.iter().map(hooked));
    leads.extend(answer.loaded.iter().map(hooked));
    // A note of an editable install counts where nothing was seen that carries it out: a hook of a new kind.
    let notes = answer
        .pointers
        .iter()
        .filter(|p| p.file.extension().is_some_and(|e| e == "dist-info" || e == "egg-link"));
    let unseen = notes.filter(|note| !leads.iter().any(|lead| lead.to.starts_with(&note.to)));
    let unseen: Vec<Lead> = unseen.map(|note| lead_of_pointer(note, &after)).collect();
    leads.extend(unseen);
    leads
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
