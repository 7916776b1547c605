//! The remote's side: a push with a time limit, and the questions whose answers say what became of it.

use crate::domain::delivery::publication::{Publication, Standing};
use crate::domain::delivery::publishing::Publishing;
use crate::domain::ledger::record::Opened;
use crate::domain::value::digest::ObjectId;
use crate::error::presence::is_folder;
use crate::error::{Code, Failure, Result, Retry};
use crate::git::command::GitCall;
use crate::git::push::{self, PushAnswer, PushTarget};
use crate::process::redact::Secrets;
use crate::process::{self, Invocation, ProgramEnd};
use crate::task::Session;
use crate::task::effect::refs::{Moved, branch};
use std::path::Path;
use std::time::Duration;

/// How long a push may take where `tender.pushTimeout` does not say.
const PUSH_SECONDS: u64 = 300;
/// How long a question may take.
const ASK: Duration = Duration::from_secs(60);

/// What a look at the ref says.
#[derive(Debug)]
pub(super) enum Asked {
    /// It is there, perhaps below commits of others; what else to know.
    Arrived(Vec<String>),
    /// The ref is what it was before.
    Unchanged,
    /// The ref names something else, which does not hold ours.
    Foreign(Option<ObjectId>),
    /// Nobody can say, and why.
    Unknown(String),
}

/// What a call left behind.
struct Ran {
    /// `None` where it did not end by itself.
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// Why it did not end by itself.
    cut: Option<String>,
    /// True where it was ended because nobody wants it any more.
    unwanted: bool,
}

impl Ran {
    /// The output of a call that went well; what was said otherwise.
    fn ok(self) -> std::result::Result<Vec<u8>, String> {
        match (self.cut, self.code) {
            (Some(cut), _) => Err(cut),
            (None, Some(0)) => Ok(self.stdout),
            _ => Err(push::remote_words(&String::from_utf8_lossy(&self.stderr)).replace('\n', "; ")),
        }
    }
}

/// True as long as a call is wanted.
pub(super) type Wanted<'a> = &'a dyn Fn() -> bool;

fn run_call(
    session: &Session,
    opened: &Opened,
    target: &PushTarget,
    call: GitCall,
    (limit, wanted): (Duration, Wanted<'_>),
) -> Result<Ran> {
    let top = Path::new(&opened.home.top);
    // An address may be a relative path: git reads it from the top of the working tree.
    let cwd = if is_folder(top)? { top } else { session.repository.common_dir() };
    let mut command = Invocation::new(call.argv, cwd);
    command.env = call.env;
    command.timeout = limit;
    let finished = process::run_program(&session.machine.program, &command, &|_| wanted())?;
    let unwanted = matches!(finished.end, ProgramEnd::Stopped);
    let (code, cut) = match finished.end {
        ProgramEnd::Exited(code) => (Some(code), None),
        ProgramEnd::Signalled(signal) => (None, Some(format!("git was ended by signal {signal}"))),
        ProgramEnd::TimedOut => {
            (None, Some(format!("there was no answer within {} seconds", limit.as_secs())))
        }
        ProgramEnd::Stopped => (None, Some("it was ended, since the task was cancelled".to_owned())),
        ProgramEnd::SupervisorLost => (None, Some("git was lost while it ran".to_owned())),
        ProgramEnd::NotStarted { message, .. } => return Err(Failure::new(Code::GitUnsupported, message)),
    };
    // Only what people read: a password that happens to be a part of an id would make the answer unreadable.
    let secrets = Secrets::new(&target.secrets_in_url());
    let stderr = secrets.redact_text(&String::from_utf8_lossy(&finished.stderr.bytes));
    Ok(Ran { code, stdout: finished.stdout.bytes, stderr: stderr.into_bytes(), cut, unwanted })
}

fn push_limit(session: &Session) -> Result<Duration> {
    let Some(text) = session.repository.config_value("tender.pushTimeout")? else {
        return Ok(Duration::from_secs(PUSH_SECONDS));
    };
    text.parse().ok().filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or_else(|| {
        Failure::new(
            Code::ConfigInvalid,
            format!("tender.pushTimeout is {text:?}, which is no number of seconds"),
        )
        .subject("tender.pushTimeout")
        .expected("a number of seconds from 1 on", text)
        .remedy("Set it to how long a push may take.", ["git", "config", "tender.pushTimeout", "300"])
    })
}

fn target(session: &Session, publication: &Publication) -> Result<PushTarget> {
    let remote = publication.remote.as_ref();
    let remote = remote.ok_or_else(|| Failure::internal("a push without a remote"))?;
    PushTarget::find_recorded(&session.repository, remote)
}

/// What a ref of the remote names. The failure is `io`: it could not be asked, and nothing was sent.
pub(super) fn object_there(
    session: &Session,
    opened: &Opened,
    publication: &Publication,
) -> Result<Option<ObjectId>> {
    let target = target(session, publication)?;
    let reference = publication.ref_name();
    let call = push::ask_call(&session.repository, &target, &reference);
    run_call(session, opened, &target, call, (ASK, &|| true))?
        .ok()
        .and_then(|stdout| {
            push::parse_named_object(&stdout, &reference).map_err(|failure| failure.message().to_owned())
        })
        .map_err(|why| {
            Failure::new(Code::Io, format!("{} could not be asked for: {why}", publication.place_name()))
                .subject(reference)
                .retry(Retry::Wait)
                .detail("remote", &target.remote.name)
                .detail("url", &target.remote.url)
                .remedy(
                    "Nothing was sent. Try again once it can be reached.",
                    ["git", "ls-remote", &target.remote.name],
                )
        })
}

/// Looks what became of a publication, here or on the remote.
pub(super) fn look_at_ref(session: &Session, opened: &Opened, publishing: &Publishing) -> Asked {
    let publication = &publishing.publication;
    let there = match publication.remote {
        None => branch::resolve_commit(&session.repository, &publication.ref_name()),
        Some(_) => object_there(session, opened, publication),
    };
    let there = match there {
        Ok(there) => there,
        Err(failure) => return Asked::Unknown(failure.message().to_owned()),
    };
    match (publication.compare_ref(there.as_ref()), &publication.new, there) {
        (Standing::Arrived, ..) => Asked::Arrived(Vec::new()),
        (Standing::Unchanged, ..) => Asked::Unchanged,
        (Standing::Foreign, Some(ours), Some(there)) if !publishing.undoes => {
            find_below(session, opened, publication, ours, there)
        }
        (Standing::Foreign, _, there) => Asked::Foreign(there),
    }
}

/// Whether our commit is in the history of what is there.
fn find_below(
    session: &Session,
    opened: &Opened,
    publication: &Publication,
    ours: &ObjectId,
    there: ObjectId,
) -> Asked {
    let quarantine = session.quarantine(&opened.contract.task_id);
    let fetched = match &publication.remote {
        None => Ok(()),
        Some(_) => {
            target(session, publication).map_err(|failure| failure.message().to_owned()).and_then(|target| {
                let call =
                    push::fetch_call(&session.repository, &quarantine, &target, &publication.ref_name());
                let ran = run_call(session, opened, &target, call, (ASK, &|| true))
                    .map_err(|failure| failure.message().to_owned())?;
                ran.ok().map(drop)
            })
        }
    };
    if let Err(why) = fetched {
        return Asked::Unknown(format!(
            "{} names {there}, which could not be fetched: {why}",
            publication.place_name()
        ));
    }
    match branch::is_ancestor(&session.repository, Some(&quarantine), ours, &there) {
        Ok(Some(true)) => {
            let place = publication.place_name();
            Asked::Arrived(vec![format!("others have committed on top of it: {place} names {there} by now")])
        }
        Ok(Some(false)) => Asked::Foreign(Some(there)),
        _ => Asked::Unknown(format!("the history of {there} could not be looked through")),
    }
}

/// Pushes, and finds out what came of it.
pub(super) fn send(session: &Session, opened: &Opened, publishing: &Publishing, wanted: Wanted<'_>) -> Moved {
    let publication = &publishing.publication;
    let pushed = target(session, publication).and_then(|target| {
        let limit = push_limit(session)?;
        let call = push::push_call(&session.repository, &target, publication, &publishing.push_options);
        run_call(session, opened, &target, call, (limit, wanted))
    });
    let ran = match pushed {
        // git was not even started.
        Err(failure) => return Moved::Refused(failure),
        Ok(ran) => ran,
    };
    let said = match ran.cut {
        Some(cut) => PushAnswer::Unclear(cut),
        None => push::parse_push_answer(ran.code, &ran.stdout, &ran.stderr, &publication.ref_name()),
    };
    if said == PushAnswer::Accepted {
        return Moved::Done(Vec::new());
    }
    let task = &opened.contract.task_id;
    let moved = conclude_push(publishing, task, said, look_at_ref(session, opened, publishing));
    if ran.unwanted { end_unwanted(publishing, task, moved) } else { moved }
}

/// What a push that was ended in the middle comes to: whatever the look said, it was cancelled, unless it had
/// arrived.
fn end_unwanted(publishing: &Publishing, task: &str, moved: Moved) -> Moved {
    let cancelled = |effect: String| {
        let message = format!("the task {task} was cancelled while its push was under way: {effect}");
        let failure = Failure::new(Code::Cancelled, message).subject(task).detail("effects", [effect]);
        with_remote(failure, &publishing.publication)
            .remedy("See what it had come to.", ["git", "tender", "report", task])
    };
    match moved {
        Moved::Done(notes) => Moved::Done(notes),
        Moved::Unknown(_) => Moved::Unknown(cancelled(publishing.effect_sentence())),
        Moved::Refused(_) | Moved::Nothing(_) => Moved::Nothing(cancelled(publishing.late_effect())),
    }
}

/// What an answer that is no acceptance and a look at the ref come to.
fn conclude_push(publishing: &Publishing, task: &str, said: PushAnswer, asked: Asked) -> Moved {
    let publication = &publishing.publication;
    match (asked, said) {
        (Asked::Arrived(notes), _) => Moved::Done(notes),
        (Asked::Foreign(there), PushAnswer::Unclear(_)) => {
            Moved::Nothing(publication.ref_conflict(there.as_ref(), task))
        }
        (Asked::Foreign(there), _) => Moved::Refused(publication.ref_conflict(there.as_ref(), task)),
        // The server's own word counts, whether or not it can be asked now.
        (_, PushAnswer::Refused(words)) => Moved::Refused(refused_by_server(publication, &words)),
        (Asked::Unknown(_), PushAnswer::Lease) => {
            Moved::Refused(publication.ref_conflict(None, task).detail("actual", "not known"))
        }
        (Asked::Unchanged, PushAnswer::NotSupported(words)) => {
            Moved::Refused(not_supported(publication, &words))
        }
        (Asked::Unknown(why), PushAnswer::Unclear(words) | PushAnswer::NotSupported(words)) => {
            Moved::Unknown(publishing.outcome_unknown(&words.replace('\n', "; ")).detail("asked", why))
        }
        (_, PushAnswer::Unclear(words)) => Moved::Nothing(not_arrived(publishing, &words, task)),
        (..) => Moved::Nothing(not_arrived(publishing, "the lease did not hold, but does by now", task)),
    }
}

fn not_arrived(publishing: &Publishing, words: &str, task: &str) -> Failure {
    let publication = &publishing.publication;
    let place = publication.place_name();
    let message = format!(
        "the push has not arrived yet: {place} still named what it named before when it was asked. git said: {}",
        words.replace('\n', "; ")
    );
    let failure = Failure::new(Code::Io, message).subject(publication.ref_name()).retry(Retry::Wait);
    let text = "Repeat it: the same commit is sent with the same lease, so that even a late arrival of the first does no harm.";
    with_remote(failure, publication)
        .detail("effects", [publishing.late_effect()])
        .remedy(text, ["git", "tender", "deliver", task])
}

fn refused_by_server(publication: &Publication, words: &str) -> Failure {
    let message = format!("the server refused {}: {words}", publication.place_name());
    let failure = Failure::new(Code::PermissionDenied, message).subject(publication.ref_name());
    let text = "The server's rules decide. Correct the change, or ask whoever keeps them.";
    with_remote(failure, publication).detail("server", words).remedy(text, ["git", "tender", "status"])
}

fn not_supported(publication: &Publication, words: &str) -> Failure {
    let message =
        format!("the server of {} cannot do what the push asks for: {words}", publication.place_name());
    let failure = Failure::new(Code::NotSupported, message).subject("delivery.pushOptions");
    let text =
        "Nothing was sent. Leave the push options out of the contract, or let the server advertise them.";
    with_remote(failure, publication)
        .detail("server", words)
        .remedy(text, ["git", "config", "receive.advertisePushOptions", "true"])
}

fn with_remote(failure: Failure, publication: &Publication) -> Failure {
    let failure = failure.detail("ref", publication.ref_name()).detail("commit", &publication.new);
    match &publication.remote {
        Some(remote) => failure.detail("remote", &remote.name).detail("url", &remote.url),
        None => failure,
    }
}
