//! What holds for any file and any edit.

use super::*;
use proptest::prelude::*;
use similar::{DiffTag, TextDiff};

/// Few different lines, so that hunks repeat; with every kind of line end.
fn file_text(least: usize) -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "a",
        "b",
        "c",
        "",
        " ",
        "\ta",
        "b ",
        "-- x",
        "++ y",
        "@@ -1 +1 @@",
        "\\ x",
        "*** End Patch",
        "\u{e9}",
        "diff --git a/f b/f",
        "```",
    ]);
    let ending = prop::sample::select(vec!["\n", "\n", "\n", "\r\n"]);
    (prop::collection::vec((line, ending), least..14), any::<bool>()).prop_map(|(lines, ended)| {
        let mut text: String = lines.iter().flat_map(|(line, ending)| [*line, *ending]).collect();
        if !ended {
            text.truncate(text.trim_end_matches(['\n', '\r']).len());
        }
        text
    })
}

fn unified_diff(old: &str, new: &str, radius: usize, index: bool) -> String {
    let diff = TextDiff::from_lines(old, new);
    let hunks = diff.unified_diff().context_radius(radius).to_string();
    let id = ObjectFormat::Sha1.blob_id(old.as_bytes()).expect("an id");
    let after = ObjectFormat::Sha1.blob_id(new.as_bytes()).expect("an id");
    let index = if index { format!("index {id}..{after} 100644\n") } else { String::new() };
    format!("diff --git a/f b/f\n{index}--- a/f\n+++ b/f\n{hunks}")
}

/// The same change in the envelope, with the whole file as context.
fn as_envelope(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let mut body = "@@\n".to_owned();
    for change in similar::capture_diff_slices(similar::Algorithm::Myers, &old, &new) {
        let (tag, old_range, new_range) = change.as_tag_tuple();
        let kept = if tag == DiffTag::Equal { " " } else { "-" };
        old[old_range].iter().for_each(|line| body.extend([kept, *line, "\n"]));
        if tag != DiffTag::Equal {
            new[new_range].iter().for_each(|line| body.extend(["+", *line, "\n"]));
        }
    }
    envelope_updating(&body)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// A diff that names its blob needs no context at all.
    #[test]
    fn a_diff_gives_exactly_the_new_bytes(old in file_text(0), new in file_text(0), radius in 0usize..4) {
        prop_assume!(old != new);
        let found = parse_only_patch(&unified_diff(&old, &new, radius, true)).apply_to_file(Some(old.as_bytes()), ObjectFormat::Sha1);
        prop_assert_eq!(found.expect("fits"), Some(new.into_bytes()));
    }

    /// Without the name it gives the new bytes, or says that it is ambiguous; with all of the file as context
    /// it is not.
    #[test]
    fn a_diff_without_a_name_is_right_or_refused(old in file_text(1), new in file_text(0), radius in 0usize..20) {
        prop_assume!(old != new);
        match parse_only_patch(&unified_diff(&old, &new, radius, false)).apply_to_file(Some(old.as_bytes()), ObjectFormat::Sha1) {
            Ok(found) => prop_assert_eq!(found, Some(new.into_bytes())),
            Err(failure) => {
                let message = failure.message();
                prop_assert!(radius < 14, "{}", message);
                prop_assert!(message.contains("times") || message.contains("anywhere"), "{}", message);
            }
        }
    }

    /// Whatever line of a hunk is gone, or without its sign: nothing is applied.
    #[test]
    fn a_diff_that_lost_a_line_or_its_sign_is_refused(
        old in file_text(0), new in file_text(0), radius in 0usize..20, at in any::<prop::sample::Index>(), all in any::<bool>(),
    ) {
        prop_assume!(old != new);
        let whole = unified_diff(&old, &new, radius, false);
        let mut lines: Vec<&str> = whole.split_inclusive('\n').collect();
        // Without its sign, an empty line or one that begins like a sign is another line of a hunk.
        let is_told = |line: &str| {
            let text = line.get(1..).unwrap_or_default();
            line.starts_with([' ', '+', '-']) && (all || !text.trim().is_empty() && !text.starts_with([' ', '+', '-', '\\', '@']))
        };
        let body = lines.iter().position(|line| line.starts_with("@@")).unwrap_or(lines.len());
        let told: Vec<usize> = (body..lines.len()).filter(|at| is_told(lines[*at])).collect();
        prop_assume!(!told.is_empty());
        let lost = told[at.index(told.len())];
        if all {
            lines.remove(lost);
        } else {
            lines[lost] = &lines[lost][1..];
        }
        let found = apply_to_files(&Files::from([("f".to_owned(), old.into_bytes())]), &lines.concat());
        prop_assert_eq!(found.map_err(|failure| failure.code()), Err(Code::PatchInvalid), "{}", lines.concat());
    }

    #[test]
    fn an_envelope_gives_the_new_lines(old in file_text(1), new in file_text(1)) {
        // Whole lines with one kind of end, as the form cannot say more.
        let (old, new) = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
        let new = if old.ends_with('\n') { new.trim_end_matches('\n').to_owned() + "\n" } else { new.trim_end_matches('\n').to_owned() };
        prop_assume!(old != new && !old.is_empty() && !new.is_empty());
        let found = parse_only_patch(&as_envelope(&old, &new)).apply_to_file(Some(old.as_bytes()), ObjectFormat::Sha1);
        prop_assert_eq!(found.map_err(|failure| failure.to_string()), Ok(Some(new.into_bytes())));
    }

    #[test]
    fn what_is_applied_was_there_exactly_once(old in file_text(1), line in "[abc]", with in "[xyz]") {
        // The bytes decide, then the lines without their ends, then also without white space there.
        let lines = || old.split_inclusive('\n');
        let counts = [
            lines().filter(|other| other.strip_suffix('\n').unwrap_or(other) == line).count(),
            lines().filter(|other| other.trim_end_matches(['\r', '\n']) == line).count(),
            lines().filter(|other| other.trim_end() == line).count(),
        ];
        let once = counts.into_iter().find(|count| *count > 0) == Some(1);
        let found = parse_only_patch(&envelope_updating(&format!("@@\n-{line}\n+{with}\n"))).apply_to_file(Some(old.as_bytes()), ObjectFormat::Sha1);
        prop_assert_eq!(found.is_ok(), once);
        if let Ok(Some(found)) = found {
            let changed = String::from_utf8(found).expect("text");
            let pairs: Vec<_> = old.split_inclusive('\n').zip(changed.split_inclusive('\n')).filter(|(one, other)| one != other).collect();
            prop_assert_eq!(pairs.len(), 1);
        }
    }

    #[test]
    fn rubbish_never_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "*** Begin Patch", "*** End Patch", "*** Update File: f", "*** Add File: n", "*** Move to: g", "*** End of File", "@@", "@@ a",
        "@@ -1,2 +3,4 @@", "@@ -99999999999999999999,1 +1 @@", "@@ -18446744073709551615,18446744073709551615 +1 @@", "diff --git a/f b/f", "diff --git ", "index 1234567..89abcde 100644", "--- a/f", "+++ b/f", "--- /dev/null",
        "\\ No newline at end of file", " a", "-a", "+b", "+\u{e9}", "\u{e9}", "", "f", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "```",
        "rename from f", "rename to g", "new file mode 100644", "\r", "\"", "\"a\\",
    ]), 0..14), crlf in any::<bool>(), old in file_text(0)) {
        let text = parts.join(if crlf { "\r\n" } else { "\n" });
        for file in parse_patch(&text).unwrap_or_default() {
            drop(file.apply_to_file(Some(old.as_bytes()), ObjectFormat::Sha1));
            drop(file.apply_to_file(None, ObjectFormat::Sha1));
        }
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,200}") {
        drop(parse_patch(&text));
    }
}
