//! A `git` that kills whoever calls it in a certain way: death at a place that is known, without a clock.

use super::Lab;

/// A `PATH` whose `git` kills its caller where `word` (of its environment, or `$*`) matches a shell pattern;
/// it then does nothing more.
pub fn deadly_git(lab: &Lab, word: &str, pattern: &str) -> String {
    let found = lab.command("sh", &lab.path("home")).args(["-c", "command -v git"]).output().expect("runs");
    let real = String::from_utf8(found.stdout).expect("text").trim().to_owned();
    let folder = lab.path("deadly");
    std::fs::create_dir_all(&folder).expect("made");
    let script = format!(
        "#!/bin/sh\ncase \"{word}\" in {pattern}) kill -9 $PPID; exit 1;; esac\nexec '{real}' \"$@\"\n"
    );
    let file = folder.join("git");
    std::fs::write(&file, script).expect("written");
    let mode: std::fs::Permissions = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&file, mode).expect("set");
    format!("{}:{}", folder.display(), std::env::var("PATH").expect("PATH"))
}
