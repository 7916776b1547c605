//! Every line of the table of verdicts, and that records only ever count for their own key.

use crate::domain::contract::clause::{Clause, Origin, Permission};
use crate::domain::contract::policy::{BaseRuns, GoneCases};
use crate::domain::proof::cases::{CaseList, CaseOutcome, CountedCase};
use crate::domain::proof::evidence::{Attestation, EvidenceKey, Identity, RepairKeys, SCHEMA, Subject, Tool};
use crate::domain::proof::judge::*;
use crate::domain::proof::listing::{InputFile, Listing, flat_listing_digest, listing_digest};
use crate::domain::proof::verdict::{Checks, Row, Strength, Verdict};
use crate::domain::value::digest::{Mode, ObjectFormat};
use crate::domain::value::repo_path::RepoPath;
use crate::domain::value::scope::Scope;
use proptest::prelude::*;

fn verifier_identity() -> Identity {
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

fn input_file(path: &str, bytes: &str) -> InputFile {
    InputFile {
        git_blob: ObjectFormat::Sha1.blob_id(bytes.as_bytes()).expect("hashes"),
        mode: Mode::File,
        path: RepoPath::new(path).expect("a path"),
        sha256: Sha256::of(bytes.as_bytes()),
    }
}

fn evidence_key(inputs: &str) -> EvidenceKey {
    EvidenceKey {
        requirement: Sha256::of(b"text"),
        verifier: verifier_identity().digest(),
        inputs: Sha256::of(inputs.as_bytes()),
        platform: "linux-x86_64".to_owned(),
    }
}

fn observed_row(id: &str, source: Source) -> Observed {
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
        key: Some(evidence_key("now")),
        identity: Some(verifier_identity()),
        listing: None,
        base_key: Some(evidence_key("base")),
        repair_keys: None,
        base_runs: BaseRuns::Reuse,
        compares_cases: true,
        counts: true,
        reuse: Reuse::SameInputs,
        judge_changed: false,
        dead_inputs: Vec::new(),
    }
}

fn observation_of(rows: Vec<Observed>) -> Observation {
    Observation {
        task: "t1".to_owned(),
        candidate: 2,
        contract_version: 1,
        manifest_sha256: Sha256::of(b"m"),
        kind: Kind::Edit,
        flaky: Flaky::Fail,
        gone_cases: GoneCases::Person,
        case: Scope::default(),
        rows,
    }
}

fn counted_checks(passed: u64, failed: u64) -> Checks {
    Checks { ran: passed + failed, passed, failed, skipped: 0, flaky: 0 }
}

/// A record for the row `unit`, with something changed.
fn record_with(outcome: Verdict, change: impl FnOnce(&mut Evidence)) -> Record {
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
        key: evidence_key("now"),
        identity: verifier_identity(),
        listing: None,
        outcome,
        reason: (outcome != Verdict::Passed).then(|| "exit code 1".to_owned()),
        checks: Some(if outcome == Verdict::Passed { counted_checks(2, 0) } else { counted_checks(1, 1) }),
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
    record_with(outcome, |e| {
        (e.kind, e.key, e.checks) = (EvidenceKind::BaseRun, evidence_key("base"), checks)
    })
}

thread_local! {
    static LISTS: std::cell::RefCell<std::collections::BTreeMap<Sha256, CaseList>> = std::cell::RefCell::default();
}

/// Stores the cases of a run: a name each, then how it ended: `+` passed, `-` failed, `!` in error, `~`
/// skipped.
fn ran(cases: &str) -> Option<Sha256> {
    let case = |word: &str| {
        let (place, end) = word.split_at(word.len() - 1);
        let outcome = match end {
            "+" => CaseOutcome::Passed,
            "-" => CaseOutcome::FailedByAssertion,
            "!" => CaseOutcome::FailedByError,
            _ => CaseOutcome::Skipped,
        };
        let (class, name) = place.rsplit_once('.').map_or((None, place), |(class, name)| (Some(class), name));
        CountedCase { class: class.map(str::to_owned), ..CountedCase::with_name(name, outcome) }
    };
    let list = CaseList::new(cases.split_ascii_whitespace().map(case).collect(), 0);
    let digest = Sha256::of_json(&list);
    LISTS.with_borrow_mut(|lists| lists.insert(digest, list));
    Some(digest)
}

fn stored_cases(digest: &Sha256) -> Option<CaseList> {
    LISTS.with_borrow(|lists| lists.get(digest).cloned())
}

const STORED: StoredLists<'_> = StoredLists {
    files: &|_| Some(vec![input_file("tests/new.rs", ""), input_file("src/old.rs", "")]),
    cases: &stored_cases,
};

fn judged_row(observed: Observed, records: &[Record]) -> Row {
    judge_rows(&observation_of(vec![observed]), records, STORED).remove(0)
}

fn verdict_and_reason(observed: Observed, records: &[Record]) -> (Verdict, String) {
    let row = judged_row(observed, records);
    (row.verdict, row.reason.unwrap_or_default())
}

fn unit_observed() -> Observed {
    observed_row("unit", Source::Command)
}

#[test]
fn what_did_not_run_says_why() {
    let pass = [record_with(Verdict::Passed, |_| {})];
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
        assert_eq!(
            verdict_and_reason(observed_row("unit", source), &pass),
            (Verdict::NotRun, words.to_owned())
        );
    }
    assert_eq!(
        verdict_and_reason(unit_observed(), &[]),
        (Verdict::NotRun, "never run on this candidate".to_owned())
    );
}

#[test]
fn a_run_says_what_it_said() {
    let passed = judged_row(unit_observed(), &[record_with(Verdict::Passed, |_| {})]);
    assert_eq!((passed.verdict, passed.reason, passed.reused), (Verdict::Passed, None, false));
    assert!(passed.evidence.is_some_and(|digest| digest.starts_with("sha256:")));
    assert_eq!(passed.checks, Some(counted_checks(2, 0)));
    for verdict in [Verdict::Failed, Verdict::Error, Verdict::NotRun] {
        assert_eq!(
            verdict_and_reason(unit_observed(), &[record_with(verdict, |_| {})]),
            (verdict, "exit code 1".to_owned())
        );
    }
    let earlier = record_with(Verdict::Passed, |e| e.candidate = 1);
    assert!(judged_row(unit_observed(), &[earlier]).reused);
    // An error and a pass do not contradict each other; the last run counts.
    let error = record_with(Verdict::Error, |_| {});
    assert_eq!(
        verdict_and_reason(unit_observed(), &[error.clone(), record_with(Verdict::Passed, |_| {})]).0,
        Verdict::Passed
    );
    assert_eq!(
        verdict_and_reason(unit_observed(), &[record_with(Verdict::Passed, |_| {}), error]).0,
        Verdict::Error
    );
}

#[test]
fn disagreement_is_flaky_in_either_order() {
    let (pass, fail) = (record_with(Verdict::Passed, |_| {}), record_with(Verdict::Failed, |_| {}));
    for records in [[pass.clone(), fail.clone()], [fail.clone(), pass.clone()]] {
        let (verdict, reason) = verdict_and_reason(unit_observed(), &records);
        assert!(verdict == Verdict::Failed && reason.starts_with("flaky"), "{reason}");
    }
    let within = record_with(Verdict::Passed, |e| e.flaky = true);
    assert_eq!(verdict_and_reason(unit_observed(), std::slice::from_ref(&within)).0, Verdict::Failed);
    let mut warn = observation_of(vec![unit_observed()]);
    warn.flaky = Flaky::Warn;
    let rows_of = |records: &[Record]| judge_rows(&warn, records, STORED).remove(0);
    assert_eq!(rows_of(std::slice::from_ref(&within)).verdict, Verdict::Passed);
    assert!(rows_of(std::slice::from_ref(&within)).reason.is_some_and(|reason| reason.starts_with("flaky")));
    assert_eq!(rows_of(&[pass, fail]).verdict, Verdict::Failed, "it failed last");
    assert_eq!(missing_jobs(&warn, &[within], STORED).len(), 1, "and is not reused");
}

#[test]
fn staleness_names_what_changed() {
    let words = |change: &dyn Fn(&mut Evidence)| {
        let (verdict, reason) =
            verdict_and_reason(unit_observed(), &[record_with(Verdict::Passed, |e| change(e))]);
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
    assert_eq!(part(&|i| i.closure = vec![input_file("run.sh", "x")]), "closure: run.sh was removed");
    // Another task's record is nobody's stale evidence, a base run neither.
    let foreign =
        record_with(Verdict::Passed, |e| (e.task, e.key.inputs) = ("t2".to_owned(), Sha256::of(b"x")));
    assert_eq!(
        verdict_and_reason(unit_observed(), &[foreign, on_the_base(Verdict::Passed, None)]).0,
        Verdict::NotRun
    );
    let mut never = unit_observed();
    never.reuse = Reuse::Never;
    assert_eq!(
        verdict_and_reason(never, &[record_with(Verdict::Passed, |e| e.candidate = 1)]).0,
        Verdict::Stale
    );
}

#[test]
fn stale_inputs_are_named_by_path() {
    let before = vec![
        input_file("a", "1"),
        input_file("b", "1"),
        input_file("d", "1"),
        input_file("e", "1"),
        input_file("f", "1"),
    ];
    let now = vec![
        input_file("a", "2"),
        input_file("b", "1"),
        input_file("c", "1"),
        input_file("e", "2"),
        input_file("f", "2"),
    ];
    let mut unit = unit_observed();
    unit.key = Some(EvidenceKey { inputs: listing_digest(&now), ..evidence_key("") });
    unit.listing = Some(Sha256::of(b"now"));
    let old = record_with(Verdict::Passed, |e| {
        (e.key.inputs, e.listing) = (listing_digest(&before), Some(Sha256::of(b"before")))
    });
    let listings =
        |digest: &Sha256| Some(if *digest == Sha256::of(b"now") { now.clone() } else { before.clone() });
    let row =
        judge_rows(&observation_of(vec![unit]), &[old], StoredLists { files: &listings, ..STORED }).remove(0);
    assert_eq!(row.reason.as_deref(), Some("a changed, c was added, d was removed, and 2 more"));
}

#[test]
fn a_record_whose_inputs_were_digested_in_one_row_is_stale_once_and_says_so() {
    let files = vec![input_file("a", "1"), input_file("b/c", "1")];
    let mut unit = unit_observed();
    unit.key = Some(EvidenceKey { inputs: listing_digest(&files), ..evidence_key("") });
    unit.listing = Some(Sha256::of(b"files"));
    let old = record_with(Verdict::Passed, |e| {
        (e.key.inputs, e.listing) = (flat_listing_digest(&files), Some(Sha256::of(b"files")))
    });
    let listings = |_: &Sha256| Some(files.clone());
    let row =
        judge_rows(&observation_of(vec![unit]), &[old], StoredLists { files: &listings, ..STORED }).remove(0);
    assert_eq!(row.verdict, Verdict::Stale);
    let reason = "an earlier version made it, which digests the same inputs otherwise";
    assert_eq!(row.reason.as_deref(), Some(reason));
}

#[test]
fn a_persons_word_counts_for_one_candidate() {
    for source in [Source::Manual, Source::Protected { why: Vec::new() }] {
        let manual = || observed_row("unit", source.clone());
        let word = |outcome, inputs: &str| {
            record_with(outcome, |e| {
                (e.kind, e.key) = (EvidenceKind::Attestation, evidence_key(inputs));
                e.attestation = Some(Attestation { person: "p".to_owned(), message: "no good".to_owned() });
            })
        };
        assert_eq!(verdict_and_reason(manual(), &[]).0, Verdict::NeedsConfirmation);
        assert_eq!(
            verdict_and_reason(manual(), &[word(Verdict::Passed, "now")]),
            (Verdict::Passed, String::new())
        );
        let failed =
            verdict_and_reason(manual(), &[word(Verdict::Passed, "now"), word(Verdict::Failed, "now")]);
        assert_eq!(failed, (Verdict::Failed, "attested as failed: no good".to_owned()));
        let (verdict, reason) = verdict_and_reason(manual(), &[word(Verdict::Passed, "other")]);
        assert!(verdict == Verdict::NeedsConfirmation && reason.contains("other bytes"), "{reason}");
        // A run cannot stand for a person, nor a person for a run.
        assert_eq!(
            verdict_and_reason(manual(), &[record_with(Verdict::Passed, |_| {})]).0,
            Verdict::NeedsConfirmation
        );
        assert_eq!(verdict_and_reason(unit_observed(), &[word(Verdict::Passed, "now")]).0, Verdict::NotRun);
        assert!(missing_jobs(&observation_of(vec![manual()]), &[], STORED).is_empty());
    }
}

#[test]
fn strength_comes_from_the_base() {
    let pass = record_with(Verdict::Passed, |_| {});
    let with = |base: Record| judged_row(unit_observed(), &[base, pass.clone()]).strength;
    assert_eq!(judged_row(unit_observed(), std::slice::from_ref(&pass)).strength, Strength::Unmeasured);
    assert_eq!(with(on_the_base(Verdict::Passed, Some(counted_checks(1, 0)))), Strength::NoRegression);
    assert_eq!(with(on_the_base(Verdict::Failed, Some(counted_checks(1, 1)))), Strength::Fixed);
    assert_eq!(with(on_the_base(Verdict::Failed, Some(counted_checks(0, 0)))), Strength::Unmeasured);
    assert_eq!(with(on_the_base(Verdict::Error, None)), Strength::Unmeasured);
    let failed = judged_row(
        unit_observed(),
        &[on_the_base(Verdict::Passed, None), record_with(Verdict::Failed, |_| {})],
    );
    assert_eq!(failed.strength, Strength::Unmeasured);
}

/// A repair whose case is `tests/`.
fn repair(rows: Vec<Observed>) -> Observation {
    let case = Scope::new(vec!["tests/".to_owned()]).expect("a scope");
    Observation { kind: Kind::Repair, case, ..observation_of(rows) }
}

fn repaired(base: Verdict, cases: &str) -> [Record; 2] {
    let base = record_with(base, |e| {
        (e.kind, e.key, e.cases) = (EvidenceKind::BaseRun, evidence_key("base"), ran(cases));
        e.checks = Some(counted_checks(1, cases.matches('-').count() as u64));
    });
    [base, record_with(Verdict::Passed, |e| e.cases = ran("tests.new.c+ src.old.c+"))]
}

#[test]
fn a_repair_has_to_reproduce() {
    let unit = || Observed { listing: Some(Sha256::of(b"files")), ..unit_observed() };
    let pass = record_with(Verdict::Passed, |e| e.cases = ran("tests.new.c+"));
    let judge = |records: &[Record]| {
        let row = judge_rows(&repair(vec![unit()]), records, STORED).remove(0);
        (row.verdict, row.reason.unwrap_or_default())
    };
    let records = repaired(Verdict::Failed, "tests.new.c-");
    assert_eq!(judge(&records).0, Verdict::Passed);
    let nothing = "a build error proves nothing";
    let already = "passes on the base already";
    for (records, words) in [
        (repaired(Verdict::Passed, "tests.new.c+").to_vec(), already),
        (repaired(Verdict::Failed, "tests.new.c+ src.old.c-").to_vec(), already),
        (repaired(Verdict::Failed, "src.old.c-").to_vec(), nothing),
        (repaired(Verdict::Failed, "tests.new.c!").to_vec(), nothing),
        (repaired(Verdict::Failed, "tests.new.c~").to_vec(), nothing),
        (repaired(Verdict::Failed, "tests.new.d-").to_vec(), nothing),
        (repaired(Verdict::Failed, "").to_vec(), nothing),
        (vec![on_the_base(Verdict::Failed, None), pass.clone()], nothing),
        (vec![on_the_base(Verdict::Failed, Some(counted_checks(1, 1))), pass.clone()], "names no cases"),
        (vec![on_the_base(Verdict::Error, None), pass.clone()], "not run on the base"),
        (vec![pass.clone()], "not run on the base"),
    ] {
        let (verdict, reason) = judge(&records);
        assert!(
            verdict == Verdict::Failed && reason.starts_with("not reproduced") && reason.contains(words),
            "{reason}, not {words}"
        );
    }
    // A row that is not required does not make the repair.
    let mut optional = unit();
    optional.clause.required = false;
    assert_eq!(judge_rows(&repair(vec![optional]), &records, STORED)[0].verdict, Verdict::Failed);
    // Where nothing counts, nothing can show it, and an optional row that counts makes up for nothing.
    let mut bare = unit();
    bare.counts = false;
    let mut beside = observed_row("cases", Source::Command);
    (beside.clause.required, beside.key, beside.base_key) =
        (false, Some(evidence_key("c")), Some(evidence_key("c base")));
    let counted_too =
        record_with(Verdict::Passed, |e| (e.key, e.cases) = (evidence_key("c"), ran("tests.new.c+")));
    for (_, mut base) in [records[0].clone(), on_the_base(Verdict::Passed, None)] {
        base.key = evidence_key("c base");
        let records = [(base.digest(), base), pass.clone(), counted_too.clone()];
        let shown = judge_rows(&repair(vec![bare.clone(), beside.clone()]), &records, STORED);
        assert_eq!((shown[0].verdict, shown[1].verdict), (Verdict::Failed, Verdict::Failed), "{shown:?}");
        assert!(!all_required_passed(&shown));
    }
    let uncounted = record_with(Verdict::Passed, |e| e.checks = None);
    assert_eq!(judge_rows(&repair(vec![bare]), &[uncounted], STORED)[0].verdict, Verdict::Failed);
    // The base is run once, before the candidate.
    let jobs = missing_jobs(&repair(vec![unit()]), &[], STORED);
    assert_eq!(jobs, [On::BaseWithCase, On::Candidate].map(|on| Job { rows: vec![0], on }));
    assert!(missing_jobs(&repair(vec![unit()]), &records, STORED).is_empty());
}

#[test]
fn where_a_case_lies_is_told_by_a_run_without_the_files_of_the_case() {
    let mut unit = unit_observed();
    let keys = RepairKeys { base: evidence_key("plain"), without_case: evidence_key("without") };
    unit.repair_keys = Some(keys);
    let repair = repair(vec![unit]);
    let on = |inputs: &str, outcome, cases: &str| {
        let made = (EvidenceKind::BaseRun, evidence_key(inputs), ran(cases));
        record_with(outcome, |e| (e.kind, e.key, e.cases) = made)
    };
    let pass = record_with(Verdict::Passed, |e| e.cases = ran("c+ other+"));
    let mut records = vec![on("plain", Verdict::Error, ""), on("base", Verdict::Failed, "c- other+"), pass];
    let judge = |records: &[Record]| {
        let row = judge_rows(&repair, records, STORED).remove(0);
        (row.verdict, row.strength, row.reason.unwrap_or_default())
    };
    assert_eq!(judge(&records).2, "not reproduced: nothing tells whether c lies in `case`");
    let jobs = missing_jobs(&repair, &records, STORED);
    let on_base = [On::Base, On::BaseWithoutCase].map(|on| Job { rows: vec![0], on });
    assert_eq!(jobs, on_base);
    let with = |inputs: &str, cases: &str| {
        let mut records = records.clone();
        records.push(on(inputs, Verdict::Passed, cases));
        let asked = missing_jobs(&repair, &records, STORED);
        assert!(asked.iter().all(|job| job.on == On::Base), "it is asked for once");
        judge(&records).1
    };
    assert_eq!(with("without", "other+"), Strength::Fixed);
    assert_eq!(with("without", "other+ c+"), Strength::Unmeasured, "it lies elsewhere");
    assert_eq!(with("plain", "other+"), Strength::Fixed, "the base as it is knows nothing of it");
    records.push(on("plain", Verdict::Passed, "c+"));
    assert_eq!(
        missing_jobs(&repair, &records, STORED),
        [on_base[1].clone()],
        "one that was there may lie anywhere"
    );
    let unbuilt =
        record_with(Verdict::Failed, |e| (e.kind, e.key) = (EvidenceKind::BaseRun, evidence_key("without")));
    assert_eq!(judge(&[&records[..], &[unbuilt]].concat()).1, Strength::Unmeasured, "it tells nothing");
    records.push(on("without", Verdict::Error, ""));
    assert!(missing_jobs(&repair, &records, STORED).is_empty(), "nor is an error tried again");
}

/// Base and candidate, both passed, with these cases.
fn compared(base: &str, now: &str) -> [Record; 2] {
    let made = (EvidenceKind::BaseRun, evidence_key("base"), ran(base));
    let base = record_with(Verdict::Passed, |e| (e.kind, e.key, e.cases) = made);
    [base, record_with(Verdict::Passed, |e| e.cases = ran(now))]
}

#[test]
fn a_person_confirms_that_cases_are_gone() {
    let records = compared("a+ b+ c+", "a+ c~ d+");
    let observed_unit = observation_of(vec![unit_observed()]);
    let shown = judge_rows(&observed_unit, &records, STORED);
    let [unit_row, asked] = shown.as_slice() else { panic!("{shown:?}") };
    let cases = unit_row.cases.as_ref().expect("compared");
    assert_eq!((cases.gone.count, cases.gone.first.join(" ")), (2, "b c".to_owned()));
    assert!(unit_row.judge_changed && unit_row.verdict == Verdict::Passed);
    assert_eq!(
        (asked.id.as_str(), asked.required, asked.verdict),
        ("protected", true, Verdict::NeedsConfirmation)
    );
    let reason = asked.reason.as_deref().unwrap_or_default();
    assert_eq!(reason, "2 cases of the base do not run any more: b, c: a person has to confirm");
    // The word of a person is for these cases.
    let (now, _) = with_confirmation(&observed_unit, &records, STORED);
    let word = |observed: &Observed| {
        record_with(Verdict::Passed, |e| {
            (e.kind, e.requirement, e.verifier) =
                (EvidenceKind::Attestation, "protected".into(), "protected".into());
            e.key = observed.key.clone().expect("a key");
        })
    };
    let confirmed: Vec<Record> = records.iter().cloned().chain([word(&now.rows[1])]).collect();
    assert_eq!(judge_rows(&observed_unit, &confirmed, STORED)[1].verdict, Verdict::Passed);
    let [_, more] = compared("a+ b+ c+", "a+ d+ e~");
    let more: Vec<Record> = confirmed.iter().cloned().chain([more]).collect();
    assert_eq!(
        judge_rows(&observed_unit, &more, STORED)[1].verdict,
        Verdict::Passed,
        "the same ones are gone"
    );
    let [_, more] = compared("a+ b+ c+", "d+");
    let more: Vec<Record> = confirmed.iter().cloned().chain([more]).collect();
    let again = &judge_rows(&observed_unit, &more, STORED)[1];
    assert_eq!(again.verdict, Verdict::NeedsConfirmation, "another one is gone");
    // Protected paths that were confirmed before say nothing of cases.
    let paths =
        observed_row("protected", Source::Protected { why: vec!["protected paths are touched".to_owned()] });
    let both = observation_of(vec![unit_observed(), paths.clone()]);
    let before: Vec<Record> = records.iter().cloned().chain([word(&paths)]).collect();
    let row = &judge_rows(&both, &before, STORED)[1];
    assert_eq!((row.verdict, judge_rows(&both, &before, STORED).len()), (Verdict::NeedsConfirmation, 2));
}

#[test]
fn gone_cases_need_nobody_where_nothing_is_compared_or_the_policy_only_warns() {
    let records = compared("a+ b+", "a+");
    let warn = Observation { gone_cases: GoneCases::Warn, ..observation_of(vec![unit_observed()]) };
    let shown = judge_rows(&warn, &records, STORED);
    assert_eq!((shown.len(), shown[0].judge_changed), (1, true));
    let unstable = Observed { compares_cases: false, ..unit_observed() };
    let shown = judge_rows(&observation_of(vec![unstable]), &records, STORED);
    assert_eq!((shown.len(), shown[0].judge_changed, &shown[0].cases), (1, false, &None));
    let alone = std::slice::from_ref(&records[1]);
    assert_eq!(
        judge_rows(&observation_of(vec![unit_observed()]), alone, STORED)[0].cases,
        None,
        "there is no base"
    );
    let [base, _] = records;
    let failed = record_with(Verdict::Failed, |e| e.cases = ran("a-"));
    let shown = judge_rows(&observation_of(vec![unit_observed()]), &[base, failed], STORED);
    assert_eq!((shown.len(), shown[0].judge_changed), (1, false), "nothing is delivered");
    assert_eq!(shown[0].cases.as_ref().map(|cases| (cases.gone.count, cases.broken.count)), Some((1, 1)));
}

#[test]
fn the_base_is_run_once_where_that_is_asked_for() {
    let always = || Observed { base_runs: BaseRuns::Always, ..unit_observed() };
    let observed = observation_of(vec![always()]);
    let both = [On::Base, On::Candidate].map(|on| Job { rows: vec![0], on });
    assert_eq!(missing_jobs(&observed, &[], STORED), both);
    assert!(missing_jobs(&observed, &compared("a+", "a+"), STORED).is_empty());
    let [_, pass] = compared("a+", "a+");
    let empty = on_the_base(Verdict::NotRun, Some(counted_checks(0, 0)));
    assert!(
        missing_jobs(&observed, &[empty, pass.clone()], STORED).is_empty(),
        "a base without cases is one"
    );
    let broken = on_the_base(Verdict::Error, None);
    assert_eq!(missing_jobs(&observed, &[broken, pass], STORED).len(), 1, "an error is tried again");
    let on_failure = observation_of(vec![Observed { base_runs: BaseRuns::OnFailure, ..unit_observed() }]);
    let failed = record_with(Verdict::Failed, |_| {});
    let on = |records: &[Record]| {
        missing_jobs(&on_failure, records, STORED).iter().map(|job| job.on).collect::<Vec<_>>()
    };
    assert_eq!(on(&[]), [On::Candidate]);
    assert_eq!(on(std::slice::from_ref(&failed)), [On::Base, On::Candidate]);
    for (base, told) in
        [(Verdict::Passed, "it passes on the base"), (Verdict::Failed, "it fails on the base too")]
    {
        let tried = [failed.clone(), on_the_base(base, Some(counted_checks(1, 0)))];
        assert_eq!(on(&tried), [On::Candidate]);
        let row = &judge_rows(&on_failure, &tried, STORED)[0];
        assert!(row.reason.as_deref().is_some_and(|reason| reason.ends_with(told)), "{row:?}");
    }
    let same = Observed { base_key: Some(evidence_key("now")), ..always() };
    assert_eq!(
        missing_jobs(&observation_of(vec![same]), &[], STORED).len(),
        1,
        "the candidate is as the base"
    );
    let keys = RepairKeys { base: evidence_key("plain"), without_case: evidence_key("without") };
    let repaired = Observed { repair_keys: Some(keys), ..unit_observed() };
    let jobs = missing_jobs(&repair(vec![repaired]), &[], STORED);
    let on: Vec<On> = jobs.iter().map(|job| job.on).collect();
    assert_eq!(
        on,
        [On::Base, On::BaseWithCase, On::Candidate],
        "and the base as it is, for what the case takes away"
    );
}

#[test]
fn rows_of_the_same_words_have_their_own_records() {
    let mut twin = unit_observed();
    twin.clause.id = "twin".to_owned();
    let both = observation_of(vec![unit_observed(), twin.clone()]);
    let of_twin = |outcome| record_with(outcome, |e| e.requirement = "twin".to_owned());
    let records = [record_with(Verdict::NotRun, |_| {}), of_twin(Verdict::Passed)];
    let shown = judge_rows(&both, &records, STORED);
    assert_eq!((shown[0].verdict, shown[1].verdict), (Verdict::NotRun, Verdict::Passed));
    let records = [record_with(Verdict::Passed, |_| {}), of_twin(Verdict::Failed)];
    assert_eq!(judge_rows(&both, &records, STORED)[0].verdict, Verdict::Passed, "nor is it flaky");
    // What failed on the base is the other one.
    let mut base = on_the_base(Verdict::Failed, Some(counted_checks(1, 1))).1;
    base.requirement = "twin".to_owned();
    let records = [(base.digest(), base), record_with(Verdict::Passed, |_| {}), of_twin(Verdict::Passed)];
    let shown = judge_rows(&both, &records, STORED);
    assert_eq!((shown[0].strength, shown[1].strength), (Strength::Unmeasured, Strength::Fixed));
    // A requirement that has another name now is still the same.
    assert_eq!(verdict_and_reason(twin, &[record_with(Verdict::Passed, |_| {})]).0, Verdict::Passed);
}

#[test]
fn one_run_shows_all_rows_of_a_verifier() {
    let mut second = unit_observed();
    second.clause.id = "second".to_owned();
    let two = observation_of(vec![unit_observed(), observed_row("lint", Source::Builtin), second]);
    let jobs = missing_jobs(&two, &[], STORED);
    assert_eq!(jobs.iter().map(|job| job.rows.clone()).collect::<Vec<_>>(), [vec![0, 2], vec![1]]);
    let failed = [record_with(Verdict::Failed, |_| {})];
    assert_eq!(
        missing_jobs(&observation_of(vec![unit_observed()]), &failed, STORED).len(),
        1,
        "a failure is tried again"
    );
    let mut never = unit_observed();
    never.reuse = Reuse::Never;
    let pass = [record_with(Verdict::Passed, |_| {})];
    assert_eq!(missing_jobs(&observation_of(vec![never]), &pass, STORED).len(), 1);
    assert!(missing_jobs(&observation_of(vec![unit_observed()]), &pass, STORED).is_empty());
}

#[test]
fn what_was_just_made_is_not_reused() {
    let pass = record_with(Verdict::Passed, |_| {});
    let mut shown = judge_rows(&observation_of(vec![unit_observed()]), std::slice::from_ref(&pass), STORED);
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
                record_with(if *pass { Verdict::Passed } else { Verdict::Failed }, |e| match part {
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
        prop_assert_eq!(judged_row(unit_observed(), &records).verdict, expected);
    }

    /// A listing told by its difference is the same listing.
    #[test]
    fn listings_survive_being_told_by_their_difference(a in proptest::collection::btree_map(0u8..12, 0u8..3, 0..12), b in proptest::collection::btree_map(0u8..12, 0u8..3, 0..12)) {
        let files = |map: &std::collections::BTreeMap<u8, u8>| -> Vec<InputFile> {
            map.iter().map(|(path, bytes)| input_file(&format!("p{path:02}"), &bytes.to_string())).collect()
        };
        let (a, b) = (files(&a), files(&b));
        let gone = a.iter().filter(|file| b.iter().all(|other| other.path != file.path));
        let gone = gone.map(|file| (file.path.clone(), None));
        let other = b.iter().filter(|file| !a.contains(file)).map(|file| (file.path.clone(), Some(file.clone())));
        let told = Listing::listing_against(listing_digest(&a), gone.chain(other));
        prop_assert_eq!(told.resolve_with(a.clone()), b.clone());
        prop_assert_eq!(listing_differences(&a, &b).is_empty(), a == b);
    }
}

#[test]
fn three_passes_in_a_row_clear_what_is_flaky() {
    let fail = record_with(Verdict::Failed, |_| {});
    let pass =
        |run: &'static str| record_with(Verdict::Passed, |e| (e.run, e.clearing) = (run.to_owned(), true));
    let unasked = |run: &'static str| record_with(Verdict::Passed, |e| e.run = run.to_owned());
    let by_chance = [fail.clone(), unasked("r1"), unasked("r2"), unasked("r3")];
    assert_eq!(verdict_and_reason(unit_observed(), &by_chance).0, Verdict::Failed, "nobody asked for it");
    let two = [fail.clone(), pass("r1"), pass("r2")];
    assert_eq!(verdict_and_reason(unit_observed(), &two).0, Verdict::Failed);
    assert!(has_to_clear(
        &observation_of(vec![unit_observed()]),
        &missing_jobs(&observation_of(vec![unit_observed()]), &two, STORED)[0],
        &two
    ));
    let three = [fail.clone(), pass("r1"), pass("r2"), pass("r3")];
    assert_eq!(verdict_and_reason(unit_observed(), &three).0, Verdict::Passed);
    assert!(
        missing_jobs(&observation_of(vec![unit_observed()]), &three, STORED).is_empty(),
        "it is reused again"
    );
    // Records of one run are one run, and what comes between breaks the row.
    assert_eq!(
        verdict_and_reason(unit_observed(), &[fail.clone(), pass("r1"), pass("r1"), pass("r2")]).0,
        Verdict::Failed
    );
    assert_eq!(
        verdict_and_reason(unit_observed(), &[pass("r1"), pass("r2"), fail, pass("r3")]).0,
        Verdict::Failed
    );
}
