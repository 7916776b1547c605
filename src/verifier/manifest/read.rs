//! From the document to a [`Manifest`]: one reader a key, then what only shows when all keys are known.
//!
//! Nothing stops at the first problem: whoever writes a manifest gets all that is wrong with it at once.

use super::{
    DEFAULT_TIMEOUT, DeclaredOutput, LONGEST_TIMEOUT, MOST_ATTEMPTS, Manifest, OUT, Pass, Setup, ToolSpec,
    VerifierKind,
};
use crate::domain::contract::policy::BaseRuns;
use crate::domain::proof::evidence::Reuse;
use crate::domain::value::document::{Node, Problems, quote_clipped, read_duration, read_toml};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use crate::error::{Code, Failure, Result};
use crate::verifier::builtin;
use crate::verifier::formats::{self, ResultFormat, WrittenTo};
use std::time::Duration;

/// The keys of a manifest.
pub const MANIFEST_FIELDS: [&str; 24] = [
    "$schema",
    "protocol",
    "id",
    "title",
    "command",
    "setup",
    "read",
    "kind",
    "inputs",
    "closure",
    "tools",
    "env",
    "outputs",
    "pass",
    "min_checks",
    "timeout",
    "network",
    "scratch",
    "reuse",
    "attempts",
    "watch",
    "base",
    "cases",
    "uses",
];

/// The same failure, with the file's name in every sentence.
pub(super) fn named(file: &str, failure: &Failure) -> Failure {
    let mut same =
        Failure::new(failure.code(), format!("{file}: {}", failure.message())).detail("file", file);
    if let Some(subject) = failure.subject_text() {
        same = same.subject(subject);
    }
    same.details_of(failure).also(failure.others().iter().map(|other| named(file, other)))
}

/// What has been read so far.
#[derive(Default)]
struct ManifestDraft {
    protocol: bool,
    id: Option<String>,
    title: Option<String>,
    kind: Option<VerifierKind>,
    command: Vec<String>,
    setup: Option<Setup>,
    read: Vec<String>,
    stores: Vec<String>,
    inputs: Option<Scope>,
    closure: Scope,
    may_be_absent: Vec<String>,
    watch: Scope,
    tools: Vec<ToolSpec>,
    env: Vec<String>,
    outputs: Vec<DeclaredOutput>,
    pass: Option<Pass>,
    min_checks: Option<u64>,
    timeout: Option<Duration>,
    scratch: Scope,
    reuse: Option<Reuse>,
    attempts: Option<u64>,
    base_runs: Option<BaseRuns>,
    compares_cases: Option<bool>,
    uses_hooks: bool,
    present: Vec<String>,
}

pub(super) fn manifest(id: &str, bytes: &[u8]) -> Result<Manifest> {
    let document = read_toml("the manifest", Code::ConfigInvalid, bytes)?;
    let mut problems = Problems::new("the manifest", Code::ConfigInvalid);
    let mut draft = ManifestDraft::default();
    problems.read_object("", &document, &MANIFEST_FIELDS, |problems, key, field, node| {
        draft.present.push(key.to_owned());
        basic_field(problems, &mut draft, key, field, node);
        running_field(problems, &mut draft, key, field, node);
    });
    check(&mut problems, &draft, id);
    problems.into_result()?;
    Ok(fill(draft))
}

fn basic_field(problems: &mut Problems, draft: &mut ManifestDraft, key: &str, field: &str, node: &Node) {
    match key {
        // For editors.
        "$schema" => drop(problems.read_text(field, node)),
        "protocol" => draft.protocol = protocol(problems, field, node),
        "id" => draft.id = problems.read_id(field, node),
        "title" => draft.title = problems.read_text(field, node),
        "command" => draft.command = argv(problems, field, node),
        "kind" => {
            let words = [
                ("command", VerifierKind::Command),
                ("manual", VerifierKind::Manual),
                ("builtin", VerifierKind::Builtin),
            ];
            draft.kind = problems.read_choice(field, node, &words);
        }
        "inputs" => draft.inputs = problems.read_scope(field, node),
        "closure" => (draft.closure, draft.may_be_absent) = closure(problems, field, node),
        "watch" => draft.watch = problems.read_scope(field, node).unwrap_or_default(),
        "scratch" => draft.scratch = problems.read_scope(field, node).unwrap_or_default(),
        "tools" => draft.tools = tools(problems, field, node),
        "env" => draft.env = names(problems, field, node),
        "outputs" => draft.outputs = outputs(problems, field, node),
        "uses" => draft.uses_hooks = problems.read_choice(field, node, &[("pre-commit", true)]).is_some(),
        _ => {}
    }
}

fn running_field(problems: &mut Problems, draft: &mut ManifestDraft, key: &str, field: &str, node: &Node) {
    match key {
        "setup" => draft.setup = setup(problems, field, node),
        "read" => (draft.read, draft.stores) = readable(problems, field, node),
        "pass" => {
            let words =
                [("exit-code", Pass::ExitCode), ("outputs", Pass::Outputs), ("protocol", Pass::Protocol)];
            draft.pass = problems.read_choice(field, node, &words);
        }
        "min_checks" => draft.min_checks = problems.read_count(field, node),
        "timeout" => {
            let time = read_duration(problems, field, node, LONGEST_TIMEOUT, "24h");
            draft.timeout = time.map(Duration::from_millis);
        }
        "network" => {
            let wanted = problems.read_boolean(field, node) == Some(true);
            later_if(problems, wanted, field, "a verifier with network");
        }
        "reuse" => {
            let words = [("same-inputs", Reuse::SameInputs), ("never", Reuse::Never)];
            draft.reuse = problems.read_choice(field, node, &words);
        }
        "base" => draft.base_runs = problems.read_choice(field, node, &BaseRuns::ALL),
        "cases" => draft.compares_cases = problems.read_boolean(field, node),
        "attempts" => {
            draft.attempts = problems.read_count(field, node);
            if draft.attempts.is_some_and(|n| n == 0 || n > MOST_ATTEMPTS) {
                let right = format!("from 1 to {MOST_ATTEMPTS}");
                problems.report_fault(field, &format!("must be {right}"), &right, draft.attempts);
            }
        }
        _ => {}
    }
}

fn protocol(problems: &mut Problems, field: &str, node: &Node) -> bool {
    match problems.read_count(field, node) {
        Some(1) => true,
        Some(other) => {
            problems.report_later(field, &format!("protocol {other}"));
            true
        }
        None => false,
    }
}

/// A list of arguments with at least one that says something. A string is refused: no shell reads it.
fn argv(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let Some(items) = problems.read_list(field, node, "arguments, never one string for a shell") else {
        return Vec::new();
    };
    let mut argv = Vec::new();
    for (name, item) in &items {
        match item {
            Node::Text(text) if text.contains('\0') => {
                problems.report_fault(name, "holds a NUL byte", "an argument", quote_clipped(text));
            }
            Node::Text(text) => argv.push(text.clone()),
            _ => problems.report_mistyped(name, "a string", item),
        }
    }
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        problems.report_fault(field, "names no program", "a list that begins with a program", &argv);
    }
    argv
}

/// The patterns of a closure, and those of them that were written with a `?` before them.
fn closure(problems: &mut Problems, field: &str, node: &Node) -> (Scope, Vec<String>) {
    let mut may_be_absent = Vec::new();
    let Node::List(items) = node else {
        return (problems.read_scope(field, node).unwrap_or_default(), may_be_absent);
    };
    let mut bare = items.clone();
    for item in &mut bare {
        if let Node::Text(text) = item
            && let Some(pattern) = text.strip_prefix('?')
        {
            may_be_absent.push(pattern.to_owned());
            *text = pattern.to_owned();
        }
    }
    (problems.read_scope(field, &Node::List(bare)).unwrap_or_default(), may_be_absent)
}

/// What may be read, and of that the stores.
fn readable(problems: &mut Problems, field: &str, node: &Node) -> (Vec<String>, Vec<String>) {
    let (mut all, mut stores) = (Vec::new(), Vec::new());
    for (field, item) in problems.read_list(field, node, "paths").unwrap_or_default() {
        let (mut path, mut is_store) = (None, false);
        if matches!(item, Node::Text(_)) {
            path = problems.read_text(&field, item);
        } else {
            problems.read_object(&field, item, &["path", "cache"], |problems, key, field, node| match key {
                "path" => path = problems.read_text(field, node),
                _ => is_store = problems.read_boolean(field, node).unwrap_or_default(),
            });
            problems.require_key(&field, item, "path", "a path that begins with `~/` or `/`");
        }
        let Some(path) = path else { continue };
        let placed = path.starts_with('/') || path.strip_prefix("~/").is_some_and(|rest| !rest.is_empty());
        if !placed || path.split('/').any(|part| part == "..") {
            let right = "a path that begins with `~/` or `/`, without `..`";
            problems.report_fault(&field, &format!("must be {right}"), right, &path);
        }
        if is_store {
            stores.push(path.clone());
        }
        all.push(path);
    }
    (all, stores)
}

/// Variables that git-tender sets itself, or that reach no child.
fn refused_variable(name: &str) -> bool {
    let fixed = ["PATH", "HOME", "TMPDIR", "TENDER_OUT", "SSH_AUTH_SOCK", "LD_PRELOAD", "LD_LIBRARY_PATH"];
    fixed.contains(&name) || name.starts_with("GIT_")
}

fn names(problems: &mut Problems, field: &str, node: &Node) -> Vec<String> {
    let list = problems.read_texts(field, node).unwrap_or_default();
    for (at, name) in list.iter().enumerate() {
        let field = format!("{field}[{at}]");
        if name.contains(['=', '\0']) {
            problems.report_fault(&field, "is no name of a variable", "a name without `=`", name);
        } else if refused_variable(name) {
            problems.report_fault(
                &field,
                "is never passed on",
                "a variable that git-tender does not set itself",
                name,
            );
        }
    }
    list
}

fn tools(problems: &mut Problems, field: &str, node: &Node) -> Vec<ToolSpec> {
    let mut tools = Vec::new();
    for (field, item) in problems.read_list(field, node, "tools").unwrap_or_default() {
        let (mut name, mut probe) = (None, Vec::new());
        problems.read_object(&field, item, &["name", "probe"], |problems, key, field, node| match key {
            "name" => name = problems.read_text(field, node),
            _ => probe = argv(problems, field, node),
        });
        problems.require_key(&field, item, "name", "the name of a program");
        if let Some(name) = name {
            if name.contains('/') {
                problems.report_fault(&field, "must be looked up on PATH", "a name without `/`", &name);
            }
            tools.push(ToolSpec { name, probe });
        }
    }
    tools
}

fn outputs(problems: &mut Problems, field: &str, node: &Node) -> Vec<DeclaredOutput> {
    let mut outputs = Vec::new();
    for (field, item) in problems.read_list(field, node, "outputs").unwrap_or_default() {
        let (mut path, mut format, mut required, mut min_checks) = (None::<String>, None, false, None);
        problems.read_object(
            &field,
            item,
            &["path", "format", "required", "min_checks"],
            |problems, key, field, node| match key {
                "path" => path = problems.read_text(field, node),
                "format" => format = output_format(problems, field, node),
                "min_checks" => min_checks = problems.read_count(field, node),
                _ => required = problems.read_boolean(field, node).unwrap_or_default(),
            },
        );
        problems.require_key(
            &field,
            item,
            "format",
            &formats::ALL.iter().map(|format| format.name).collect::<Vec<_>>().join(" or "),
        );
        if let Some(format) = format {
            match format.written_to {
                WrittenTo::File => problems.require_key(&field, item, "path", "where the file is"),
                WrittenTo::StandardOutput if path.is_some() => {
                    let why = format!("has a path, but {} is read from standard output", format.name);
                    problems.report_fault(&field, &why, "no path", &path);
                }
                WrittenTo::StandardOutput | WrittenTo::Either => {}
            }
            let path = path.unwrap_or_default();
            let pattern = output_pattern(problems, &field, &path);
            outputs.push(DeclaredOutput { path, format, pattern, required, min_checks });
        }
    }
    outputs
}

/// The pattern of an output whose path is a glob.
fn output_pattern(problems: &mut Problems, field: &str, path: &str) -> Option<Scope> {
    let below = path.strip_prefix(OUT).map_or(path, |below| below.trim_start_matches('/'));
    if !below.contains(['*', '?', '[', '{']) {
        return None;
    }
    let field = format!("{field}.path");
    match Scope::parse_field(&field, Code::ConfigInvalid, vec![below.to_owned()]) {
        Ok(pattern) => Some(pattern),
        Err(failure) => {
            problems.report_fault(&field, "is no glob", "a path or a glob", failure.message());
            None
        }
    }
}

fn output_format(problems: &mut Problems, field: &str, node: &Node) -> Option<ResultFormat> {
    let words: Vec<_> = formats::ALL.iter().map(|format| (format.name, *format)).collect();
    problems.read_choice(field, node, &words)
}

fn setup(problems: &mut Problems, field: &str, node: &Node) -> Option<Setup> {
    let (mut command, mut inputs, mut network) = (Vec::new(), None, false);
    problems.read_object(field, node, &["command", "inputs", "network"], |problems, key, field, node| {
        match key {
            "command" => command = argv(problems, field, node),
            "inputs" => inputs = problems.read_scope(field, node),
            _ => network = problems.read_boolean(field, node) == Some(true),
        }
    });
    problems.require_key(field, node, "command", "an argument vector");
    problems.require_key(field, node, "inputs", "the files that it depends on");
    Some(Setup { command, inputs: inputs?, network })
}

/// What only shows when all keys are known.
fn check(problems: &mut Problems, draft: &ManifestDraft, id: &str) {
    let has = |key: &str| draft.present.iter().any(|name| name == key);
    if !has("protocol") {
        problems.report_missing("protocol", "1");
    }
    match &draft.id {
        Some(given) if given != id => {
            problems.report_fault("id", &format!("must be the name of its directory, {id:?}"), id, given);
        }
        None if !has("id") => problems.report_missing("id", "the name of its directory"),
        _ => {}
    }
    let kind = draft.kind.unwrap_or(VerifierKind::Command);
    if kind == VerifierKind::Command && !has("command") && !has("uses") {
        problems.report_missing("command", "an argument vector, unless `kind` is manual or builtin");
    }
    let builtin = builtin::NAMES.contains(&id);
    if kind == VerifierKind::Builtin && !builtin {
        problems.unknown_value("id", id, &builtin::NAMES);
    } else if kind != VerifierKind::Builtin && (builtin || id == crate::domain::contract::PROTECTED) {
        let why = "is the name of what git-tender judges itself";
        problems.report_fault("id", why, "another name", id);
    }
    if kind != VerifierKind::Command {
        for key in [
            "command",
            "setup",
            "outputs",
            "pass",
            "min_checks",
            "attempts",
            "base",
            "cases",
            "tools",
            "env",
            "timeout",
            "read",
            "scratch",
            "reuse",
            "uses",
        ] {
            if has(key) {
                problems.report_fault(key, "has no meaning where nothing is run", "kind = \"command\"", key);
            }
        }
    }
    check_outputs(problems, draft, has("min_checks"));
}

fn check_outputs(problems: &mut Problems, draft: &ManifestDraft, min_checks: bool) {
    let pass = draft.pass.unwrap_or(Pass::ExitCode);
    let counts = draft.outputs.iter().any(|output| output.format.counts);
    if pass == Pass::Outputs && !counts {
        problems.report_fault(
            "pass",
            "is outputs, but there is no output that counts",
            "an entry in `outputs`",
            "none",
        );
    }
    if min_checks && !counts && pass != Pass::Protocol {
        problems.report_fault("min_checks", "needs an output that counts", "an entry in `outputs`", "none");
    }
    for (at, output) in draft.outputs.iter().enumerate() {
        if output.min_checks.is_some() && !output.format.counts {
            let (field, name) = (format!("outputs[{at}].min_checks"), output.format.name);
            problems.report_fault(
                &field,
                &format!("has no meaning where {name} counts nothing"),
                "no such key",
                name,
            );
        }
        let field = format!("outputs[{at}].path");
        let within = |path: &str| RepoPath::new(path.as_bytes()).is_ok();
        let right = "a file in `scratch`, or one that begins with `{out}/`";
        let fits = match output.path.strip_prefix(OUT) {
            Some(rest) => rest.strip_prefix('/').is_some_and(within),
            None => {
                output.path.is_empty()
                    || RepoPath::new(output.path.as_bytes())
                        .is_ok_and(|path| draft.scratch.matches_path(&path))
            }
        };
        if !fits {
            problems.report_fault(&field, &format!("must be {right}"), right, &output.path);
        }
    }
}

fn fill(draft: ManifestDraft) -> Manifest {
    let pass = draft.pass.unwrap_or(Pass::ExitCode);
    let counts = pass == Pass::Protocol || draft.outputs.iter().any(|output| output.format.counts);
    Manifest {
        id: draft.id.unwrap_or_default(),
        title: draft.title,
        kind: draft.kind.unwrap_or(VerifierKind::Command),
        command: draft.command,
        setup: draft.setup,
        read: draft.read,
        stores: draft.stores,
        inputs: draft.inputs,
        closure: draft.closure,
        may_be_absent: draft.may_be_absent,
        watch: draft.watch,
        tools: draft.tools,
        env: draft.env,
        outputs: draft.outputs,
        pass,
        min_checks: counts.then(|| draft.min_checks.unwrap_or(1)),
        timeout: draft.timeout.unwrap_or(DEFAULT_TIMEOUT),
        scratch: draft.scratch,
        reuse: draft.reuse.unwrap_or(Reuse::SameInputs),
        attempts: draft.attempts.unwrap_or(1),
        base_runs: draft.base_runs.unwrap_or_default(),
        compares_cases: draft.compares_cases.unwrap_or(true),
        uses_hooks: draft.uses_hooks,
    }
}

fn later_if(problems: &mut Problems, wanted: bool, field: &str, wish: &str) {
    if wanted {
        problems.report_later(field, wish);
    }
}
