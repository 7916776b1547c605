//! `resume`: a person adds to a task's budget, and it goes on. Within the policy: what the repository's
//! owners have limited, nobody adds to.

use super::Session;
use crate::domain::contract::budget::{Addition, Amounts, Key};
use crate::domain::ledger::record::Record;
use crate::domain::ledger::report::TaskObject;
use crate::error::{Code, Failure, Result};
use crate::task::held::TaskWrite;
use crate::task::session::unconfirmed;
use crate::task::task_object::known_task_object;
use serde_json::json;

/// Asks the person, then adds. Refused (`permission.denied`) where no person can be reached, or where the
/// policy leaves nothing to add.
pub fn resume(session: &Session, named: Option<&str>, wishes: &[String]) -> Result<TaskObject> {
    let asked = parse(wishes)?;
    let mut task = session.write(named)?;
    task.require_active()?;
    let (added, narrowed) = within_policy(&task, &asked)?;
    let params = json!({ "add": asked });
    let mut action = task.action("resume", &params);
    let id = task.view.id.clone();
    if !asked.is_empty() && added.is_empty() {
        let failure = Failure::new(
            Code::PermissionDenied,
            format!("nothing can be added to the budget of {id}: {}", narrowed.join("; ")),
        )
        .subject(id)
        .detail("narrowed", &narrowed)
        .remedy(
            "The policy of the repository says how much a task may use.",
            ["git", "tender", "report", &task.view.id],
        );
        return Err(action.deny(&mut task.ledger, failure));
    }
    if session.person.confirm(&question(&id, &added)) != Some(true) {
        return Err(action.deny(&mut task.ledger, denied(&id, wishes)));
    }
    action.dispatch(&mut task.ledger)?;
    task.finish(action, &Record::Resumed(Addition { added, narrowed: narrowed.clone() }))?;
    drop(task);
    let mut object = known_task_object(session, &id)?;
    object.narrowed.extend(narrowed);
    Ok(object)
}

/// `KEY=N`, each key once.
fn parse(wishes: &[String]) -> Result<Amounts> {
    let mut asked = Amounts::new();
    for wish in wishes {
        let wrong = |why: &str| {
            Failure::new(Code::ArgumentsInvalid, format!("--add {wish}: {why}"))
                .subject("--add")
                .expected("KEY=N", wish)
                .detail("keys", Key::all_words())
                .remedy("Name a key and how much to add to it.", ["git", "tender", "resume", "--help"])
        };
        let (word, number) =
            wish.split_once('=').ok_or_else(|| wrong("a key, `=` and a number are needed"))?;
        let key = Key::from_word(word).ok_or_else(|| wrong(&format!("there is no budget {word:?}")))?;
        let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let amount = number.parse::<u64>().ok().filter(|_| plain);
        match amount.ok_or_else(|| wrong("what follows `=` is no whole number that fits"))? {
            0 => return Err(wrong("adding nothing changes nothing")),
            amount if asked.insert(key, amount).is_some() => {
                return Err(wrong(&format!("{word} was given already ({amount})")));
            }
            _ => {}
        }
    }
    Ok(asked)
}

/// What of it the policy leaves, and what it takes away, as sentences.
fn within_policy(task: &TaskWrite<'_>, asked: &Amounts) -> Result<(Amounts, Vec<String>)> {
    let effective = &task.view.opened_terms()?.effective;
    let (mut added, mut narrowed) = (Amounts::new(), Vec::new());
    for (key, amount) in asked {
        let (word, limit) = (key.as_str(), task.view.current_limits().limit_of(*key));
        let wanted = limit.checked_add(*amount).ok_or_else(|| {
            Failure::new(
                Code::ArgumentsInvalid,
                format!("--add {word}={amount}: with the {limit} that it has this is too large"),
            )
            .subject("--add")
            .expected(u64::MAX - limit, amount)
        })?;
        let granted = effective.ceiling.get(key).map_or(wanted, |ceiling| wanted.min(*ceiling));
        if granted < wanted {
            narrowed.push(format!("budget.{word} {wanted} narrowed to {} by the policy", granted.max(limit)));
        }
        if granted > limit {
            added.insert(*key, granted - limit);
        }
    }
    Ok((added, narrowed))
}

fn question(task: &str, added: &Amounts) -> String {
    let list: Vec<String> =
        added.iter().map(|(key, amount)| format!("{amount} to {}", key.as_str())).collect();
    match list.as_slice() {
        [] => format!("Let the task {task} go on?"),
        list => format!("Add {} of the budget of {task}?", list.join(" and ")),
    }
}

fn denied(task: &str, wishes: &[String]) -> Failure {
    let mut command = vec!["git".to_owned(), "tender".to_owned(), "resume".to_owned(), task.to_owned()];
    for wish in wishes {
        command.extend(["--add".to_owned(), wish.clone()]);
    }
    unconfirmed(&format!("adding to the budget of {task} is a person's call"), task, command)
}
