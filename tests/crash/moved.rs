//! A delivery that was cut off, in a repository that is moved before anybody puts it in order.

use crate::mixed::{Stage, alike};
use crate::strace::{What, calls, can_trace, disturbed};
use crate::support::snapshot::tree;
use crate::support::{Lab, Repo};

#[test]
fn what_was_cut_off_is_put_in_order_where_the_repository_is_now() {
    if !can_trace() {
        return;
    }
    let (first, second) = (Lab::within(&crate::independent::memory()), Lab::new());
    let (files, staged) =
        (killed_and_moved(&Stage::delivery(&first)), killed_and_moved(&Stage::staged(&second)));
    let (forward, back) = (files.0 + staged.0, files.1 + staged.1);
    crate::support::say(&format!("crash moved: {forward} went forward, {back} back, losses: 0"));
    assert!(forward > 3 && back > 3, "the kills did not fall where they should");
}

/// How often recovery went forward and back.
fn killed_and_moved(stage: &Stage<'_>) -> (usize, usize) {
    let lab = stage.repo.lab;
    let (mut forward, mut back) = (0, 0);
    let all = calls(&stage.repo, &["deliver", "t1"], 1000);
    for call in all.iter().filter(|call| !call.is_sync()).step_by(9) {
        stage.again();
        if !disturbed(&stage.repo, &["deliver", "t1"], call, What::Kill).1 {
            continue;
        }
        std::fs::rename(lab.path("app"), lab.path("moved")).expect("renames");
        let moved = Repo::at(lab, lab.path("moved"));
        moved.json(&["recover"]).ok();
        let now = tree(&moved.path);
        let done = alike(&stage.after, &now);
        assert!(done || alike(&stage.before, &now), "killed before {}: {now:#?}", call.line);
        (forward, back) = (forward + usize::from(done), back + usize::from(!done));
        moved.json(&["deliver", "t1"]).ok();
        assert!(alike(&stage.after, &tree(&moved.path)), "killed before {}", call.line);
        std::fs::rename(lab.path("moved"), lab.path("app")).expect("renames");
    }
    (forward, back)
}
