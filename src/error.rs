//! The one failure type of the program and the one table from code to exit code.
//!
//! Every layer returns [`Failure`]. It says what went wrong, where, what was expected and what was
//! found, whether trying again can help, and which command comes next. Codes are a closed set: other
//! people's scripts match on them, so a code is never renamed or reused for another meaning.

mod cause;
mod details;
pub mod presence;
mod several;

pub use details::DetailKey;
pub use several::clipped;

use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};
use std::fmt;

/// The result of everything that can fail in this crate.
pub type Result<T> = std::result::Result<T, Failure>;

macro_rules! codes {
    ($($variant:ident $text:literal $category:ident $doc:literal;)*) => {
        /// What went wrong, as a stable word. The category and the exit code follow from it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $doc] $variant,)* }

        impl Code {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The stable text of the code, for example `scope.violation`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text,)* }
            }

            /// The category that decides the exit code.
            pub fn category(self) -> Category {
                match self { $(Code::$variant => Category::$category,)* }
            }
        }
    };
}

codes! {
    VerificationFailed "verification.failed" Verification "A required requirement did not pass.";
    EvidenceStale "evidence.stale" Verification "Evidence exists, but for other bytes or another verifier.";
    EvidenceMissing "evidence.missing" Verification "A required requirement has no evidence.";
    VerifierProtocol "verifier.protocol" Verification "A verifier broke the protocol.";
    ArgumentsInvalid "arguments.invalid" Usage "The command line does not fit.";
    ContractInvalid "contract.invalid" Usage "The contract does not fit its schema or contradicts itself.";
    ConfigInvalid "config.invalid" Usage "A file under `.tender/` does not fit its schema.";
    PatchInvalid "patch.invalid" Usage "The patch is damaged or does not apply exactly.";
    NotSupported "not_supported" Usage "A known wish that this version does not fulfil.";
    NotFound "not_found" Usage "Nothing of that name.";
    StateInvalid "state.invalid" Usage "Not possible in the present state.";
    DeliveryConflict "delivery.conflict" Conflict "The live tree is not what the change was made for.";
    VersionConflict "version.conflict" Conflict "A patch or call names another version than the one there.";
    PushConflict "push.conflict" Conflict "The remote ref is not what was delivered last.";
    ScopeViolation "scope.violation" Denied "The change leaves what the contract allows.";
    ToolNotAllowed "tool.not_allowed" Denied "The contract does not name that tool.";
    CheckForbidden "check.forbidden" Denied "The contract forbids that verifier.";
    PermissionDenied "permission.denied" Denied "Only a person, or nobody, may do this.";
    BudgetExhausted "budget.exhausted" Budget "A budget is spent.";
    FailureRepeated "failure.repeated" Budget "The same failure came again and again.";
    ConfirmationRequired "confirmation.required" Person "A person has to confirm.";
    InputRequired "input.required" Person "A person has to answer a question.";
    DecisionRequired "decision.required" Person "A person has to decide.";
    OutcomeUnknown "outcome.unknown" Unknown "It is not known whether the effect took place.";
    Cancelled "cancelled" Cancelled "The task was cancelled.";
    StoreBusy "store.busy" Busy "A lock was not free in time.";
    GitUnsupported "git.unsupported" Environment "This git or this kind of repository cannot be worked with.";
    SandboxUnavailable "sandbox.unavailable" Environment "Confinement cannot be had here.";
    StoreCorrupt "store.corrupt" Environment "The ledger or a stored blob is damaged.";
    StoreRolledBack "store.rolled_back" Environment "The ledger has lost rows that it had.";
    Io "io" Environment "A file or device operation failed.";
    Internal "internal" Internal "A fault of git-tender itself.";
}

/// The group of a code; one exit code each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// A required requirement is not proven.
    Verification,
    /// Bad arguments or documents, or not in this state.
    Usage,
    /// A conflict with the live tree, the base or the remote.
    Conflict,
    Denied,
    Budget,
    Person,
    Unknown,
    Cancelled,
    /// A lock was not free.
    Busy,
    Environment,
    Internal,
}

impl Category {
    /// The exit code of the process.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Verification => 1,
            Self::Usage => 2,
            Self::Conflict => 3,
            Self::Denied => 4,
            Self::Budget => 5,
            Self::Person => 6,
            Self::Unknown => 7,
            Self::Cancelled => 8,
            Self::Busy => 9,
            Self::Environment => 10,
            Self::Internal => 70,
        }
    }

    /// The stable text of the category.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Usage => "usage",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::Budget => "budget",
            Self::Person => "person",
            Self::Unknown => "unknown",
            Self::Cancelled => "cancelled",
            Self::Busy => "busy",
            Self::Environment => "environment",
            Self::Internal => "internal",
        }
    }

    /// Of several categories that hold at once, the one that decides the exit code.
    pub fn dominant(all: &[Category]) -> Option<Category> {
        const ORDER: [Category; 11] = [
            Category::Internal,
            Category::Unknown,
            Category::Usage,
            Category::Denied,
            Category::Conflict,
            Category::Verification,
            Category::Person,
            Category::Budget,
            Category::Cancelled,
            Category::Busy,
            Category::Environment,
        ];
        ORDER.into_iter().find(|category| all.contains(category))
    }
}

/// What the caller can do to get further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Change the arguments or the document.
    FixArguments,
    /// Read the present state again, then decide anew.
    Reread,
    /// Wait and repeat the same call.
    Wait,
    /// A person has to act.
    AskUser,
    /// Ask for the state; do not repeat the effect.
    QueryState,
    Never,
}

impl Retry {
    fn default_for(code: Code) -> Self {
        match code.category() {
            Category::Usage => match code {
                Code::NotSupported => Self::Never,
                Code::StateInvalid => Self::QueryState,
                _ => Self::FixArguments,
            },
            Category::Verification | Category::Person => Self::AskUser,
            Category::Conflict if code == Code::VersionConflict => Self::Reread,
            Category::Conflict | Category::Budget => Self::AskUser,
            Category::Denied | Category::Cancelled | Category::Internal => Self::Never,
            Category::Unknown => Self::QueryState,
            Category::Busy => Self::Wait,
            Category::Environment => Self::AskUser,
        }
    }
}

/// The next step: a sentence and a command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remedy {
    /// One sentence for a person.
    pub text: String,
    /// The command as an argument vector; empty where there is none.
    pub command: Vec<String>,
}

impl Remedy {
    /// What helps with any failure of this code, where nobody knew better.
    fn default_for(code: Code) -> Self {
        let (text, command): (&str, &[&str]) = match code {
            Code::ArgumentsInvalid => ("See what can be called, and how.", &["git", "tender", "-h"]),
            Code::NotSupported => {
                ("Leave it out. The help shows what this version does.", &["git", "tender", "-h"])
            }
            Code::ContractInvalid => (
                "Correct the contract where it says so, then open it again.",
                &["git", "tender", "open", "--help"],
            ),
            Code::ConfigInvalid => (
                "Correct the file and commit it; a task that is opened then uses it.",
                &["git", "add", ".tender"],
            ),
            Code::PatchInvalid => (
                "Make the patch anew, against the base of the task.",
                &["git", "diff", "--binary", "--full-index", "--default-prefix"],
            ),
            _ => match code.category() {
                Category::Unknown => ("Let recovery look at what took place.", &["git", "tender", "recover"]),
                Category::Busy => (
                    "Wait until the other command has ended, then repeat this one.",
                    &["git", "tender", "status"],
                ),
                Category::Environment => {
                    ("See what this machine and repository offer.", &["git", "tender", "doctor"])
                }
                Category::Internal => {
                    ("Please report it, with the last lines of the log.", &["git", "tender", "log"])
                }
                _ => ("See which tasks there are, and their states.", &["git", "tender", "status"]),
            },
        };
        Self { text: text.to_owned(), command: command.iter().map(|word| (*word).to_owned()).collect() }
    }
}

/// A failure, as it is shown on the command line, over MCP and in the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure(Box<Inner>);

#[derive(Debug, Clone, PartialEq)]
struct Inner {
    code: Code,
    message: String,
    subject: Option<String>,
    retry: Retry,
    details: Map<String, Value>,
    remedy: Option<Remedy>,
    reference: Option<String>,
    also: Vec<Failure>,
    more: usize,
}

impl Failure {
    /// A failure with a code and a sentence; the rest is added by the builder methods.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            code,
            message: several::bounded(message.into(), several::LONGEST_SENTENCE),
            subject: None,
            retry: Retry::default_for(code),
            details: Map::new(),
            remedy: None,
            reference: None,
            also: Vec::new(),
            more: 0,
        }))
    }

    /// An operation on a file failed; names what was done and to which path.
    pub fn io(doing: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::new(Code::Io, format!("cannot {doing} {}: {error}", path.display()))
            .subject(path.display().to_string())
            .advised_by(path, error)
    }

    /// A fault of our own; never the user's.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message).remedy(
            "This is a fault of git-tender itself; please report it with the output of `git tender doctor`.",
            ["git", "tender", "doctor"],
        )
    }

    /// The path, field or id that the failure is about.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.0.subject = Some(several::bounded(subject.into(), several::LONGEST_SENTENCE));
        self
    }

    /// What was expected and what was found instead.
    pub fn expected(self, expected: impl Serialize, actual: impl Serialize) -> Self {
        self.detail("expected", expected).detail("actual", actual)
    }

    /// Overrides the retry advice that follows from the code.
    pub fn retry(mut self, retry: Retry) -> Self {
        self.0.retry = retry;
        self
    }

    /// The next step. A command with a word that is too long to be told is left out: cut, it would be another
    /// one.
    pub fn remedy<I, S>(mut self, text: impl Into<String>, command: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        let mut command: Vec<String> = command.into_iter().map(Into::into).collect();
        if command.iter().any(|word| word.len() > several::LONGEST_SENTENCE) {
            command.clear();
        }
        let text = several::bounded(text.into(), several::LONGEST_SENTENCE);
        self.0.remedy = Some(Remedy { text, command });
        self
    }

    /// The next step where it is no command.
    pub fn advice(self, text: impl Into<String>) -> Self {
        self.remedy(text, std::iter::empty::<String>())
    }

    /// Points at a ledger action or a stored log.
    pub fn reference(mut self, reference: impl Into<String>) -> Self {
        self.0.reference = Some(reference.into());
        self
    }

    pub fn code(&self) -> Code {
        self.0.code
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// The next step: the one that was given, else what helps with any failure of this code.
    pub fn next_step(&self) -> Remedy {
        self.0.remedy.clone().unwrap_or_else(|| Remedy::default_for(self.code()))
    }

    /// True where a next step was given.
    pub fn has_remedy(&self) -> bool {
        self.0.remedy.is_some()
    }

    /// The subject, if there is one.
    pub fn subject_text(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// The other failures that hold at the same time.
    pub fn others(&self) -> &[Failure] {
        &self.0.also
    }

    /// The exit code of the process, over this failure and all that hold with it.
    pub fn exit_code(&self) -> u8 {
        let mut categories = vec![self.code().category()];
        categories.extend(self.0.also.iter().map(|f| f.code().category()));
        Category::dominant(&categories).unwrap_or(Category::Internal).exit_code()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Failure {}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let inner = &self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", inner.code.as_str())?;
        map.serialize_entry("category", inner.code.category().as_str())?;
        map.serialize_entry("message", &inner.message)?;
        map.serialize_entry("subject", &inner.subject)?;
        map.serialize_entry("retry", &inner.retry)?;
        map.serialize_entry("details", &inner.details)?;
        map.serialize_entry("remedy", &self.next_step())?;
        map.serialize_entry("ref", &inner.reference)?;
        if !inner.also.is_empty() {
            map.serialize_entry("also", &inner.also)?;
        }
        if inner.more > 0 {
            map.serialize_entry("andMore", &inner.more)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            code: String,
            message: String,
            subject: Option<String>,
            retry: Retry,
            #[serde(default)]
            details: Map<String, Value>,
            remedy: Option<Remedy>,
            #[serde(rename = "ref")]
            reference: Option<String>,
            #[serde(default)]
            also: Vec<Failure>,
            #[serde(default, rename = "andMore")]
            more: usize,
        }
        let wire = Wire::deserialize(deserializer)?;
        let code = Code::ALL
            .iter()
            .copied()
            .find(|code| code.as_str() == wire.code)
            .ok_or_else(|| serde::de::Error::custom(format!("unknown code {:?}", wire.code)))?;
        Ok(Self(Box::new(Inner {
            code,
            message: wire.message,
            subject: wire.subject,
            retry: wire.retry,
            details: wire.details,
            remedy: wire.remedy.filter(|r| !r.text.is_empty() && *r != Remedy::default_for(code)),
            reference: wire.reference,
            also: wire.also,
            more: wire.more,
        })))
    }
}

/// The object that `--format json` prints for a failure.
pub fn error_object(failure: &Failure) -> Value {
    json!({ "error": failure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_survive_the_wire() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.as_str()), "{} twice", code.as_str());
            let failure = Failure::new(*code, "m").subject("s").expected(1, 2);
            let wire = serde_json::to_string(&failure).expect("serializes");
            let back: Failure = serde_json::from_str(&wire).expect("parses");
            assert_eq!(back, failure);
        }
    }

    #[test]
    fn every_code_stands_in_the_documented_table() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/output.md");
        let documentation = std::fs::read_to_string(file).expect("reads");
        for code in Code::ALL {
            let start = format!("| {} | `{}` |", code.category().exit_code(), code.category().as_str());
            let row = documentation.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("no row {start}"));
            assert!(row.contains(&format!("`{}`", code.as_str())), "{} is not in {row}", code.as_str());
        }
    }

    #[test]
    fn the_dominant_category_decides_the_exit_code() {
        let scope = Failure::new(Code::ScopeViolation, "scope");
        let conflict = Failure::new(Code::DeliveryConflict, "conflict");
        let person = Failure::new(Code::ConfirmationRequired, "person");
        let all = Failure::first_of(vec![person, conflict, scope]).expect("one leads");
        assert_eq!(all.code(), Code::ScopeViolation);
        assert_eq!(all.exit_code(), 4);
        assert_eq!(all.others().len(), 2);
    }
}
