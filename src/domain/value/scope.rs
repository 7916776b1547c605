//! Scopes: which paths a contract, a policy or a manifest speaks of.
//!
//! A pattern is `dir/` (all beneath it, not the name itself), a file (exactly that path), or a glob: `*`, `?`
//! and `[…]` stay within one component, `**` is any number of components, `{a,b}` is either. Comparison goes
//! by path component, never by string prefix, and by bytes, so that names without a valid encoding have a
//! scope too.

mod pattern;
mod typed;

use crate::domain::value::repo_path::RepoPath;
use crate::error::{Code, Failure, Result};
use pattern::Pattern;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
pub use typed::pattern_from_typed;

/// Number of alternatives that all patterns of one scope may stand for.
const MOST_ALTERNATIVES: usize = 50_000;

/// A list of patterns as written. Two scopes are equal where the lists are.
#[derive(Clone, Default)]
pub struct Scope {
    patterns: Vec<String>,
    compiled: OnceLock<Arc<Compiled>>,
}

/// The patterns made ready: what is literal is looked up, only globs are tried one by one.
#[derive(Default)]
struct Compiled {
    files: HashSet<Vec<u8>>,
    dirs: HashSet<Vec<u8>>,
    globs: Vec<Pattern>,
    /// Every directory that leads to something named here, and the literal names themselves.
    leads: HashSet<Vec<u8>>,
}

/// The relation of a pattern to a ceiling, as far as it is known without a look at a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Everything that it names is within the ceiling.
    Within,
    /// Part of what it names may be outside.
    Partly,
    /// Nothing that it names is within the ceiling.
    Outside,
}

impl Scope {
    /// Checks and takes patterns of a contract; see [`Scope::parse_field`].
    pub fn new(patterns: Vec<String>) -> Result<Self> {
        Self::parse_field("scope", Code::ContractInvalid, patterns)
    }

    /// Checks and takes the patterns of `field`. The failure has the given code; its subject is
    /// `field[index]`, its details are the value and what would be right, and where several patterns are
    /// wrong it lists all.
    pub fn parse_field(field: &str, code: Code, patterns: Vec<String>) -> Result<Self> {
        Self::check_patterns(field, code, patterns).map_err(|problems| {
            Failure::first_of(problems)
                .unwrap_or_else(|| Failure::internal("a scope was refused without a reason"))
        })
    }

    /// Like [`Scope::parse_field`], but with all problems side by side, in the order of the patterns.
    pub fn check_patterns(
        field: &str,
        code: Code,
        patterns: Vec<String>,
    ) -> std::result::Result<Self, Vec<Failure>> {
        let mut problems = Vec::new();
        let mut compiled = Compiled::default();
        let mut count = 0;
        for (index, text) in patterns.iter().enumerate() {
            match Pattern::read_pattern(text) {
                Ok(alternatives) => {
                    count += alternatives.len();
                    if count > MOST_ALTERNATIVES {
                        let message = format!("{field} stands for more than {MOST_ALTERNATIVES} patterns");
                        return Err(vec![
                            Failure::new(code, message).subject(field).detail("limit", MOST_ALTERNATIVES),
                        ]);
                    }
                    alternatives.into_iter().for_each(|pattern| compiled.add_pattern(pattern));
                }
                Err(refusal) => problems.push(
                    Failure::new(
                        code,
                        format!(
                            "{field}[{index}] = {text:?} is refused: {}; write {}",
                            refusal.why, refusal.right
                        ),
                    )
                    .subject(format!("{field}[{index}]"))
                    .expected(refusal.right, text),
                ),
            }
        }
        if problems.is_empty() {
            Ok(Self { patterns, compiled: OnceLock::from(Arc::new(compiled)) })
        } else {
            Err(problems)
        }
    }

    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// True where no path can match.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// True where one of the patterns covers the path.
    pub fn matches_path(&self, path: &RepoPath) -> bool {
        self.matches_bytes(path.as_bytes())
    }

    /// The same for a name on a disk that need not be a path of a tree, such as one that holds `.git`.
    pub fn matches_bytes(&self, bytes: &[u8]) -> bool {
        let compiled = self.compiled_patterns();
        if compiled.files.contains(bytes) {
            return true;
        }
        if !compiled.dirs.is_empty() && directories_above(bytes).any(|dir| compiled.dirs.contains(dir)) {
            return true;
        }
        if compiled.globs.is_empty() {
            return false;
        }
        let components: Vec<&[u8]> = bytes.split(|b| *b == b'/').collect();
        compiled.globs.iter().any(|glob| glob.matches_components(&components))
    }

    /// True where the path matches, or where replacing what is at the path would replace or hide something
    /// that the scope names: the directory of `dir/` itself and the directories above it.
    pub fn touches_path(&self, path: &RepoPath) -> bool {
        self.matches_path(path) || self.compiled_patterns().leads.contains(path.as_bytes())
    }

    /// False where certainly nothing beneath this directory matches.
    pub fn may_hold(&self, dir: &RepoPath) -> bool {
        let within = |glob: &Pattern| is_at_or_beneath(dir.as_bytes(), &glob.leading_path());
        self.touches_path(dir) || self.compiled_patterns().globs.iter().any(within)
    }

    /// True where certainly everything beneath this directory matches; `None` is the top.
    pub fn covers_folder(&self, dir: Option<&RepoPath>) -> bool {
        let compiled = self.compiled_patterns();
        let dir = dir.map(RepoPath::as_bytes).unwrap_or_default();
        compiled.dirs.contains(dir)
            || directories_above(dir).any(|above| compiled.dirs.contains(above))
            || compiled.globs.iter().any(|glob| glob.covers_all_beneath(dir))
    }

    /// Both lists in one, each pattern once.
    pub fn union(&self, other: &Scope) -> Scope {
        let mut patterns = self.patterns.clone();
        patterns.extend(other.patterns.iter().filter(|pattern| !self.patterns.contains(pattern)).cloned());
        Scope { patterns, compiled: OnceLock::new() }
    }

    /// How each pattern of this scope fits into `ceiling`, in the order as written. Exact for `dir/` and
    /// files; a glob counts as within only where that is certain, and then `Partly` means "perhaps not all".
    pub fn fit_patterns(&self, ceiling: &Scope) -> Vec<(&str, Fit)> {
        let ceiling = ceiling.expand_patterns();
        self.patterns.iter().map(|text| (text.as_str(), fit_pattern(text, &ceiling))).collect()
    }

    fn expand_patterns(&self) -> Vec<Pattern> {
        self.patterns.iter().filter_map(|text| Pattern::read_pattern(text).ok()).flatten().collect()
    }

    /// A scope is only made of checked patterns, so that reading them again cannot fail.
    fn compiled_patterns(&self) -> &Compiled {
        self.compiled.get_or_init(|| {
            let mut compiled = Compiled::default();
            self.expand_patterns().into_iter().for_each(|pattern| compiled.add_pattern(pattern));
            Arc::new(compiled)
        })
    }
}

impl Compiled {
    fn add_pattern(&mut self, pattern: Pattern) {
        let lead = pattern.leading_path();
        self.leads.extend(directories_above(&lead).map(<[u8]>::to_vec));
        if !lead.is_empty() {
            self.leads.insert(lead);
        }
        match pattern {
            Pattern::File(file) => drop(self.files.insert(file)),
            Pattern::Beneath(dir) => drop(self.dirs.insert(dir)),
            Pattern::Glob(_) => self.globs.push(pattern),
        }
    }
}

/// The directories above a path.
fn directories_above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at])
}

fn fit_pattern(text: &str, ceiling: &[Pattern]) -> Fit {
    let Ok(own) = Pattern::read_pattern(text) else { return Fit::Partly };
    let each: Vec<Fit> = own.iter().map(|pattern| fit_one(pattern, ceiling)).collect();
    match each.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => *first,
        _ => Fit::Partly,
    }
}

fn fit_one(own: &Pattern, ceiling: &[Pattern]) -> Fit {
    let lead = own.leading_path();
    if ceiling.iter().any(|pattern| pattern == own || pattern.covers_all_beneath(&lead) && !is_file(own)) {
        return Fit::Within;
    }
    if let Pattern::File(file) = own {
        let components: Vec<&[u8]> = file.split(|b| *b == b'/').collect();
        let within = ceiling.iter().any(|pattern| pattern.matches_components(&components));
        return if within { Fit::Within } else { Fit::Outside };
    }
    // Two patterns can only meet where one's lead lies within the other's.
    let meets = |pattern: &Pattern| {
        let theirs = pattern.leading_path();
        is_at_or_beneath(&theirs, &lead) || is_at_or_beneath(&lead, &theirs) && !is_file(pattern)
    };
    if ceiling.iter().any(meets) { Fit::Partly } else { Fit::Outside }
}

fn is_file(pattern: &Pattern) -> bool {
    matches!(pattern, Pattern::File(_))
}

fn is_at_or_beneath(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty() || path == dir || directories_above(path).any(|prefix| prefix == dir)
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.patterns).finish()
    }
}

impl PartialEq for Scope {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for Scope {}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.patterns.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Scope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        Self::new(Vec::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use crate::domain::value::scope::*;
    use globset::GlobBuilder;
    use proptest::prelude::*;

    fn scope_of(patterns: &[&str]) -> Scope {
        Scope::new(patterns.iter().map(|p| (*p).to_owned()).collect()).expect("a scope")
    }

    fn repo_path(bytes: impl Into<Vec<u8>>) -> RepoPath {
        RepoPath::new(bytes).expect("a path")
    }

    fn pattern_matches(pattern: &str, name: &str) -> bool {
        scope_of(&[pattern]).matches_path(&repo_path(name))
    }

    #[test]
    fn each_form_matches_what_it_says_and_no_more() {
        for (pattern, yes, no) in [
            ("docs/", vec!["docs/a", "docs/a/b"], vec!["docs", "docs-evil/a", "Docs/a", "x/docs/a", "docsx"]),
            (
                "docs/editorial/",
                vec!["docs/editorial/x"],
                vec!["docs/editorial-evil/x", "docs/editorial", "docs/x"],
            ),
            ("docs", vec!["docs"], vec!["docs/a", "x/docs"]),
            ("docs/a.md", vec!["docs/a.md"], vec!["docs/a.md/x", "docs/aXmd", "docs/b.md"]),
            ("docs/**", vec!["docs/a", "docs/a/b"], vec!["docs", "docsx/a"]),
            ("**", vec!["a", "a/b", ".tender/x"], vec![]),
            ("**/", vec!["a", "a/b"], vec![]),
            ("*", vec!["a", ".a"], vec!["a/b"]),
            ("*/", vec!["a/b", "a/b/c"], vec!["a"]),
            ("Cargo.*", vec!["Cargo.toml", "Cargo."], vec!["x/Cargo.toml", "Cargo", "CargoXtoml"]),
            ("src/*.rs", vec!["src/a.rs", "src/.rs"], vec!["src/a/b.rs", "src/a.rsx"]),
            ("src/**/*.rs", vec!["src/a.rs", "src/a/b/c.rs"], vec!["a.rs", "src/a.c", "xsrc/a.rs"]),
            ("**/.gitattributes", vec![".gitattributes", "a/b/.gitattributes"], vec!["x.gitattributes"]),
            ("a/**/b/**/c", vec!["a/b/c", "a/x/b/y/z/c", "a/b/b/c"], vec!["a/c", "a/b/c/d"]),
            ("{src,tests/it}/", vec!["src/a", "tests/it/a"], vec!["tests/a"]),
            ("*.{rs,to{ml,x}}", vec!["a.rs", "a.toml", "a.tox"], vec!["a.to", "a.{rs,toml}"]),
            ("[a-c]x", vec!["ax", "cx"], vec!["dx", "x", "aax"]),
            ("[!a-c]x", vec!["dx", "修x"], vec!["ax", "x"]),
            ("[]x][*]", vec!["]*", "x*"], vec!["]a"]),
            ("a{[,],b}c", vec!["a,c", "abc"], vec!["ac"]),
            ("?.md", vec!["修.md", "é.md"], vec!["修正.md", ".md"]),
            ("[é修].md", vec!["é.md", "修.md"], vec!["a.md"]),
        ] {
            for name in yes {
                assert!(pattern_matches(pattern, name), "{pattern} should take {name}");
            }
            for name in no {
                assert!(!pattern_matches(pattern, name), "{pattern} should not take {name}");
            }
        }
        assert!(scope_of(&[]).is_empty() && !scope_of(&[]).matches_path(&repo_path("a")));
    }

    #[test]
    fn names_without_an_encoding_have_a_scope() {
        let raw = repo_path(b"docs/caf\xe9\xff.txt".to_vec());
        for pattern in ["docs/", "docs/**", "docs/*", "docs/caf??.txt", "docs/caf[!a]*.txt", "**/*.txt"] {
            assert!(scope_of(&[pattern]).matches_path(&raw), "{pattern}");
        }
        assert!(!scope_of(&["docs/caf?.txt"]).matches_path(&raw));
    }

    #[test]
    fn what_leaves_the_repository_or_cannot_be_read_is_refused_with_field_value_and_remedy() {
        for bad in [
            "",
            "/",
            "/etc/",
            "..",
            "../x",
            "docs/../src/",
            "a/..",
            ".",
            "./",
            "./docs/",
            "docs//a",
            "docs//",
            ".git",
            ".git/",
            ".GIT/config",
            "git~1/x",
            ".g\u{200c}it/",
            ".git./x",
            "a/.git::$INDEX_ALLOCATION/b",
            "docs\\",
            "..\\x",
            "a\0b",
            "[",
            "a[b",
            "{a",
            "a}",
            "{a,..}/x",
            "{a,.git}/",
            "[z-a]",
            "a**",
            "src/**.rs",
            "***",
            "[a/b]",
            "{a,/b}",
            "{a,}",
        ] {
            let failure =
                Scope::parse_field("writeScope", Code::ContractInvalid, vec!["ok/".into(), bad.into()])
                    .expect_err(&format!("{bad:?} was taken"));
            assert_eq!(failure.code(), Code::ContractInvalid);
            assert_eq!(failure.subject_text(), Some("writeScope[1]"), "{bad:?}");
            assert_eq!(failure.details()["actual"], bad);
            assert!(failure.details().contains_key("expected"));
        }
        let dot = Scope::new(vec![".".into()]).expect_err("refused");
        assert!(dot.message().contains("`**`"), "{dot}");
        let both = Scope::new(vec!["..".into(), "/".into()]).expect_err("refused");
        assert_eq!(both.others().len(), 1);
    }

    #[test]
    fn hostile_patterns_are_bounded() {
        assert!(Scope::new(vec!["{".repeat(100_000)]).is_err());
        assert!(Scope::new(vec!["{a,".repeat(1_000) + &"}".repeat(1_000)]).is_err());
        assert!(Scope::new(vec!["{a,b}".repeat(100)]).is_err());
        assert!(Scope::new(vec!["{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}".into(); 1_000]).is_err());
        let slow = scope_of(&["*a*a*a*a*a*a*a*a*a*a*a*b", "**/a/**/a/**/a/**/a/**/a/**/b"]);
        assert!(!slow.matches_path(&repo_path("a".repeat(4_000))));
        assert!(!slow.matches_path(&repo_path("a/".repeat(2_000) + "a")));
    }

    #[test]
    fn touches_sees_the_directory_itself_and_those_above() {
        let protected = scope_of(&["a/b/", "x/y.txt", "**/.gitmodules", "s/**/t"]);
        for name in ["a", "a/b", "a/b/c", "x", "x/y.txt", "q/.gitmodules", "s", "s/t"] {
            assert!(protected.touches_path(&repo_path(name)), "{name}");
        }
        for name in ["a/c", "x/z", "q", "s/u", "x/y.txt/z"] {
            assert!(!protected.touches_path(&repo_path(name)), "{name}");
        }
    }

    #[test]
    fn fits_is_exact_for_directories_and_files() {
        let ceiling = scope_of(&["docs/", "src/*.rs", "lib/**/gen/**"]);
        for (pattern, fit) in [
            ("docs/", Fit::Within),
            ("docs/a/", Fit::Within),
            ("docs/**/*.md", Fit::Within),
            ("docs/a.md", Fit::Within),
            ("docs", Fit::Outside),
            ("src/a.rs", Fit::Within),
            ("src/*.rs", Fit::Within),
            ("src/", Fit::Partly),
            ("src/a/", Fit::Partly),
            ("doc/", Fit::Outside),
            ("docs-evil/", Fit::Outside),
            ("tests/x.rs", Fit::Outside),
            ("lib/x/gen/y/", Fit::Within),
            ("lib/gen/", Fit::Within),
            ("{docs,tests}/", Fit::Partly),
            ("**", Fit::Partly),
        ] {
            assert_eq!(scope_of(&[pattern]).fit_patterns(&ceiling), vec![(pattern, fit)]);
        }
        assert_eq!(scope_of(&["a/"]).fit_patterns(&scope_of(&["**"])), vec![("a/", Fit::Within)]);
        assert_eq!(scope_of(&["a"]).fit_patterns(&scope_of(&["**"])), vec![("a", Fit::Within)]);
        assert_eq!(scope_of(&["a/b/"]).fit_patterns(&scope_of(&["a/b/c"])), vec![("a/b/", Fit::Partly)]);
        assert_eq!(scope_of(&["a/b/"]).fit_patterns(&scope_of(&["a/b"])), vec![("a/b/", Fit::Partly)]);
    }

    #[test]
    fn a_hundred_thousand_paths_take_no_time() {
        let patterns: Vec<String> =
            (0..10_000).map(|n| format!("d{n}/")).chain(["src/**/*.rs".into()]).collect();
        let scope = Scope::new(patterns).expect("a scope");
        let paths: Vec<RepoPath> = (0..100_000).map(|n| repo_path(format!("d{n}/src/x{n}.txt"))).collect();
        let started = std::time::Instant::now();
        assert_eq!(paths.iter().filter(|p| scope.matches_path(p)).count(), 10_000);
        assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
    }

    #[test]
    fn a_directory_that_can_hold_nothing_is_told() {
        let some = scope_of(&["docs/", "src/a.rs", "lib/*/x/**", "{m,n}/o"]);
        for holds in ["docs", "docs/sub", "src", "lib", "lib/a", "lib/a/b/c", "m", "n"] {
            assert!(some.may_hold(&repo_path(holds)), "{holds}");
        }
        for empty in ["doc", "docs-evil", "src/sub", "libx", "o"] {
            assert!(!some.may_hold(&repo_path(empty)), "{empty}");
        }
        assert!(scope_of(&["**/*.rs"]).may_hold(&repo_path("any/where")));
    }

    #[test]
    fn json_is_the_list_as_written() {
        let one = scope_of(&["docs/", "src/*.rs"]);
        let text = serde_json::to_string(&one).expect("serializes");
        assert_eq!(text, r#"["docs/","src/*.rs"]"#);
        let back: Scope = serde_json::from_str(&text).expect("reads");
        assert_eq!(back, one);
        assert!(back.matches_path(&repo_path("docs/a")));
        assert!(serde_json::from_str::<Scope>(r#"["../"]"#).is_err());
    }

    fn glob_text() -> impl Strategy<Value = String> {
        let component = prop_oneof![
            3 => "[ab]{1,2}",
            2 => "[ab*?]{1,3}".prop_filter("no double star", |t| !t.contains("**")),
            1 => Just("[ab]".to_owned()),
            1 => Just("{a,b*}".to_owned()),
            2 => Just("**".to_owned()),
        ];
        prop::collection::vec(component, 1..5).prop_map(|parts| parts.join("/"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn globs_agree_with_globset(pattern in glob_text(), name in "[abc]{1,3}(/[abc]{1,2}){0,4}") {
            // In globset `a/**` takes `a` no more than here; a pattern of `**` alone is the same too.
            let oracle = GlobBuilder::new(&pattern).literal_separator(true).build().expect("a glob").compile_matcher();
            prop_assert_eq!(pattern_matches(&pattern, &name), oracle.is_match(&name), "{} {}", pattern, name);
        }

        #[test]
        fn a_folder_that_is_covered_has_only_matches_and_one_that_holds_nothing_none(
            pattern in glob_text(), dir in "[abc]{1,2}(/[abc]{1,2}){0,2}", below in "[abc]{1,2}(/[abc]{1,2}){0,2}",
        ) {
            let (scope, path) = (scope_of(&[&pattern]), repo_path(format!("{dir}/{below}")));
            let dir = repo_path(dir);
            prop_assert!(!scope.covers_folder(Some(&dir)) || scope.matches_path(&path));
            prop_assert!(!scope.covers_folder(None) || scope.matches_path(&path));
            prop_assert!(scope.may_hold(&dir) || !scope.matches_path(&path));
        }

        #[test]
        fn within_means_that_every_match_is_in_the_ceiling(
            pattern in glob_text(), ceiling in glob_text(), name in "[abc]{1,3}(/[abc]{1,2}){0,4}",
        ) {
            let (own, ceiling) = (scope_of(&[&pattern]), scope_of(&[&ceiling]));
            let fit = own.fit_patterns(&ceiling)[0].1;
            let path = repo_path(name);
            if own.matches_path(&path) {
                prop_assert!(fit != Fit::Within || ceiling.matches_path(&path));
                prop_assert!(fit != Fit::Outside || !ceiling.matches_path(&path));
            }
        }

        #[test]
        fn reading_never_panics(text in ".{0,40}", braces in "[{}\\[\\],a/*?!^-]{0,30}") {
            drop(Pattern::read_pattern(&text));
            drop(Pattern::read_pattern(&braces));
        }
    }
}
