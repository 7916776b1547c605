//! The clients that no one here wrote: where they lie, and how each is told to work through `git-tender mcp`
//! alone.

use crate::stand_in::{Api, StandIn};
use crate::support::lab::{TENDER, run};
use crate::support::{Out, Repo, skip};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One of them, by the name of its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Inspector,
    Python,
    Codex,
    Claude,
}

/// Those that think with a model.
pub const AGENTS: [Client; 2] = [Client::Codex, Client::Claude];

impl Client {
    /// Where `tests/clients/install` puts it: beside cargo's own folder for tests.
    fn program(self) -> PathBuf {
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("clients");
        place.join(match self {
            Self::Inspector => "bin/inspector",
            Self::Python => "python/bin/python",
            Self::Codex => "bin/codex",
            Self::Claude => "bin/claude",
        })
    }

    /// True where it is installed; says so otherwise, and in CI that is a failure.
    pub fn is_there(self) -> bool {
        let there = self.program().exists();
        if !there {
            skip(&format!("{self:?} is not installed; tests/clients/install does it"));
        }
        there
    }

    pub fn api(self) -> Api {
        match self {
            Self::Codex => Api::Responses,
            _ => Api::Messages,
        }
    }

    /// The client in the laboratory, at a folder that has nothing of the repository's in it.
    pub fn command(self, repo: &Repo<'_>) -> Command {
        let desk = repo.lab.path("desk");
        std::fs::create_dir_all(&desk).expect("made");
        repo.lab.command(self.program(), &desk)
    }

    /// An agent that does what the stand-in says, with the tools of one task and no other.
    pub fn agent(self, repo: &Repo<'_>, task: &str, model: &StandIn) -> Command {
        let mut command = self.command(repo);
        match self {
            Self::Codex => codex(&mut command, repo, task, model),
            Self::Claude => claude(&mut command, repo, task, model),
            other => panic!("{other:?} is no agent"),
        }
        command
    }

    /// Runs an agent to its end, which must be a good one and come in time, and gives what it printed.
    #[track_caller]
    pub fn works(self, repo: &Repo<'_>, task: &str, model: &StandIn) -> Out {
        let agent = self.agent(repo, task, model);
        let mut command = repo.lab.command("timeout", agent.get_current_dir().expect("a folder"));
        command.arg("--kill-after=5").arg("120").arg(agent.get_program()).args(agent.get_args());
        command.envs(agent.get_envs().filter_map(|(name, value)| Some((name, value?))));
        run(command, None).ok()
    }
}

/// The arguments that make the program serve a task of this repository, wherever the client starts it.
pub fn serve<'a>(repo: &'a Repo<'_>, task: &'a str) -> [&'a str; 4] {
    ["-C", crate::support::repo::path_text(&repo.path), "mcp", task]
}

fn codex(command: &mut Command, repo: &Repo<'_>, task: &str, model: &StandIn) {
    let home = repo.lab.path("codex");
    std::fs::create_dir_all(&home).expect("made");
    let provider = format!(
        "{{name=\"stand-in\",base_url={:?},env_key=\"STAND_IN_KEY\",wire_api=\"responses\",request_max_retries=0,stream_max_retries=0}}",
        model.url()
    );
    let server = format!(
        "{{command={TENDER:?},args={:?},required=true,default_tools_approval_mode=\"approve\",tool_timeout_sec=60}}",
        serve(repo, task)
    );
    command.env("CODEX_HOME", home).env("STAND_IN_KEY", "none");
    command.args(["exec", "--json", "--skip-git-repo-check", "-m", "stand-in", "-s", "read-only"]);
    command.args(["--disable", "shell_tool", "-c", "model_provider=stand-in"]);
    command.args(["-c", &format!("model_providers.stand-in={provider}")]);
    command.args(["-c", &format!("mcp_servers.tender={server}"), "Do the task."]);
}

fn claude(command: &mut Command, repo: &Repo<'_>, task: &str, model: &StandIn) {
    let server = json!({"mcpServers": {"tender": {"command": TENDER, "args": serve(repo, task)}}});
    command.env("CLAUDE_CONFIG_DIR", repo.lab.path("claude"));
    command.env("ANTHROPIC_BASE_URL", model.url()).env("ANTHROPIC_API_KEY", "none");
    command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("DISABLE_AUTOUPDATER", "1");
    command.args(["-p", "Do the task.", "--output-format", "json", "--tools", ""]);
    command.args(["--strict-mcp-config", "--mcp-config", &server.to_string()]);
    command.args(["--allowedTools", "mcp__tender__*"]);
}
