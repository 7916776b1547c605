//! Addresses of remotes and what in them is secret: a password, a token that stands for the user, the values
//! of a query. They are used and never kept; what is shown or recorded has [`HIDDEN`] in their place.

/// What stands for a secret.
pub const HIDDEN: &str = "<hidden>";

/// A text with the address in it as it may be shown: an address alone, or a key of the configuration that one
/// is a part of.
pub fn redact_address(text: &str) -> String {
    let (address, query) = split_query(text);
    let address = parse_credentials(address).map_or_else(
        || address.to_owned(),
        |found| format!("{}{HIDDEN}{}", &address[..found.secret.start], &address[found.secret.end..]),
    );
    let Some(query) = query else { return address };
    let hidden: Vec<String> = query
        .split('&')
        .map(|part| part.split_once('=').map_or(HIDDEN.to_owned(), |(key, _)| format!("{key}={HIDDEN}")))
        .collect();
    format!("{address}?{}", hidden.join("&"))
}

/// What must not be seen in any output: each secret as it stands there, as the server reads it, and as HTTP
/// sends it along with the user.
pub fn secrets_in_address(address: &str) -> Vec<Vec<u8>> {
    let (address, query) = split_query(address);
    let mut found = Vec::new();
    if let Some(of) = parse_credentials(address) {
        found.push(address[of.secret.clone()].as_bytes().to_vec());
        found.push(address[of.whole.clone()].as_bytes().to_vec());
        if !address[of.whole.clone()].contains(':') {
            found.push(format!("{}:", &address[of.whole]).into_bytes());
        }
    }
    for part in query.into_iter().flat_map(|query| query.split('&')) {
        found.push(part.split_once('=').map_or(part, |(_, value)| value).as_bytes().to_vec());
    }
    let decoded: Vec<Vec<u8>> = found.iter().map(|secret| percent_decoded(secret)).collect();
    found.extend(decoded);
    found
}

/// The address and its query.
fn split_query(text: &str) -> (&str, Option<&str>) {
    match (text.contains("://"), text.split_once('?')) {
        (true, Some((address, query))) => (address, Some(query)),
        _ => (text, None),
    }
}

struct Credentials {
    whole: std::ops::Range<usize>,
    /// What of it is secret.
    secret: std::ops::Range<usize>,
}

fn parse_credentials(address: &str) -> Option<Credentials> {
    let start = address.find("://")? + 3;
    let host = address[start..].find(['/', '#']).map_or(address.len(), |at| start + at);
    let at = start + address[start..host].rfind('@')?;
    // A token may stand alone as the user's name; over ssh that is a name and nothing else.
    let from = match address[start..at].find(':') {
        Some(colon) => start + colon + 1,
        None if address[..start].contains("http") => start,
        None => return None,
    };
    (from < at).then_some(Credentials { whole: start..at, secret: from..at })
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut decoded, mut at) = (Vec::with_capacity(text.len()), 0);
    while let Some(byte) = text.get(at) {
        let pair = (*byte == b'%').then(|| digit(at + 1).zip(digit(at + 2))).flatten();
        match pair.and_then(|(high, low)| u8::try_from(high * 16 + low).ok()) {
            Some(value) => (decoded.push(value), at += 3).1,
            None => (decoded.push(*byte), at += 1).1,
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_addresses_are_not_shown() {
        for (url, safe) in [
            ("https://me:secret@host/x", "https://me:<hidden>@host/x"),
            ("https://token@host:8/x", "https://<hidden>@host:8/x"),
            ("https://a:b@c@host", "https://a:<hidden>@host"),
            ("ssh://git@host/x", "ssh://git@host/x"),
            ("ssh://git:pw@host/x", "ssh://git:<hidden>@host/x"),
            ("https://host/x@y", "https://host/x@y"),
            ("git@host:x", "git@host:x"),
            ("/a/b?c=d", "/a/b?c=d"),
            ("https://:@host/", "https://:@host/"),
            ("https://host/x?access_token=s3cret&a", "https://host/x?access_token=<hidden>&<hidden>"),
            ("https://me:secret@host?t=a@b", "https://me:<hidden>@host?t=<hidden>"),
            ("url.http://bob:secret@host/.insteadof", "url.http://bob:<hidden>@host/.insteadof"),
            ("http.https://token@host.proxy", "http.https://<hidden>@host.proxy"),
            ("core.bare", "core.bare"),
        ] {
            assert_eq!(redact_address(url), safe);
        }
    }

    #[test]
    fn a_secret_is_known_in_each_of_its_forms() {
        let known = |url: &str| -> Vec<String> {
            secrets_in_address(url)
                .into_iter()
                .map(|secret| String::from_utf8_lossy(&secret).into_owned())
                .collect()
        };
        let with_password = known("https://me:p%40ss%zz@host/x?t=a%2Bb");
        for form in ["p%40ss%zz", "p@ss%zz", "me:p@ss%zz", "a%2Bb", "a+b"] {
            assert!(with_password.iter().any(|known| known == form), "{form}: {with_password:?}");
        }
        assert!(known("https://token@host/").contains(&"token:".to_owned()));
        assert!(known("ssh://git@host/x").is_empty());
    }
}
