//! Measures of the whole house that may only become smaller: circles of files, names that say nothing, wide
//! documentation.
//!
//! Each is a number beside its aim. A change that makes one larger fails; a change that makes one smaller has
//! to write the smaller number down, so that the gain is kept.

use super::{Source, bare, files, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Knots of files that name each other in a circle, by one file of each, with the number of files in it.
const KNOTS: &[(&str, usize)] = &[];

/// Names that more than one type has. The aim is 25.
const REPEATED_TYPE_NAMES: usize = 21;

/// Functions whose name is one word, of all functions that a file is free to name, in percent; `new` is a
/// word that everybody knows. The aim is 30.
const ONE_WORD_FUNCTIONS: usize = 16;

/// Lines of documentation that are wider than the formatter lets code be.
const WIDE_DOCUMENTATION: usize = 0;

/// What the formatter holds code to (`rustfmt.toml`).
const WIDTH: usize = 110;

/// The modules of the crate, by path (`["git", "apply"]`), with the file of each.
struct Modules<'a> {
    files: BTreeMap<Vec<String>, &'a Source>,
}

impl<'a> Modules<'a> {
    fn new(all: &'a [Source]) -> Self {
        Self { files: all.iter().map(|source| (module_path(&source.path), source)).collect() }
    }

    /// The file that a path leads to: the longest module of it, then through what that module re-exports.
    fn owner(&self, from: &[String], path: &[String], depth: usize) -> Option<&'a Source> {
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" | "git_tender" => (Vec::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => (from[..from.len().checked_sub(1)?].to_vec(), &path[1..]),
            _ => (from.to_vec(), path),
        };
        while rest.first().is_some_and(|word| word == "super") {
            at.pop();
            rest = &rest[1..];
        }
        while let Some(word) = rest.first() {
            let mut child = at.clone();
            child.push(word.clone());
            if !self.files.contains_key(&child) {
                break;
            }
            at = child;
            rest = &rest[1..];
        }
        let file = *self.files.get(&at)?;
        let Some(item) = rest.first().filter(|_| depth < 8) else { return Some(file) };
        let handed_on = used(file).into_iter().find(|(path, visible)| {
            *visible && path.len() > 1 && path.last() == Some(item) && path[0] != "crate"
        });
        match handed_on {
            Some((path, _)) => self.owner(&at, &path, depth + 1).or(Some(file)),
            None => Some(file),
        }
    }
}

/// `["git", "apply", "step"]` of `git/apply/step.rs`; `["git"]` of `git/mod.rs`; nothing of the root's.
fn module_path(file: &str) -> Vec<String> {
    let mut parts: Vec<String> = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// Every path that a file's `use` lines name, one for each leaf, and whether the line hands it on (`pub
/// use`).
fn used(source: &Source) -> Vec<(Vec<String>, bool)> {
    let code = source.code();
    let mut all = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let before = code[..at].rsplit('\n').next().unwrap_or_default();
        let hands_on = before.trim_start().starts_with("pub") && !before.trim().contains(' ');
        if before.trim().is_empty() || hands_on {
            let tree = code[at + 4..].split(';').next().unwrap_or_default();
            leaves(tree.trim(), &[], &mut |path| all.push((path, hands_on)));
        }
    }
    all
}

/// Calls `found` with each leaf of a `use` tree; `self` is the path before it, an alias is dropped.
fn leaves(tree: &str, before: &[String], found: &mut dyn FnMut(Vec<String>)) {
    let (head, group) = match tree.find('{') {
        Some(at) => (&tree[..at], tree.rfind('}').map(|end| &tree[at + 1..end])),
        None => (tree, None),
    };
    let mut path = before.to_vec();
    let words = head.split("::").map(|word| word.split(" as ").next().unwrap_or_default().trim());
    path.extend(words.filter(|word| !word.is_empty() && *word != "*").map(str::to_owned));
    let Some(group) = group else {
        if path.last().is_some_and(|word| word == "self") && path.len() > 1 {
            path.pop();
        }
        return found(path);
    };
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices().chain([(group.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let part = group[start..at].trim();
                if !part.is_empty() {
                    leaves(part, &path, found);
                }
                start = at + 1;
            }
            _ => {}
        }
    }
}

/// Paths that stand in the code itself: `crate::a::b`, `super::c::d`.
fn spoken(source: &Source) -> Vec<Vec<String>> {
    let code = source.code();
    let mut all = Vec::new();
    for prefix in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(prefix) {
            let own =
                code[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':');
            if own {
                continue;
            }
            let word = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            let text: String = code[at..].chars().take_while(|c| word(*c)).collect();
            all.push(text.trim_end_matches(':').split("::").map(str::to_owned).collect());
        }
    }
    all
}

/// Which file names which, but for a file and what lies beneath it: those are one thing in several files.
fn names(all: &[Source]) -> BTreeMap<&str, BTreeSet<&str>> {
    let modules = Modules::new(all);
    let mut arrows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in all.iter().filter(|source| source.path != "main.rs") {
        let from = module_path(&source.path);
        let uses = used(source).into_iter().map(|(path, _)| path);
        let paths = uses.chain(spoken(source));
        let local = |path: &Vec<String>| {
            let first = path.first().map(String::as_str);
            matches!(first, Some("crate" | "super" | "self"))
                || first.is_some_and(|word| {
                    let mut child = from.clone();
                    child.push(word.to_owned());
                    modules.files.contains_key(&child)
                })
        };
        for path in paths.filter(local) {
            let Some(target) = modules.owner(&from, &path, 0) else { continue };
            let to = module_path(&target.path);
            if !from.starts_with(&to) && !to.starts_with(&from) {
                arrows.entry(&source.path).or_default().insert(&target.path);
            }
        }
    }
    arrows
}

/// The knots: sets of more than one file, each of which leads to each other one.
fn knots(arrows: &BTreeMap<&str, BTreeSet<&str>>) -> Vec<Vec<String>> {
    let reach = |from: &str| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(file) = todo.pop() {
            for next in arrows.get(file.as_str()).into_iter().flatten() {
                if seen.insert((*next).to_owned()) {
                    todo.push((*next).to_owned());
                }
            }
        }
        seen
    };
    let reached: BTreeMap<&str, BTreeSet<String>> = arrows.keys().map(|file| (*file, reach(file))).collect();
    let mut all: Vec<Vec<String>> = Vec::new();
    for (file, there) in &reached {
        if !there.contains(*file) || all.iter().flatten().any(|known| known == file) {
            continue;
        }
        let back = |other: &&String| reached.get(other.as_str()).is_some_and(|its| its.contains(*file));
        all.push(there.iter().filter(back).cloned().collect());
    }
    all
}

#[test]
fn no_files_name_each_other_in_a_circle() {
    let arrows = names(sources());
    let found = knots(&arrows);
    let within = |knot: &Vec<String>| {
        let own = knot.iter().map(|file| {
            let to: Vec<&str> =
                arrows[file.as_str()].iter().copied().filter(|t| knot.iter().any(|k| k == t)).collect();
            format!("    {file} -> {}", to.join(", "))
        });
        own.collect::<Vec<_>>().join("\n")
    };
    let seen: Vec<(&str, usize)> = found.iter().map(|knot| (knot[0].as_str(), knot.len())).collect();
    let told: Vec<String> =
        found.iter().map(|knot| format!("{} files:\n{}", knot.len(), within(knot))).collect();
    assert_eq!(seen, KNOTS, "knots of files:\n{}", told.join("\n"));
}

/// The rooms of the domain, each of which may name itself and those before it.
const ROOMS: [&str; 7] = ["value", "contract", "change", "worker", "proof", "delivery", "ledger"];

#[test]
fn rooms_of_the_domain_name_those_below() {
    let room = |file: &str| {
        let inside = file.strip_prefix("domain/").filter(|inside| *inside != "mod.rs")?;
        let name = inside.split(['/', '.']).next().unwrap_or_default();
        let place = ROOMS.iter().position(|room| *room == name);
        Some(place.unwrap_or_else(|| panic!("src/{file}: no such room in the table")))
    };
    let mut wrong = Vec::new();
    for (from, all) in names(sources()) {
        let up = all.iter().filter(|to| room(from).is_some_and(|own| room(to) > Some(own)));
        wrong.extend(up.map(|to| format!("src/{from} names src/{to}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Commands that are sequences of others, and which: every other one names none.
const SEQUENCES: &[(&str, &[&str])] = &[
    ("deliver/merge", &["rebase", "verify"]),
    ("demo", &["deliver", "open", "report", "submit", "verify"]),
    ("ship", &["deliver", "open", "report", "submit", "verify"]),
    ("ship/queue", &["deliver"]),
    ("start", &["open"]),
    ("verifiers", &["check"]),
];

/// The command of a file of `ops/`, by its place there: `deliver` of `deliver/prove.rs`.
fn command(file: &str) -> Option<&str> {
    file.strip_prefix("ops/").filter(|name| *name != "mod.rs")?.split(['/', '.']).next()
}

#[test]
fn a_command_names_no_other_one() {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, all) in names(sources()) {
        let Some(own) = command(from) else { continue };
        let others = all.iter().filter_map(|to| command(to)).filter(|other| *other != own);
        let file = from.trim_start_matches("ops/").trim_end_matches(".rs");
        found.entry(file).or_default().extend(others);
    }
    found.retain(|_, others| !others.is_empty());
    let seen: Vec<(&str, Vec<&str>)> =
        found.into_iter().map(|(file, others)| (file, others.into_iter().collect())).collect();
    let allowed: Vec<(&str, Vec<&str>)> =
        SEQUENCES.iter().map(|(file, others)| (*file, others.to_vec())).collect();
    assert_eq!(seen, allowed, "what several commands share belongs into src/task");
}

/// The word after a keyword that begins an item, with the line that it stands in.
fn items<'a>(source: &'a Source, keywords: &'a [&str]) -> impl Iterator<Item = (&'a str, usize)> {
    source.lines.iter().enumerate().filter_map(move |(number, line)| {
        let mut words = line.split_whitespace().skip_while(|word| {
            word.starts_with("pub") || matches!(*word, "unsafe" | "async" | "const" | "super)" | "crate)")
        });
        let keyword = words.next()?;
        let name = words.next().filter(|_| keywords.contains(&keyword))?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        (end > 0).then_some((&name[..end], number))
    })
}

#[test]
fn a_type_has_a_name_of_its_own() {
    let mut places: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for source in sources() {
        for (name, _) in items(source, &["struct", "enum", "trait", "union"]) {
            places.entry(name).or_default().push(&source.path);
        }
    }
    let all = places.len();
    places.retain(|_, files| files.len() > 1);
    let told: Vec<String> =
        places.iter().map(|(name, files)| format!("  {name}: {}", files.join(", "))).collect();
    assert_eq!(
        places.len(),
        REPEATED_TYPE_NAMES,
        "of {all} names of types, these stand for several:\n{}",
        told.join("\n")
    );
}

/// All of `src/`, test code too.
fn everything() -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let read = |file: std::path::PathBuf| {
        let text = std::fs::read_to_string(&file).expect("reads");
        let path = file.strip_prefix(&top).expect("beneath").display().to_string();
        Source { path, lines: bare(&text).lines().map(str::to_owned).collect(), length: text.lines().count() }
    };
    files(&top).into_iter().map(read).collect()
}

/// Functions that a file is free to name: not those of a trait that it implements.
fn functions(source: &Source) -> Vec<&str> {
    let mut free = Vec::new();
    let mut trait_until: Option<String> = None;
    for (number, line) in source.lines.iter().enumerate() {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        if trait_until.is_none() && line.trim_start().starts_with("impl") {
            let head: String = source.lines[number..].iter().take(4).cloned().collect::<Vec<_>>().join(" ");
            let head = head.split('{').next().unwrap_or_default();
            if head.contains(" for ") {
                trait_until = Some(format!("{indent}}}"));
            }
        }
        if trait_until.as_deref() == Some(line.trim_end()) {
            trait_until = None;
        }
        if trait_until.is_none() {
            let one = Source { path: String::new(), lines: vec![line.clone()], length: 1 };
            if let Some((name, _)) = items(&one, &["fn"]).next() {
                let start = line.find(&format!("fn {name}")).expect("stands there") + 3;
                free.push(&line[start..start + name.len()]);
            }
        }
    }
    free
}

#[test]
fn a_function_says_what_it_does() {
    let files = everything();
    let all: Vec<(&str, &str)> = files
        .iter()
        .flat_map(|source| functions(source).into_iter().map(|name| (name, source.path.as_str())))
        .collect();
    let mut short: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, file) in all.iter().filter(|(name, _)| !name.contains('_') && *name != "new") {
        short.entry(name).or_default().push(file);
    }
    let count: usize = short.values().map(Vec::len).sum();
    let mut told: Vec<(usize, String)> = short
        .iter()
        .map(|(name, files)| (files.len(), format!("  {} {name}: {}", files.len(), files.join(" "))))
        .collect();
    told.sort_by(|a, b| b.cmp(a));
    let told: Vec<String> = told.into_iter().map(|(_, line)| line).collect();
    assert_eq!(
        count * 100 / all.len(),
        ONE_WORD_FUNCTIONS,
        "{count} of {} functions have a name of one word:\n{}",
        all.len(),
        told.join("\n")
    );
}

#[test]
fn documentation_is_as_narrow_as_code() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut wide = Vec::new();
    for file in files(&top) {
        let text = std::fs::read_to_string(&file).expect("reads");
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("//") && line.chars().count() > WIDTH {
                wide.push(format!("{}:{}", file.display(), number + 1));
            }
        }
    }
    assert_eq!(wide.len(), WIDE_DOCUMENTATION, "{}", wide.join("\n"));
}

#[test]
fn the_measures_see_what_they_measure() {
    let file = |path: &str, code: &str| Source {
        path: path.to_owned(),
        lines: code.lines().map(str::to_owned).collect(),
        length: 1,
    };
    let all = [
        file("ops/mod.rs", "pub use a::Thing;"),
        file("ops/a.rs", "use super::b;\nuse crate::x::{Y, z::{self, W}};\npub struct Thing;"),
        file(
            "ops/b.rs",
            "fn one() { crate::ops::Thing }\nfn two_words() {}\nimpl A for B {\n    fn fmt() {}\n}",
        ),
        file("ops/b/child.rs", "use super::one;"),
        file("x.rs", "struct Y;"),
        file("x/z.rs", "struct W;"),
    ];
    let arrows = names(&all);
    assert_eq!(arrows["ops/a.rs"].iter().copied().collect::<Vec<_>>(), ["ops/b.rs", "x.rs", "x/z.rs"]);
    assert_eq!(knots(&arrows), [["ops/a.rs", "ops/b.rs"]]);
    assert!(!arrows.contains_key("ops/b/child.rs"), "a child may name its parent");
    assert_eq!(functions(&all[2]), ["one", "two_words"]);
    assert_eq!(items(&all[4], &["struct"]).map(|item| item.0).collect::<Vec<_>>(), ["Y"]);
}
