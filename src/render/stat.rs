//! Which paths a patch changes, and by how many lines, as `git diff --stat` shows it.

use crate::domain::change::patch_text::{Body, Section, Side, Strip, parse_sections};
use crate::domain::ledger::objects::CandidateDiff;
use crate::domain::value::outside::plain_line;
use std::fmt::Write;

/// The widest bar of signs.
const WIDEST: usize = 40;

struct PathStat {
    path: String,
    /// Lines added and removed; `None` where the content is no text.
    lines: Option<(usize, usize)>,
    /// What changes beside the content.
    beside: &'static str,
}

pub fn stat_text(diff: &CandidateDiff) -> String {
    let Ok(sections) = parse_sections(&diff.patch, Strip::One) else {
        return String::from_utf8_lossy(&diff.patch).into_owned();
    };
    let stats: Vec<PathStat> = sections.iter().map(|section| count_lines(section, &diff.patch)).collect();
    let width = stats.iter().map(|stat| stat.path.chars().count()).max().unwrap_or(0);
    let most = stats.iter().filter_map(|stat| stat.lines).map(|(new, old)| new + old).max().unwrap_or(0);
    let digits = most.to_string().len().max(3);
    let mut out = String::new();
    for PathStat { path, lines, beside } in &stats {
        let changed = match lines {
            None => format!("{:>digits$}", "Bin"),
            Some((new, old)) => {
                let (plus, minus) = (scale(*new, most), scale(*old, most));
                format!("{:>digits$} {}{}", new + old, "+".repeat(plus), "-".repeat(minus))
            }
        };
        let _ = writeln!(out, " {path:<width$} | {}{beside}", changed.trim_end());
    }
    let (new, old) = stats
        .iter()
        .filter_map(|stat| stat.lines)
        .fold((0, 0), |(all_new, all_old), (new, old)| (all_new + new, all_old + old));
    let s = |n: usize| if n == 1 { "" } else { "s" };
    let files = stats.len();
    let _ = writeln!(
        out,
        " {files} file{} changed, {new} insertion{}(+), {old} deletion{}(-)",
        s(files),
        s(new),
        s(old)
    );
    out
}

/// A number of lines as signs; one changed line is always seen.
fn scale(lines: usize, most: usize) -> usize {
    if most <= WIDEST || lines == 0 { lines } else { (lines * WIDEST / most).max(1) }
}

fn count_lines(section: &Section, patch: &[u8]) -> PathStat {
    let count = |side: Side| {
        section.hunks().iter().flat_map(|hunk| hunk.body_lines(patch)).filter(|(of, _)| *of == side).count()
    };
    let lines = match section.body {
        Body::Binary(..) => None,
        Body::Text(_) | Body::None => Some((count(Side::New), count(Side::Old))),
    };
    let beside = match (&section.old, &section.new) {
        (None, _) => " (new)",
        (_, None) => " (gone)",
        _ if section.old_mode != section.new_mode && section.new_mode.is_some() => " (mode)",
        _ => "",
    };
    PathStat { path: plain_line(&String::from_utf8_lossy(section.shown_path()), usize::MAX), lines, beside }
}

#[cfg(test)]
mod tests {
    use super::stat_text;
    use crate::domain::ledger::objects::CandidateDiff;
    use crate::domain::value::digest::Sha256;

    #[test]
    fn every_kind_of_change_is_counted_and_told() {
        let patch = "diff --git a/docs/a.md b/docs/a.md\n--- a/docs/a.md\n+++ b/docs/a.md\n@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n\
diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\
diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";
        let diff = CandidateDiff::new("t1", 1, Sha256::of(b""), patch.as_bytes().to_vec());
        assert_eq!(
            stat_text(&diff),
            " docs/a.md |   3 ++-\n new       |   1 + (new)\n run.sh    |   0 (mode)\n \
3 files changed, 3 insertions(+), 1 deletion(-)\n"
        );
    }
}
