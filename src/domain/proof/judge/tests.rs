//! Every line of the table of verdicts, and that records only ever count for their own key.

use crate::domain::contract::clause::{Clause, Origin, Permission};
use crate::domain::proof::evidence::{
    Attestation, EvidenceKey, Identity, SCHEMA, Subject, Tool, listing_digest,
};
use crate::domain::proof::judge::*;
use crate::domain::proof::verdict::{Checks, Row, Strength, Verdict};
use crate::domain::value::digest::{Mode, ObjectFormat};
use crate::domain::value::repo_path::RepoPath;
use proptest::prelude::*;

fn identity() -> Identity {
    Identity {
        manifest: Sha256::of(b"manifest"),
        argv: vec!["make".to_owned()],
        closure: Vec::new(),
        tools: vec![Tool { name: "make".to_owned(), sha256: Sha256::of(b"make"), probe: None }],
        env: [("A".to_owned(), None)].into(),
        read: std::collections::BTreeMap::new(),
        checkout: Vec::new(),
        sandbox: "none".to_owned(),
        tender_version: "1".to_owned(),
    }
}

fn file(path: &str, bytes: &str) -> InputFile {
    InputFile {
        git_blob: ObjectFormat::Sha1.blob_id(bytes.as_bytes()).expect("hashes"),
        mode: Mode::File,
        path: RepoPath::new(path).expect("a path"),
        sha256: Sha256::of(bytes.as_bytes()),
    }
}

fn key(inputs: &str) -> EvidenceKey {
    EvidenceKey {
        requirement: Sha256::of(b"text"),
        verifier: identity().digest(),
        inputs: Sha256::of(inputs.as_bytes()),
        platform: "linux-x86_64".to_owned(),
    }
}

fn observed(id: &str, source: Source) -> Observed {
    let clause = Clause {
        id: id.to_owned(),
        text: "text".to_owned(),
        verifier: id.to_owned(),
        required: true,
        origin: Origin::Requirement,
        permission: Permission::Allowed,
    };
    Observed {
        clause,
        title: None,
        source,
        key: Some(key("now")),
        identity: Some(identity()),
        listing: None,
        base_key: Some(key("base")),
        counts: true,
        reuse: Reuse::SameInputs,
        judge_changed: false,
    }
}

fn observation(rows: Vec<Observed>) -> Observation {
    Observation {
        task: "t1".to_owned(),
        candidate: 2,
        contract_version: 1,
        manifest_sha256: Sha256::of(b"m"),
        kind: Kind::Edit,
        flaky: Flaky::Fail,
        rows,
    }
}

fn counted(passed: u64, failed: u64) -> Checks {
    Checks { ran: passed + failed, passed, failed, skipped: 0, flaky: 0 }
}

/// A record for the row `unit`, with something changed.
fn record(outcome: Verdict, change: impl FnOnce(&mut Evidence)) -> Record {
    let tree = ObjectFormat::Sha1.blob_id(b"tree").expect("hashes");
    let mut evidence = Evidence {
        schema: SCHEMA.to_owned(),
        kind: EvidenceKind::Run,
        run: "r".to_owned(),
        nonce: "n".to_owned(),
        task: "t1".to_owned(),
        candidate: 2,
        contract_version: 1,
        requirement: "unit".to_owned(),
        verifier: "unit".to_owned(),
        subject: Subject { tree: tree.clone(), base_tree: tree, manifest_sha256: Sha256::of(b"m") },
        key: key("now"),
        identity: identity(),
        listing: None,
        outcome,
        reason: (outcome != Verdict::Passed).then(|| "exit code 1".to_owned()),
        checks: Some(if outcome == Verdict::Passed { counted(2, 0) } else { counted(1, 1) }),
        cases: None,
        flaky: false,
        warm: false,
        clearing: false,
        attempts: Vec::new(),
        outputs: Vec::new(),
        findings: Vec::new(),
        started_at: String::new(),
        finished_at: String::new(),
        sandbox: "none".to_owned(),
        attestation: None,
    };
    change(&mut evidence);
    (evidence.digest(), evidence)
}

fn on_the_base(outcome: Verdict, checks: Option<Checks>) -> Record {
    record(outcome, |e| (e.kind, e.key, e.checks) = (EvidenceKind::BaseRun, key("base"), checks))
}

fn no_listing(_: &Sha256) -> Option<Vec<InputFile>> {
    None
}

fn row(observed: Observed, records: &[Record]) -> Row {
    rows(&observation(vec![observed]), records, &no_listing).remove(0)
}

fn said(observed: Observed, records: &[Record]) -> (Verdict, String) {
    let row = row(observed, records);
    (row.verdict, row.reason.unwrap_or_default())
}

fn unit() -> Observed {
    observed("unit", Source::Command)
}

#[test]
fn what_did_not_run_says_why() {
    let pass = [record(Verdict::Passed, |_| {})];
    for (source, words) in [
        (Source::Forbidden, "forbidden by contract"),
        (Source::NotAllowed, "unit is not among the verifiers that the contract allows"),
        (
            Source::OnlyIn { place: "the candidate".to_owned() },
            "its manifest .tender/verifiers/unit/verifier.toml is not in the base commit, only in the candidate",
        ),
        (Source::Missing { what: "make was not found on PATH".to_owned() }, "make was not found on PATH"),
    ] {
        // A record that would be fresh does not help.
        assert_eq!(said(observed("unit", source), &pass), (Verdict::NotRun, words.to_owned()));
    }
    assert_eq!(said(unit(), &[]), (Verdict::NotRun, "never run on this candidate".to_owned()));
}

#[test]
fn a_run_says_what_it_said() {
    let passed = row(unit(), &[record(Verdict::Passed, |_| {})]);
    assert_eq!((passed.verdict, passed.reason, passed.reused), (Verdict::Passed, None, false));
    assert!(passed.evidence.is_some_and(|digest| digest.starts_with("sha256:")));
    assert_eq!(passed.checks, Some(counted(2, 0)));
    for verdict in [Verdict::Failed, Verdict::Error, Verdict::NotRun] {
        assert_eq!(said(unit(), &[record(verdict, |_| {})]), (verdict, "exit code 1".to_owned()));
    }
    let earlier = record(Verdict::Passed, |e| e.candidate = 1);
    assert!(row(unit(), &[earlier]).reused);
    // An error and a pass do not contradict each other; the last run counts.
    let error = record(Verdict::Error, |_| {});
    assert_eq!(said(unit(), &[error.clone(), record(Verdict::Passed, |_| {})]).0, Verdict::Passed);
    assert_eq!(said(unit(), &[record(Verdict::Passed, |_| {}), error]).0, Verdict::Error);
}

#[test]
fn disagreement_is_flaky_in_either_order() {
    let (pass, fail) = (record(Verdict::Passed, |_| {}), record(Verdict::Failed, |_| {}));
    for records in [[pass.clone(), fail.clone()], [fail.clone(), pass.clone()]] {
        let (verdict, reason) = said(unit(), &records);
        assert!(verdict == Verdict::Failed && reason.starts_with("flaky"), "{reason}");
    }
    let within = record(Verdict::Passed, |e| e.flaky = true);
    assert_eq!(said(unit(), std::slice::from_ref(&within)).0, Verdict::Failed);
    let mut warn = observation(vec![unit()]);
    warn.flaky = Flaky::Warn;
    let rows_of = |records: &[Record]| rows(&warn, records, &no_listing).remove(0);
    assert_eq!(rows_of(std::slice::from_ref(&within)).verdict, Verdict::Passed);
    assert!(rows_of(std::slice::from_ref(&within)).reason.is_some_and(|reason| reason.starts_with("flaky")));
    assert_eq!(rows_of(&[pass, fail]).verdict, Verdict::Failed, "it failed last");
    assert_eq!(missing(&warn, &[within]).len(), 1, "and is not reused");
}

#[test]
fn staleness_names_what_changed() {
    let words = |change: &dyn Fn(&mut Evidence)| {
        let (verdict, reason) = said(unit(), &[record(Verdict::Passed, |e| change(e))]);
        assert_eq!(verdict, Verdict::Stale, "{reason}");
        reason
    };
    assert_eq!(words(&|e| e.key.requirement = Sha256::of(b"other")), "the requirement's text changed");
    assert_eq!(words(&|e| e.key.inputs = Sha256::of(b"other")), "the candidate changed");
    assert_eq!(words(&|e| e.key.platform = "mars".to_owned()), "it was made on mars, this is linux-x86_64");
    let part = |change: &dyn Fn(&mut Identity)| {
        words(&|e| {
            change(&mut e.identity);
            e.key.verifier = e.identity.digest();
        })
    };
    assert_eq!(part(&|i| i.manifest = Sha256::of(b"x")), "the manifest changed");
    assert_eq!(part(&|i| i.argv.clear()), "the command changed");
    assert_eq!(part(&|i| i.tools[0].sha256 = Sha256::of(b"x")), "the tool make changed");
    assert_eq!(part(&|i| i.tools[0].probe = Some(Sha256::of(b"x"))), "the tool make changed");
    assert_eq!(part(&|i| i.tools.clear()), "the tool make is new");
    assert_eq!(
        part(&|i| i.env = [("A".to_owned(), Some(Sha256::of(b"x")))].into()),
        "the variable A changed"
    );
    assert_eq!(part(&|i| i.checkout.push("x".to_owned())), "the settings of the checkout changed");
    assert_eq!(part(&|i| i.sandbox = "full".to_owned()), "the sandbox was full, it is none");
    assert_eq!(part(&|i| i.tender_version = "0".to_owned()), "git-tender was 0, it is 1");
    assert_eq!(part(&|i| i.closure = vec![file("run.sh", "x")]), "closure: run.sh was removed");
    // Another task's record is nobody's stale evidence, a base run neither.
    let foreign = record(Verdict::Passed, |e| (e.task, e.key.inputs) = ("t2".to_owned(), Sha256::of(b"x")));
    assert_eq!(said(unit(), &[foreign, on_the_base(Verdict::Passed, None)]).0, Verdict::NotRun);
    let mut never = unit();
    never.reuse = Reuse::Never;
    assert_eq!(said(never, &[record(Verdict::Passed, |e| e.candidate = 1)]).0, Verdict::Stale);
}

#[test]
fn stale_inputs_are_named_by_path() {
    let before = vec![file("a", "1"), file("b", "1"), file("d", "1"), file("e", "1"), file("f", "1")];
    let now = vec![file("a", "2"), file("b", "1"), file("c", "1"), file("e", "2"), file("f", "2")];
    let mut unit = unit();
    unit.key = Some(EvidenceKey { inputs: listing_digest(&now), ..key("") });
    unit.listing = Some(Sha256::of(b"now"));
    let old = record(Verdict::Passed, |e| {
        (e.key.inputs, e.listing) = (listing_digest(&before), Some(Sha256::of(b"before")))
    });
    let listings =
        |digest: &Sha256| Some(if *digest == Sha256::of(b"now") { now.clone() } else { before.clone() });
    let row = rows(&observation(vec![unit]), &[old], &listings).remove(0);
    assert_eq!(row.reason.as_deref(), Some("a changed, c was added, d was removed, and 2 more"));
}

#[test]
fn a_persons_word_counts_for_one_candidate() {
    for source in [Source::Manual, Source::Protected { why: Vec::new() }] {
        let manual = || observed("unit", source.clone());
        let word = |outcome, inputs: &str| {
            record(outcome, |e| {
                (e.kind, e.key) = (EvidenceKind::Attestation, key(inputs));
                e.attestation = Some(Attestation { person: "p".to_owned(), message: "no good".to_owned() });
            })
        };
        assert_eq!(said(manual(), &[]).0, Verdict::NeedsConfirmation);
        assert_eq!(said(manual(), &[word(Verdict::Passed, "now")]), (Verdict::Passed, String::new()));
        let failed = said(manual(), &[word(Verdict::Passed, "now"), word(Verdict::Failed, "now")]);
        assert_eq!(failed, (Verdict::Failed, "attested as failed: no good".to_owned()));
        let (verdict, reason) = said(manual(), &[word(Verdict::Passed, "other")]);
        assert!(verdict == Verdict::NeedsConfirmation && reason.contains("other bytes"), "{reason}");
        // A run cannot stand for a person, nor a person for a run.
        assert_eq!(said(manual(), &[record(Verdict::Passed, |_| {})]).0, Verdict::NeedsConfirmation);
        assert_eq!(said(unit(), &[word(Verdict::Passed, "now")]).0, Verdict::NotRun);
        assert!(missing(&observation(vec![manual()]), &[]).is_empty());
    }
}

#[test]
fn strength_comes_from_the_base() {
    let pass = record(Verdict::Passed, |_| {});
    let with = |base: Record| row(unit(), &[base, pass.clone()]).strength;
    assert_eq!(row(unit(), std::slice::from_ref(&pass)).strength, Strength::Unmeasured);
    assert_eq!(with(on_the_base(Verdict::Passed, Some(counted(1, 0)))), Strength::NoRegression);
    assert_eq!(with(on_the_base(Verdict::Failed, Some(counted(1, 1)))), Strength::Fixed);
    assert_eq!(with(on_the_base(Verdict::Failed, Some(counted(0, 0)))), Strength::Unmeasured);
    assert_eq!(with(on_the_base(Verdict::Error, None)), Strength::Unmeasured);
    let failed = row(unit(), &[on_the_base(Verdict::Passed, None), record(Verdict::Failed, |_| {})]);
    assert_eq!(failed.strength, Strength::Unmeasured);
}

#[test]
fn a_repair_has_to_reproduce() {
    let repair = |rows: Vec<Observed>| Observation { kind: Kind::Repair, ..observation(rows) };
    let pass = record(Verdict::Passed, |_| {});
    let judge = |records: &[Record]| {
        let row = rows(&repair(vec![unit()]), records, &no_listing).remove(0);
        (row.verdict, row.reason.unwrap_or_default())
    };
    assert_eq!(judge(&[on_the_base(Verdict::Failed, Some(counted(1, 1))), pass.clone()]).0, Verdict::Passed);
    for (base, words) in [
        (Some(on_the_base(Verdict::Passed, Some(counted(2, 0)))), "passes on the base already"),
        (Some(on_the_base(Verdict::Failed, None)), "a build error proves nothing"),
        (Some(on_the_base(Verdict::Failed, Some(counted(0, 0)))), "a build error proves nothing"),
        (Some(on_the_base(Verdict::Error, None)), "not run on the base"),
        (None, "not run on the base"),
    ] {
        let records: Vec<Record> = base.into_iter().chain([pass.clone()]).collect();
        let (verdict, reason) = judge(&records);
        assert!(
            verdict == Verdict::Failed && reason.starts_with("not reproduced") && reason.contains(words),
            "{reason}"
        );
    }
    // A row that is not required does not make the repair.
    let mut optional = unit();
    optional.clause.required = false;
    let records = [on_the_base(Verdict::Failed, Some(counted(1, 1))), pass.clone()];
    assert_eq!(rows(&repair(vec![optional]), &records, &no_listing)[0].verdict, Verdict::Failed);
    // Where nothing counts, nothing can show it, and an optional row that counts makes up for nothing.
    let mut bare = unit();
    bare.counts = false;
    let mut beside = observed("cases", Source::Command);
    (beside.clause.required, beside.key, beside.base_key) = (false, Some(key("c")), Some(key("c base")));
    let counted_too = record(Verdict::Passed, |e| e.key = key("c"));
    for base in [on_the_base(Verdict::Failed, Some(counted(1, 1))), on_the_base(Verdict::Passed, None)] {
        let (_, mut base) = base;
        base.key = key("c base");
        let records = [(base.digest(), base), pass.clone(), counted_too.clone()];
        let shown = rows(&repair(vec![bare.clone(), beside.clone()]), &records, &no_listing);
        assert_eq!((shown[0].verdict, shown[1].verdict), (Verdict::Failed, Verdict::Failed), "{shown:?}");
        assert!(!all_required_passed(&shown));
    }
    let uncounted = record(Verdict::Passed, |e| e.checks = None);
    assert_eq!(rows(&repair(vec![bare]), &[uncounted], &no_listing)[0].verdict, Verdict::Failed);
    // The base is run once, before the candidate.
    let jobs = missing(&repair(vec![unit()]), &[]);
    assert_eq!(jobs, [Job { rows: vec![0], on: On::Base }, Job { rows: vec![0], on: On::Candidate }]);
    assert!(missing(&repair(vec![unit()]), &records).is_empty());
}

#[test]
fn rows_of_the_same_words_have_their_own_records() {
    let mut twin = unit();
    twin.clause.id = "twin".to_owned();
    let both = observation(vec![unit(), twin.clone()]);
    let of_twin = |outcome| record(outcome, |e| e.requirement = "twin".to_owned());
    let records = [record(Verdict::NotRun, |_| {}), of_twin(Verdict::Passed)];
    let shown = rows(&both, &records, &no_listing);
    assert_eq!((shown[0].verdict, shown[1].verdict), (Verdict::NotRun, Verdict::Passed));
    let records = [record(Verdict::Passed, |_| {}), of_twin(Verdict::Failed)];
    assert_eq!(rows(&both, &records, &no_listing)[0].verdict, Verdict::Passed, "nor is it flaky");
    // What failed on the base is the other one.
    let mut base = on_the_base(Verdict::Failed, Some(counted(1, 1))).1;
    base.requirement = "twin".to_owned();
    let records = [(base.digest(), base), record(Verdict::Passed, |_| {}), of_twin(Verdict::Passed)];
    let shown = rows(&both, &records, &no_listing);
    assert_eq!((shown[0].strength, shown[1].strength), (Strength::Unmeasured, Strength::Fixed));
    // A requirement that has another name now is still the same.
    assert_eq!(said(twin, &[record(Verdict::Passed, |_| {})]).0, Verdict::Passed);
}

#[test]
fn one_run_shows_all_rows_of_a_verifier() {
    let mut second = unit();
    second.clause.id = "second".to_owned();
    let two = observation(vec![unit(), observed("lint", Source::Builtin), second]);
    let jobs = missing(&two, &[]);
    assert_eq!(jobs.iter().map(|job| job.rows.clone()).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
    let failed = [record(Verdict::Failed, |_| {})];
    assert_eq!(missing(&observation(vec![unit()]), &failed).len(), 1, "a failure is tried again");
    let mut never = unit();
    never.reuse = Reuse::Never;
    let pass = [record(Verdict::Passed, |_| {})];
    assert_eq!(missing(&observation(vec![never]), &pass).len(), 1);
    assert!(missing(&observation(vec![unit()]), &pass).is_empty());
}

#[test]
fn what_was_just_made_is_not_reused() {
    let pass = record(Verdict::Passed, |_| {});
    let mut shown = rows(&observation(vec![unit()]), std::slice::from_ref(&pass), &no_listing);
    mark_reused(&mut shown, &[]);
    assert!(shown[0].reused);
    mark_reused(&mut shown, &[pass.0]);
    assert!(!shown[0].reused && all_required_passed(&shown));
}

proptest! {
    /// Whatever part of the key is another one, the record does not count; and no order of other records
    /// makes it.
    #[test]
    fn only_the_same_key_passes(parts in proptest::collection::vec((0u8..5, any::<bool>()), 0..6)) {
        let records: Vec<Record> = parts
            .iter()
            .map(|(part, pass)| {
                record(if *pass { Verdict::Passed } else { Verdict::Failed }, |e| match part {
                    0 => e.key.requirement = Sha256::of(b"x"),
                    1 => e.key.verifier = Sha256::of(b"x"),
                    2 => e.key.inputs = Sha256::of(b"x"),
                    3 => e.key.platform = "x".to_owned(),
                    _ => {}
                })
            })
            .collect();
        let fresh: Vec<bool> = parts.iter().filter(|(part, _)| *part > 3).map(|(_, pass)| *pass).collect();
        let expected = match (fresh.is_empty(), fresh.iter().all(|pass| *pass)) {
            (true, _) if parts.is_empty() => Verdict::NotRun,
            (true, _) => Verdict::Stale,
            (false, true) => Verdict::Passed,
            (false, false) => Verdict::Failed,
        };
        prop_assert_eq!(row(unit(), &records).verdict, expected);
    }

    /// A listing told by its difference is the same listing.
    #[test]
    fn listings_survive_being_told_by_their_difference(a in proptest::collection::btree_map(0u8..12, 0u8..3, 0..12), b in proptest::collection::btree_map(0u8..12, 0u8..3, 0..12)) {
        let files = |map: &std::collections::BTreeMap<u8, u8>| -> Vec<InputFile> {
            map.iter().map(|(path, bytes)| file(&format!("p{path:02}"), &bytes.to_string())).collect()
        };
        let (a, b) = (files(&a), files(&b));
        let told = crate::domain::proof::evidence::Listing::against(listing_digest(&a), &a, &b);
        prop_assert_eq!(told.resolve(a.clone()), b.clone());
        prop_assert_eq!(listing_digest(&b), Sha256::of_json(&b), "the fast digest is that of the canonical JSON");
        prop_assert_eq!(listing_differences(&a, &b).is_empty(), a == b);
    }
}

#[test]
fn three_passes_in_a_row_clear_what_is_flaky() {
    let fail = record(Verdict::Failed, |_| {});
    let pass = |run: &'static str| record(Verdict::Passed, |e| (e.run, e.clearing) = (run.to_owned(), true));
    let unasked = |run: &'static str| record(Verdict::Passed, |e| e.run = run.to_owned());
    let by_chance = [fail.clone(), unasked("r1"), unasked("r2"), unasked("r3")];
    assert_eq!(said(unit(), &by_chance).0, Verdict::Failed, "nobody asked for it");
    let two = [fail.clone(), pass("r1"), pass("r2")];
    assert_eq!(said(unit(), &two).0, Verdict::Failed);
    assert!(has_to_clear(&observation(vec![unit()]), &missing(&observation(vec![unit()]), &two)[0], &two));
    let three = [fail.clone(), pass("r1"), pass("r2"), pass("r3")];
    assert_eq!(said(unit(), &three).0, Verdict::Passed);
    assert!(missing(&observation(vec![unit()]), &three).is_empty(), "it is reused again");
    // Records of one run are one run, and what comes between breaks the row.
    assert_eq!(said(unit(), &[fail.clone(), pass("r1"), pass("r1"), pass("r2")]).0, Verdict::Failed);
    assert_eq!(said(unit(), &[pass("r1"), pass("r2"), fail, pass("r3")]).0, Verdict::Failed);
}
