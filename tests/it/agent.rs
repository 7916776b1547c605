//! `git tender agent`: snippets for the clients of coding agents.

use crate::support::lab::run;
use crate::support::{Lab, Repo};
use serde_json::{Value, json};

fn nowhere(lab: &Lab) -> Repo<'_> {
    Repo::at(lab, lab.path("home"))
}

#[test]
fn it_works_outside_of_any_repository_and_makes_nothing() {
    let lab = Lab::new();
    let place = nowhere(&lab);
    for what in ["instructions", "mcp", "hooks"] {
        for target in ["codex", "claude"] {
            let object = place.json(&["agent", what, "--target", target]).ok().json;
            assert_eq!(object["schema"], "git-tender/agent/v1");
            assert_eq!([&object["snippet"], &object["target"]], [&json!(what), &json!(target)]);
            assert_eq!(object["taskId"], Value::Null);
            assert!(object["files"].as_array().is_some_and(|files| !files.is_empty()), "{object:#}");
            let out = place.tender(&["agent", what, "--target", target]).exits(0);
            assert_eq!(out.text(), object["text"].as_str().expect("text"), "the snippet and nothing else");
        }
    }
    let left = std::fs::read_dir(&place.path).expect("lists").count();
    assert_eq!(left, 0, "nothing was installed");
}

#[test]
fn the_instructions_name_the_tools_of_this_version() {
    let lab = Lab::new();
    let text = nowhere(&lab).tender(&["agent", "instructions", "--target", "claude", "t1"]).exits(0).text();
    for word in ["`t1`", "`task_status`", "`read_file`", "`apply_patch`", "`run_check`", "`finish`"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn the_entry_for_the_server_is_what_the_client_reads() {
    let lab = Lab::new();
    let place = nowhere(&lab);
    let claude = place.tender(&["agent", "mcp", "--target", "claude", "t1"]).exits(0);
    insta::assert_snapshot!(claude.text(), @r#"
    {
      "mcpServers": {
        "tender": {
          "command": "git-tender",
          "args": [
            "mcp",
            "t1"
          ]
        }
      }
    }
    "#);
    let codex = place.tender(&["agent", "mcp", "--target", "codex", "t1"]).exits(0);
    insta::assert_snapshot!(codex.text(), @r#"
    [mcp_servers.tender]
    command = "git-tender"
    args = ["mcp", "t1"]
    required = true
    default_tools_approval_mode = "approve"
    tool_timeout_sec = 3600
    "#);
    assert!(codex.errors().contains("config.toml"), "{}", codex.errors());
}

#[test]
fn the_hook_says_why_and_exits_with_2() {
    let lab = Lab::new();
    let place = nowhere(&lab);
    for target in ["codex", "claude"] {
        let out = place.tender(&["agent", "hooks", "--target", target]).exits(0);
        assert!(out.errors().contains("gate"), "what they are worth is said: {}", out.errors());
        let settings: Value = serde_json::from_str(&out.text()).expect("JSON");
        let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"].as_str().expect("a command");
        let mut shell = lab.command("sh", &place.path);
        shell.args(["-c", command]);
        let refused = run(shell, Some(b"{\"tool_name\":\"Edit\"}")).exits(2);
        assert!(refused.stdout.is_empty() && refused.errors().contains("tender"), "{}", refused.all());
    }
}

#[test]
fn an_unknown_client_is_told_which_there_are() {
    let lab = Lab::new();
    let place = nowhere(&lab);
    let error = place.json(&["agent", "mcp", "--target", "gemini"]);
    let message = error.fails("arguments.invalid")["message"].as_str().expect("text").to_owned();
    assert!(message.contains("codex") && message.contains("claude"), "{message}");
    place.json(&["agent", "mcp"]).fails("arguments.invalid");
    place.json(&["agent", "everything", "--target", "codex"]).fails("arguments.invalid");
}

#[test]
fn what_can_be_no_tasks_id_is_in_no_snippet() {
    let lab = Lab::new();
    let repo = lab.repo("app");
    for odd in ["", "../t1", "-x", "a b", "t1\nrm", "t1\u{1b}[2J", "`x`"] {
        repo.json(&["agent", "mcp", "--target", "claude", "--", odd]).fails("arguments.invalid");
    }
}
