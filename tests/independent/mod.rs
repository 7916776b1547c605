//! Reads a ledger without any code of the product: the rows as SQLite gives them, the hash chain recomputed,
//! the states compared with the drawing. What it knows was written down from the design, so that a mistake of
//! the product cannot hide in it.

use serde_json::{Map, Value, json};
use sha2::Digest as _;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A row, every column as it is stored.
#[derive(Debug, Clone)]
pub struct Row {
    pub seq: i64,
    pub at: String,
    pub task: Option<String>,
    pub actor: String,
    pub action: String,
    pub tool: String,
    pub state: String,
    pub params: String,
    pub basis: Value,
    pub origin: String,
    pub result: Value,
    pub prev: String,
    pub hash: String,
    /// How its hash is made: 1 or 2.
    pub version: i64,
    /// Basis and result, as their text stands.
    texts: [String; 2],
}

impl Row {
    /// The kind of record that its result holds; empty where it holds none.
    pub fn record(&self) -> &str {
        self.result["record"].as_str().unwrap_or_default()
    }
}

/// The rows of a ledger, read from a copy: the original stays untouched, locks and all.
pub fn rows(store: &Path) -> Result<Vec<Row>, String> {
    let copy = tempfile::tempdir().map_err(|e| e.to_string())?;
    for name in ["ledger.db", "ledger.db-wal"] {
        if store.join(name).exists() {
            std::fs::copy(store.join(name), copy.path().join(name)).map_err(|e| e.to_string())?;
        }
    }
    if !copy.path().join("ledger.db").exists() {
        return Ok(Vec::new());
    }
    read(&copy.path().join("ledger.db")).map_err(|e| e.to_string())
}

fn read(path: &Path) -> rusqlite::Result<Vec<Row>> {
    let connection = rusqlite::Connection::open(path)?;
    let layout: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let version = if layout == 1 { "1" } else { "version" };
    let columns =
        "seq, at, task, actor, action, tool, state, params_sha256, basis, origin, result, prev, hash";
    let mut statement =
        connection.prepare(&format!("SELECT {columns}, {version} FROM ledger ORDER BY seq"))?;
    let parsed = |text: String| {
        serde_json::from_str(&text).unwrap_or_else(|_| Value::String(format!("unreadable: {text}")))
    };
    let rows = statement.query_map([], |row| {
        Ok(Row {
            seq: row.get(0)?,
            at: row.get(1)?,
            task: row.get(2)?,
            actor: row.get(3)?,
            action: row.get(4)?,
            tool: row.get(5)?,
            state: row.get(6)?,
            params: row.get(7)?,
            basis: parsed(row.get(8)?),
            origin: row.get(9)?,
            result: parsed(row.get(10)?),
            prev: row.get(11)?,
            hash: row.get(12)?,
            version: row.get(13)?,
            texts: [row.get(8)?, row.get(10)?],
        })
    })?;
    rows.collect()
}

/// What is wrong with the chain and with the states, as sentences.
pub fn faults(rows: &[Row]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut prev = "0".repeat(64);
    for (expected, row) in (1i64..).zip(rows) {
        if row.seq != expected {
            faults.push(format!("row {} stands where {expected} should", row.seq));
        }
        if row.prev != prev {
            faults.push(format!("row {} names another row before it", row.seq));
        }
        if hash(row) != row.hash {
            faults.push(format!("the hash of row {} is not that of its content", row.seq));
        }
        prev.clone_from(&row.hash);
    }
    faults.extend(state_faults(rows));
    faults
}

fn hash(row: &Row) -> String {
    if row.version == 2 {
        let head =
            json!([2, row.seq, row.at, row.task, row.actor, row.action, row.tool, row.state, row.params]);
        let (head, [basis, result]) = (head.to_string(), &row.texts);
        let (origin, prev) = (json!(row.origin), json!(row.prev));
        let head = head.trim_end_matches(']');
        return sha256(format!("{head},{basis},{origin},{result},{prev}]").as_bytes());
    }
    hash_of_version_1(row)
}

/// Of the rows that have no version.
pub fn hash_of_version_1(row: &Row) -> String {
    let value = json!({
        "seq": row.seq, "at": row.at, "task": row.task, "actor": row.actor, "action": row.action, "tool": row.tool,
        "state": row.state, "paramsSha256": row.params, "basis": row.basis, "origin": row.origin,
        "result": row.result, "prev": row.prev,
    });
    sha256(canonical(&value).as_bytes())
}

/// The drawn machine: from where to where.
const DRAWN: &[(&str, &str)] = &[
    ("planned", "authorized"),
    ("planned", "denied"),
    ("authorized", "dispatched"),
    ("dispatched", "succeeded"),
    ("dispatched", "failed_without_effect"),
    ("dispatched", "outcome_unknown"),
    ("outcome_unknown", "reconcile"),
    ("reconcile", "succeeded"),
    ("reconcile", "safe_to_retry"),
    ("reconcile", "needs_human_decision"),
    ("needs_human_decision", "succeeded"),
    ("needs_human_decision", "safe_to_retry"),
];

/// Actions whose rows are no path of the drawing, begin elsewhere or change their task or tool. A row in the
/// same state as the one before is a note.
fn state_faults(rows: &[Row]) -> Vec<String> {
    let mut faults = Vec::new();
    for (action, rows) in by_action(rows) {
        if rows[0].state != "planned" {
            faults.push(format!("{action} begins as {}", rows[0].state));
        }
        for pair in rows.windows(2) {
            let step = (pair[0].state.as_str(), pair[1].state.as_str());
            if step.0 != step.1 && !DRAWN.contains(&step) {
                faults.push(format!("{action} goes from {} to {}", step.0, step.1));
            }
            if (&pair[0].task, &pair[0].tool) != (&pair[1].task, &pair[1].tool) {
                faults.push(format!("{action} changes its task or tool"));
            }
        }
    }
    faults
}

/// The rows by action, each in order.
pub fn by_action(rows: &[Row]) -> BTreeMap<&str, Vec<&Row>> {
    let mut all: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        all.entry(&row.action).or_default().push(row);
    }
    all
}

/// Lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// RFC 8785.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => number(n),
        Value::String(s) => text(s),
        Value::Array(all) => {
            let inner: Vec<String> = all.iter().map(canonical).collect();
            format!("[{}]", inner.join(","))
        }
        Value::Object(map) => object(map),
    }
}

fn object(map: &Map<String, Value>) -> String {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_by_key(|key| key.encode_utf16().collect::<Vec<u16>>());
    let inner: Vec<String> =
        keys.iter().map(|key| format!("{}:{}", text(key), canonical(&map[*key]))).collect();
    format!("{{{}}}", inner.join(","))
}

/// Every number is a double, written as ECMAScript does; the exponents that it uses for the very large and
/// the very small do not occur here.
#[expect(clippy::cast_precision_loss, reason = "that is what the RFC says of integers beyond 2^53")]
fn number(n: &serde_json::Number) -> String {
    const EXACT: u64 = 1 << 53;
    if let Some(i) = n.as_i64().filter(|i| i.unsigned_abs() <= EXACT) {
        return i.to_string();
    }
    let double = n.as_u64().map_or_else(|| n.as_f64().expect("a number"), |u| u as f64);
    assert!(double == 0.0 || (1e-6..1e21).contains(&double.abs()), "{double} would need an exponent");
    format!("{double}")
}

fn text(s: &str) -> String {
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\u{c}' => out.push_str("\\f"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A place in memory, where there is enough of it: for tests that do the same thing hundreds of times and do
/// not ask what the disk does with it.
pub fn memory() -> PathBuf {
    let memory = Path::new("/dev/shm");
    let free = rustix::fs::statvfs(memory).map_or(0, |stat| stat.f_bavail * stat.f_frsize);
    if free > 2 << 30 { memory.to_owned() } else { std::env::temp_dir() }
}
