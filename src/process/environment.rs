//! The fixed part of what a program finds in its environment.
//!
//! The environment is built up from nothing, never by removing: so neither the caller's `GIT_*` nor its
//! `SSH_AUTH_SOCK`, tokens or proxies can come through because a list forgot them.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

/// The search path where the caller has no usable one.
const FALLBACK_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// `PATH`, `HOME`, `TMPDIR`, `LANG` and `TZ`, and nothing else.
///
/// Of the caller's `PATH` only the absolute entries stay: an empty or relative one would let the working
/// directory, thus the candidate, decide what a command name means. `lang` and `tz` default to `C.UTF-8` and
/// `UTC`.
pub fn base_environment(
    caller_path: &OsStr,
    home: &Path,
    tmp: &Path,
    lang: Option<&OsStr>,
    tz: Option<&OsStr>,
) -> Vec<(OsString, OsString)> {
    vec![
        ("PATH".into(), absolute_entries(caller_path)),
        ("HOME".into(), home.into()),
        ("TMPDIR".into(), tmp.into()),
        ("LANG".into(), lang.unwrap_or(OsStr::new("C.UTF-8")).to_owned()),
        ("TZ".into(), tz.unwrap_or(OsStr::new("UTC")).to_owned()),
    ]
}

/// What of the caller's environment says how the network is reached, for a program that may have it.
pub fn network_variables(vars: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
    const NAMES: [&str; 12] = [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "CURL_CA_BUNDLE",
        "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "GIT_SSL_CAINFO",
        "GOPROXY",
        "PIP_INDEX_URL",
    ];
    let is_named =
        |name: &OsStr| name.to_str().is_some_and(|name| NAMES.contains(&name.to_uppercase().as_str()));
    vars.iter().filter(|(name, _)| is_named(name)).cloned().collect()
}

fn absolute_entries(path: &OsStr) -> OsString {
    let kept: Vec<&[u8]> =
        path.as_bytes().split(|byte| *byte == b':').filter(|entry| entry.starts_with(b"/")).collect();
    if kept.is_empty() { FALLBACK_PATH.into() } else { OsString::from_vec(kept.join(&b':')) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_entries_of_the_path_stay() {
        for (given, kept) in [
            ("/a:/b", "/a:/b"),
            (":/a::bin:./x:../y:/b:", "/a:/b"),
            ("", FALLBACK_PATH),
            ("bin:.", FALLBACK_PATH),
        ] {
            assert_eq!(absolute_entries(OsStr::new(given)), OsStr::new(kept), "{given:?}");
        }
    }

    #[test]
    fn the_set_is_fixed() {
        let made = base_environment(OsStr::new("/bin"), Path::new("/h"), Path::new("/t"), None, None);
        let names: Vec<_> = made.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["PATH", "HOME", "TMPDIR", "LANG", "TZ"]);
    }
}
