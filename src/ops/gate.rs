//! Stand-in.
#![expect(missing_docs, reason = "stand-in")]
use super::Session;
use crate::error::{Code, Failure, Result};
use crate::tools::Spec;
use serde_json::{Value, json};
pub struct Door<'s> { session: &'s Session, task: String }
pub struct Line<'a> { pub wants_to_stop: &'a (dyn Fn() -> bool + Sync), pub progress: &'a dyn Fn(u64, u64, &str) }
#[derive(Debug)]
pub struct Answer { pub result: Result<Value>, pub warning: Option<String>, pub action: Option<String> }
impl<'s> Door<'s> {
    pub fn open(session: &'s Session, task: Option<&str>) -> Result<Door<'s>> {
        let task = session.write(task)?;
        task.require_active()?;
        Ok(Self { session, task: task.view.id.clone() })
    }
    pub fn tools(&self) -> Result<Vec<Spec>> {
        let spec = |name| Spec { name, title: name, description: name, input: json!({"type":"object"}), output: json!({"type":"object"}), read_only: true, destructive: false, idempotent: true };
        Ok(vec![spec("task_status"), spec("run_check")])
    }
    pub fn call(&mut self, name: &str, arguments: Value, line: &Line<'_>) -> Answer {
        let result = match name {
            "task_status" => super::report::brief(self.session, Some(&self.task)).map(|b| json!(b)),
            "run_check" => {
                let mut n = 0;
                while !(line.wants_to_stop)() { n += 1; (line.progress)(n, 0, "waiting"); std::thread::sleep(std::time::Duration::from_millis(20)); }
                Err(Failure::new(Code::Cancelled, "stopped"))
            }
            "panic" => panic!("x"),
            _ => Err(Failure::new(Code::ToolNotAllowed, format!("no tool {name:?} {arguments}"))),
        };
        Answer { result, warning: None, action: None }
    }
}
