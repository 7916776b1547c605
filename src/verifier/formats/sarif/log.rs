//! The parts of a SARIF log that say whether a tool ran and what it found.
//!
//! Every property that the standard has is either read or named here as one that says nothing of that; any
//! other one makes the log unreadable. So are those that lead to results elsewhere.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// The properties of an object that are not read.
type OtherProperties = BTreeMap<String, IgnoredAny>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifLog {
    pub version: String,
    pub runs: Option<Vec<SarifRun>>,
    #[serde(flatten)]
    pub others: OtherProperties,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifRun {
    pub tool: SarifTool,
    /// Absent or null where nothing was looked at.
    pub results: Option<Vec<SarifResult>>,
    #[serde(default)]
    pub invocations: Vec<ToolInvocation>,
    #[serde(flatten)]
    pub others: OtherProperties,
}

#[derive(Deserialize)]
pub(super) struct SarifTool {
    pub driver: ToolComponent,
    #[serde(default)]
    pub extensions: Vec<ToolComponent>,
}

#[derive(Deserialize)]
pub(super) struct ToolComponent {
    #[serde(default)]
    pub rules: Vec<SarifRule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifRule {
    pub id: String,
    #[serde(default)]
    pub default_configuration: RuleConfiguration,
}

#[derive(Default, Deserialize)]
pub(super) struct RuleConfiguration {
    pub level: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolInvocation {
    pub execution_successful: bool,
    #[serde(default)]
    pub tool_execution_notifications: Vec<ToolNotification>,
    #[serde(default)]
    pub tool_configuration_notifications: Vec<ToolNotification>,
    #[serde(default)]
    pub rule_configuration_overrides: Vec<IgnoredAny>,
    #[serde(flatten)]
    pub others: OtherProperties,
}

#[derive(Deserialize)]
pub(super) struct ToolNotification {
    pub level: Option<String>,
    #[serde(default)]
    pub message: SarifMessage,
    #[serde(flatten)]
    pub others: OtherProperties,
}

#[derive(Default, Deserialize)]
pub(super) struct SarifMessage {
    pub text: Option<String>,
    pub id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SarifResult {
    pub rule_id: Option<String>,
    pub rule_index: Option<i64>,
    #[serde(default)]
    pub rule: RuleReference,
    pub kind: Option<String>,
    pub level: Option<String>,
    #[serde(default)]
    pub message: SarifMessage,
    #[serde(default)]
    pub locations: Vec<SarifLocation>,
    pub suppressions: Option<Vec<Suppression>>,
    pub baseline_state: Option<String>,
    #[serde(flatten)]
    pub others: OtherProperties,
}

#[derive(Default, Deserialize)]
pub(super) struct RuleReference {
    pub id: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Suppression {
    /// Accepted, unless it says otherwise.
    #[serde(alias = "state")]
    pub status: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SarifLocation {
    pub physical_location: PhysicalLocation,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PhysicalLocation {
    pub artifact_location: ArtifactLocation,
    pub region: Region,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ArtifactLocation {
    pub uri: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Region {
    pub start_line: Option<u64>,
    pub start_column: Option<u64>,
}

pub(super) const IN_LOG: &[&str] = &["$schema", "properties"];
pub(super) const IN_RUN: &[&str] = &[
    "language",
    "automationDetails",
    "runAggregates",
    "artifacts",
    "logicalLocations",
    "graphs",
    "conversion",
    "versionControlProvenance",
    "originalUriBaseIds",
    "baselineGuid",
    "redactionTokens",
    "defaultEncoding",
    "defaultSourceLanguage",
    "newlineSequences",
    "columnKind",
    "threadFlowLocations",
    "taxonomies",
    "addresses",
    "translations",
    "webRequests",
    "webResponses",
    "specialLocations",
    "properties",
];
pub(super) const IN_INVOCATION: &[&str] = &[
    "commandLine",
    "arguments",
    "responseFiles",
    "startTimeUtc",
    "endTimeUtc",
    "exitCode",
    "exitCodeDescription",
    "notificationConfigurationOverrides",
    "machine",
    "account",
    "processId",
    "executableLocation",
    "workingDirectory",
    "environmentVariables",
    "stdin",
    "stdout",
    "stderr",
    "stdoutStderr",
    "properties",
];
pub(super) const IN_NOTIFICATION: &[&str] = &[
    "locations",
    "threadId",
    "timeUtc",
    "exception",
    "descriptor",
    "associatedRule",
    "relatedLocations",
    "properties",
];
pub(super) const IN_RESULT: &[&str] = &[
    "analysisTarget",
    "guid",
    "correlationGuid",
    "occurrenceCount",
    "partialFingerprints",
    "fingerprints",
    "stacks",
    "codeFlows",
    "graphs",
    "graphTraversals",
    "relatedLocations",
    "attachments",
    "workItemUris",
    "hostedViewerUri",
    "provenance",
    "fixes",
    "taxa",
    "rank",
    "webRequest",
    "webResponse",
    "properties",
];

/// Refuses an object with a property that is neither read nor known to say nothing.
pub(super) fn refuse_unknown(what: &str, others: &OtherProperties, known: &[&str]) -> Result<(), String> {
    match others.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!("the property {key:?} of {what} is not understood")),
        None => Ok(()),
    }
}
