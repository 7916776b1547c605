//! The documentation holds together: the README stays short, every link leads somewhere, no page is lost.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

const README: &str = "README.md";
/// A reader gets through it in one sitting.
const MOST_LINES: usize = 150;
/// A line fits beside the code, in a terminal and in a diff.
const MOST_COLUMNS: usize = 120;

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every page for people, relative to the top; those beside code and fixtures are not among them.
fn pages() -> BTreeSet<PathBuf> {
    let mut pages = BTreeSet::new();
    for folder in ["", "docs", "verifiers"] {
        let entries = std::fs::read_dir(top().join(folder)).expect("a folder");
        for entry in entries {
            let path = Path::new(folder).join(entry.expect("an entry").file_name());
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path);
            }
        }
    }
    pages
}

fn read(page: &Path) -> String {
    std::fs::read_to_string(top().join(page)).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The lines of a page that are prose: what stands between fences is code.
fn prose(text: &str) -> Vec<&str> {
    let mut code = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    });
    lines.collect()
}

/// The targets of `[text](target)` that are no address of the web.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in prose(text) {
        for part in line.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            if !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The anchors of a page's headings, made as the forges make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let heading = |line: &&str| line.starts_with('#');
    let anchor = |line: &str| -> String {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    prose(text).into_iter().filter(heading).map(anchor).collect()
}

/// The path that a link of `page` means, relative to the top.
fn resolved(page: &Path, target: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[test]
fn the_readme_is_short_and_narrow() {
    let readme = read(Path::new(README));
    let lines = readme.lines().count();
    assert!(lines <= MOST_LINES, "{README} has {lines} lines, at most {MOST_LINES}: reference goes to docs/");
    for (at, line) in readme.lines().enumerate() {
        let columns = line.chars().count();
        assert!(columns < MOST_COLUMNS, "{README}:{} has {columns} columns", at + 1);
    }
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let mut dead = Vec::new();
    for page in pages() {
        for link in links(&read(&page)) {
            let (target, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let file = if target.is_empty() { page.clone() } else { resolved(&page, target) };
            let there = top().join(&file).exists();
            if !there || !anchor.is_empty() && !anchors(&read(&file)).contains(anchor) {
                dead.push(format!("{} links to {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
}

#[test]
fn every_page_is_reached_from_the_readme() {
    let all = pages();
    let mut reached = BTreeSet::from([PathBuf::from(README)]);
    let mut next = vec![PathBuf::from(README)];
    while let Some(page) = next.pop() {
        for link in links(&read(&page)) {
            let file = resolved(&page, link.split('#').next().unwrap_or_default());
            if all.contains(&file) && reached.insert(file.clone()) {
                next.push(file);
            }
        }
    }
    let lost: Vec<_> = all.difference(&reached).collect();
    assert!(lost.is_empty(), "no link leads from {README} to {lost:?}");
}
