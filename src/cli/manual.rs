//! Man pages and completion scripts, generated from the grammar.

use super::args::Cli;
use crate::domain::ledger::objects::ManualPages;
use crate::error::{Failure, Result};
use crate::store::layout::write_shared;
use clap::CommandFactory;
use std::path::Path;

/// The completion script of a shell.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "git-tender", &mut script);
    script
}

/// Writes one page a command. Without a folder they go where `man` looks for what is installed beside the
/// program.
pub fn write_pages(dir: Option<&Path>, program: &Path) -> Result<ManualPages> {
    let beside =
        program.parent().and_then(Path::parent).map(|prefix| prefix.join("share").join("man").join("man1"));
    let dir = dir
        .map(Path::to_path_buf)
        .or(beside)
        .ok_or_else(|| Failure::internal("the program lies in no folder"))?;
    std::fs::create_dir_all(&dir).map_err(|e| Failure::io("create", &dir, &e))?;
    let mut written =
        ManualPages { schema: "git-tender/man/v1", dir: dir.display().to_string(), pages: Vec::new() };
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    page(&root, "git-tender", &dir, &mut written)?;
    for command in root.get_subcommands().filter(|c| !c.is_hide_set()) {
        page(command, &format!("git-tender-{}", command.get_name()), &dir, &mut written)?;
    }
    Ok(written)
}

fn page(command: &clap::Command, name: &str, dir: &Path, written: &mut ManualPages) -> Result<()> {
    let file = format!("{name}.1");
    let path = dir.join(&file);
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone())
        .title(name)
        .render(&mut text)
        .map_err(|e| Failure::io("make", &path, &e))?;
    write_shared(&path, &text)?;
    written.pages.push(file);
    Ok(())
}
