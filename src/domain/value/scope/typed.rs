//! A pattern as a person types it, in the words of the repository.
//!
//! Git's users type paths from the folder that they are in, with `.`, `./x` and `../x`; `:/x` begins at the
//! top. A scope only knows patterns from the top.

/// The pattern that somebody means who types `typed` in `folder`, which is `""` or a path from the top. What
/// leads out of the repository stays as it was typed: the reader of patterns says what is wrong with it.
pub fn pattern_from_typed(typed: &str, folder: &str) -> String {
    let (start, text) = match typed.strip_prefix(":/") {
        Some(text) => ("", text),
        None => (folder, typed),
    };
    if typed.is_empty() || text.starts_with('/') {
        return typed.to_owned();
    }
    let mut parts: Vec<String> =
        start.split('/').filter(|part| !part.is_empty()).map(quote_component).collect();
    for part in text.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return typed.to_owned(),
            ".." => {}
            part => parts.push(part.to_owned()),
        }
    }
    if parts.is_empty() {
        return "**".to_owned();
    }
    let names_a_folder = matches!(text.rsplit('/').next(), None | Some("" | "." | ".."));
    format!("{}{}", parts.join("/"), if names_a_folder { "/" } else { "" })
}

/// The name of a folder as a pattern that names it alone.
fn quote_component(name: &str) -> String {
    let quote = |c: char| if "*?[{".contains(c) { format!("[{c}]") } else { c.to_string() };
    name.chars().map(quote).collect()
}

#[cfg(test)]
mod tests {
    use super::pattern_from_typed;

    #[test]
    fn a_typed_path_begins_in_the_current_folder() {
        let cases = [
            ("docs/", "", "docs/"),
            ("docs", "", "docs"),
            ("./docs/", "", "docs/"),
            (".", "", "**"),
            ("./", "", "**"),
            (":/", "src", "**"),
            (".", "src/app", "src/app/"),
            ("..", "src/app", "src/"),
            ("../..", "src/app", "**"),
            ("../lib.rs", "src/app", "src/lib.rs"),
            ("*.md", "docs", "docs/*.md"),
            (":/docs/*.md", "src", "docs/*.md"),
            ("a//b/./c", "", "a/b/c"),
            ("x", "odd[1]/{a}", "odd[[]1]/[{]a}/x"),
            ("**", "", "**"),
            ("**", "src", "src/**"),
        ];
        for (typed, folder, meant) in cases {
            assert_eq!(pattern_from_typed(typed, folder), meant, "{typed} in {folder}");
        }
    }

    #[test]
    fn what_leads_out_of_the_repository_is_left_to_the_reader() {
        for (typed, folder) in [("../x/", ""), ("../../../x", "a/b"), ("/etc/", "a"), ("", "a"), ("://x", "")]
        {
            assert_eq!(pattern_from_typed(typed, folder), typed);
        }
    }
}
