//! The tools that a contract may name, and a worker call: the one list of their names.
//!
//! A new tool begins here; the compiler then asks for its arguments, its description (`tools`), and for what
//! authorizes and runs it (`ops::gate::calls`).

/// A tool of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerTool {
    ReadFile,
    ListFiles,
    SearchText,
    ApplyPatch,
    RunCheck,
    /// A contract may name it; this version does not offer it.
    RunCommand,
    NoteFinding,
    RequestInput,
    ProposeAmendment,
    TaskStatus,
    Finish,
    /// A contract may name it; no worker gets it from us.
    Shell,
}

impl WorkerTool {
    /// All of them, in the order in which they are told.
    pub const ALL: [Self; 12] = [
        Self::ReadFile,
        Self::ListFiles,
        Self::SearchText,
        Self::ApplyPatch,
        Self::RunCheck,
        Self::RunCommand,
        Self::NoteFinding,
        Self::RequestInput,
        Self::ProposeAmendment,
        Self::TaskStatus,
        Self::Finish,
        Self::Shell,
    ];

    /// The word for it, in a contract, on the wire and in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::ListFiles => "list_files",
            Self::SearchText => "search_text",
            Self::ApplyPatch => "apply_patch",
            Self::RunCheck => "run_check",
            Self::RunCommand => "run_command",
            Self::NoteFinding => "note_finding",
            Self::RequestInput => "request_input",
            Self::ProposeAmendment => "propose_amendment",
            Self::TaskStatus => "task_status",
            Self::Finish => "finish",
            Self::Shell => "shell",
        }
    }

    /// The tool of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    /// The names of all of them.
    pub fn all_names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }

    /// True for those that every task has, whether its contract names them or not.
    pub const fn is_always_allowed(self) -> bool {
        matches!(self, Self::RequestInput | Self::ProposeAmendment | Self::TaskStatus | Self::Finish)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_is_listed_once_and_found_by_its_name() {
        for (place, tool) in WorkerTool::ALL.into_iter().enumerate() {
            assert_eq!(tool as usize, place, "{}", tool.name());
            assert_eq!(WorkerTool::from_name(tool.name()), Some(tool));
        }
        assert_eq!(WorkerTool::Shell as usize + 1, WorkerTool::ALL.len(), "the last one");
    }
}
