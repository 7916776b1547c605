//! Pushing and asking: what git is told, and what its answers mean. Nothing is run here: a push has a time
//! limit and a tree of processes (ssh, helpers) that has to end with it, so that the calls are handed to
//! whoever supervises them.

use super::address;
use super::command::Quarantine;
use super::command::{Git, GitCall};
use super::repository::Repository;
use crate::domain::delivery::publication::{Publication, Remote};
use crate::domain::value::digest::ObjectId;
use crate::error::{Code, Failure, Result};
use std::hash::{BuildHasher as _, Hasher as _};

/// A remote with the address as git needs it.
#[derive(Clone)]
pub struct PushTarget {
    /// What is recorded of it.
    pub remote: Remote,
    /// The address itself; it may hold a secret.
    url: String,
    /// By which git is told of it.
    alias: String,
}

impl std::fmt::Debug for PushTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl PushTarget {
    /// Finds a configured remote; without a name `origin`, or the only one there is.
    pub fn find_remote(repository: &Repository, name: Option<&str>) -> Result<Self> {
        let listed = repository.git_call().arg("remote").run_for_stdout()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let known: Vec<&str> = listed.lines().collect();
        let name = match (name, known.as_slice()) {
            (Some(name), _) => name,
            (None, [one]) => one,
            (None, _) => "origin",
        };
        if !known.contains(&name) {
            return Err(Failure::new(Code::NotFound, format!("there is no remote {name:?} to push to"))
                .subject("delivery.remote")
                .expected(&known, name)
                .remedy("Name one that is there, or add it.", ["git", "remote", "-v"]));
        }
        let urls = repository
            .git_call()
            .args(["remote", "get-url", "--push", "--all", "--", name])
            .run_for_stdout()?;
        let urls = String::from_utf8_lossy(&urls).into_owned();
        match urls.lines().collect::<Vec<_>>().as_slice() {
            [url] => {
                let remote = Remote { name: name.to_owned(), url: address::redact_address(url) };
                Ok(Self::new(remote, (*url).to_owned()))
            }
            several => Err(Failure::new(
                Code::NotSupported,
                format!(
                    "the remote {name:?} has {} addresses to push to; one push has to have one outcome",
                    several.len()
                ),
            )
            .subject("delivery.remote")
            .remedy("Make a remote with a single address.", ["git", "remote", "-v"])),
        }
    }

    /// The remote of an earlier plan. Where its address held a secret, that is taken from the configuration
    /// again.
    pub fn find_recorded(repository: &Repository, recorded: &Remote) -> Result<Self> {
        match Self::find_remote(repository, Some(&recorded.name)) {
            Ok(found) if found.remote == *recorded => Ok(found),
            // The remote was changed meanwhile: the question goes to where the push went.
            _ if !recorded.url.contains(address::HIDDEN) => {
                Ok(Self::new(recorded.clone(), recorded.url.clone()))
            }
            _ => Err(Failure::new(
                Code::NotFound,
                format!("the remote {} is not the one any more that was pushed to", recorded.name),
            )
            .subject(recorded.name.clone())
            .expected(&recorded.url, "another address")
            .remedy("Set the address again, then ask once more.", ["git", "remote", "-v"])),
        }
    }

    fn new(remote: Remote, url: String) -> Self {
        // Nobody's configuration can speak of a name that it does not know.
        let number = std::collections::hash_map::RandomState::new().build_hasher().finish();
        Self { remote, url, alias: format!("tender-{number:016x}:/") }
    }

    /// A call to which the address is known by its alias. An address from git has been rewritten by
    /// `url.*.insteadOf` already, and handed to it again as it is it would be once more: what is pushed to
    /// would not be what is recorded.
    fn git_with_alias(&self, git: Git) -> Git {
        ["insteadOf", "pushInsteadOf"].into_iter().fold(git, |git, rule| {
            git.setting_from(&format!("url.{}.{rule}", self.url), "GIT_TENDER_ADDRESS", &self.alias)
        })
    }

    /// What must not be seen in any output.
    pub fn secrets_in_url(&self) -> Vec<Vec<u8>> {
        address::secrets_in_address(&self.url)
    }
}

/// The push: one ref, only from the recorded value, nothing beside it.
pub fn push_call(
    repository: &Repository,
    target: &PushTarget,
    publication: &Publication,
    options: &[String],
) -> GitCall {
    let reference = publication.ref_name();
    let new = publication.new.as_ref().map_or("", ObjectId::as_str);
    let old = publication.old.as_ref().map_or("", ObjectId::as_str);
    // What the user's configuration adds to every push is not in the contract.
    let mut git = target
        .git_with_alias(repository.git_call())
        .with_setting("push.pushOption=")
        .with_setting("push.followTags=false")
        .with_setting("push.gpgSign=false")
        .args(["push", "--porcelain", "--atomic", "--no-verify", "--no-progress", "--recurse-submodules=no"])
        .arg(format!("--force-with-lease={reference}:{old}"));
    for option in options {
        git = git.arg(format!("--push-option={option}"));
    }
    git.arg("--").arg(&target.alias).arg(format!("{new}:{reference}")).into_call()
}

/// The question what the ref names now.
pub fn ask_call(repository: &Repository, target: &PushTarget, reference: &str) -> GitCall {
    target
        .git_with_alias(repository.git_call())
        .args(["ls-remote", "--"])
        .arg(&target.alias)
        .arg(reference)
        .into_call()
}

/// Brings what the ref names now into the quarantine; no ref and no FETCH_HEAD is written.
pub fn fetch_call(
    repository: &Repository,
    quarantine: &Quarantine,
    target: &PushTarget,
    reference: &str,
) -> GitCall {
    let options = ["--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--recurse-submodules=no"];
    let git =
        target.git_with_alias(repository.git_call()).with_quarantine(quarantine).arg("fetch").args(options);
    git.args(["--quiet", "--refmap=", "--"]).arg(&target.alias).arg(reference).into_call()
}

/// The answer to [`ask_call`]: what the ref names; the failure is the line that does not fit.
pub fn parse_named_object(stdout: &[u8], reference: &str) -> Result<Option<ObjectId>> {
    let text = String::from_utf8_lossy(stdout);
    let line = text.lines().find_map(|line| line.split_once('\t').filter(|(_, name)| *name == reference));
    line.map(|(id, _)| id.parse()).transpose()
}

/// What git says of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushAnswer {
    /// The server took it, or had it already.
    Accepted,
    /// The ref is not what the lease says.
    Lease,
    /// The server refused; in its words.
    Refused(String),
    /// The server does not do what the push needs, by git's own words, before anything was sent.
    NotSupported(String),
    /// Nothing that can be relied on; what there is of it.
    Unclear(String),
}

/// Reads the answer of `git push --porcelain`.
pub fn parse_push_answer(code: Option<i32>, stdout: &[u8], stderr: &[u8], reference: &str) -> PushAnswer {
    let (stdout, stderr) = (String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
    let line = stdout.lines().find_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let (flag, names, summary) = (fields.next()?, fields.next()?, fields.next()?);
        (names.rsplit_once(':')?.1 == reference).then_some((flag, summary))
    });
    let words = || remote_words(&stderr);
    match line {
        Some(("!", summary)) if summary.contains("stale info") => PushAnswer::Lease,
        Some(("!", summary)) if summary.starts_with("[remote rejected]") => {
            let reason = summary.trim_start_matches("[remote rejected]").trim();
            PushAnswer::Refused([words(), reason.to_owned()].join("\n").trim().to_owned())
        }
        Some(("!", summary)) if summary.starts_with("[rejected]") => PushAnswer::Lease,
        Some((flag, _)) if flag != "!" && code == Some(0) => PushAnswer::Accepted,
        None if gave_up_before_sending(&stderr) => PushAnswer::NotSupported(words()),
        None if turned_away(&stderr) => PushAnswer::Refused(words()),
        Some((_, summary)) => PushAnswer::Unclear(format!("{summary}\n{}", words()).trim().to_owned()),
        None => PushAnswer::Unclear(words()),
    }
}

/// True where git itself gave up before it sent anything. The words of the server, which it passes on, come
/// only once something was.
fn gave_up_before_sending(stderr: &str) -> bool {
    let mut before = stderr.lines().take_while(|line| !line.starts_with("remote:"));
    before.any(|line| line.starts_with("fatal: the receiving end does not support "))
}

/// True where the door was not opened, so that nothing was sent: git's own words or ssh's, never those of the
/// server's hooks.
fn turned_away(stderr: &str) -> bool {
    const WORDS: [&str; 6] = [
        "Authentication failed for",
        "could not read Username",
        "could not read Password",
        "The requested URL returned error: 403",
        "Permission denied (",
        "Host key verification failed",
    ];
    let mut own = stderr.lines().filter(|line| !line.starts_with("remote:"));
    // An answer to the push itself is another matter: it may have come from somebody in between.
    !stderr.contains("RPC failed") && own.any(|line| WORDS.iter().any(|word| line.contains(word)))
}

/// What was said on standard error, without what git says of itself.
pub fn remote_words(stderr: &str) -> String {
    const OWN: [&str; 3] = ["hint:", "To ", "error: failed to push some refs"];
    let kept = stderr.lines().filter(|line| !OWN.iter().any(|own| line.starts_with(own)));
    let kept = kept.map(|line| line.strip_prefix("remote: ").unwrap_or(line).trim_end());
    kept.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "refs/heads/b";

    fn answer_of(code: i32, stdout: &str, stderr: &str) -> PushAnswer {
        parse_push_answer(Some(code), stdout.as_bytes(), stderr.as_bytes(), NAME)
    }

    #[test]
    fn the_answers_of_git_are_told_apart() {
        for flag in ["*", " ", "+", "=", "-"] {
            assert_eq!(
                answer_of(0, &format!("To u\n{flag}\tab:refs/heads/b\t[new branch]\nDone\n"), ""),
                PushAnswer::Accepted
            );
        }
        assert_eq!(
            answer_of(1, "To u\n!\tab:refs/heads/b\t[rejected] (stale info)\nDone\n", ""),
            PushAnswer::Lease
        );
        let refused = answer_of(
            1,
            "!\tab:refs/heads/b\t[remote rejected] (pre-receive hook declined)\nDone\n",
            "remote: no!        \nTo u\nerror: failed to push\n",
        );
        assert_eq!(
            refused,
            PushAnswer::Refused("no!\nerror: failed to push\n(pre-receive hook declined)".into())
        );
        let old = "fatal: the receiving end does not support push options\n";
        assert_eq!(answer_of(128, "", old), PushAnswer::NotSupported(old.trim_end().into()));
        assert!(matches!(
            answer_of(128, "", "fatal: Could not read from remote repository.\n"),
            PushAnswer::Unclear(_)
        ));
        assert!(matches!(answer_of(1, "Done\n", "error: RPC failed; curl 52\n"), PushAnswer::Unclear(_)));
        assert!(matches!(answer_of(0, "Done\n", ""), PushAnswer::Unclear(_)), "nothing was said of the ref");
        let door = "remote: Write access not granted.\nfatal: unable to access 'u': The requested URL returned error: 403\n";
        assert!(
            matches!(answer_of(128, "", door), PushAnswer::Refused(words) if words.contains("Write access"))
        );
        for unclear in [
            "error: RPC failed; HTTP 403 curl 22 The requested URL returned error: 403\n",
            "remote: mirror: Permission denied (publickey).\nfatal: the remote end hung up unexpectedly\n",
            "remote: note: this server does not support LFS locking\n",
            "remote: x\nfatal: the receiving end does not support push options\n",
            "error: the mirror does not support this\n",
        ] {
            assert!(matches!(answer_of(128, "", unclear), PushAnswer::Unclear(_)), "{unclear}");
        }
        let failed = "!\tab:refs/heads/b\t[remote failure] (remote failed to report status)\n";
        assert!(matches!(answer_of(1, failed, ""), PushAnswer::Unclear(_)));
        assert!(matches!(answer_of(1, "*\tab:refs/heads/b\t[new branch]\n", ""), PushAnswer::Unclear(_)));
        assert!(
            matches!(answer_of(0, "*\tab:refs/heads/bb\t[new branch]\n", ""), PushAnswer::Unclear(_)),
            "another ref"
        );
    }

    #[test]
    fn the_question_is_answered_for_exactly_that_ref() {
        let id = "a".repeat(40);
        let text = format!("{}\trefs/x/refs/heads/b\n{id}\t{NAME}\n", "b".repeat(40));
        assert_eq!(
            parse_named_object(text.as_bytes(), NAME).expect("read"),
            Some(id.parse().expect("an id"))
        );
        assert_eq!(parse_named_object(b"", NAME).expect("read"), None);
        assert!(parse_named_object(b"junk\trefs/heads/b\n", NAME).is_err());
    }
}
