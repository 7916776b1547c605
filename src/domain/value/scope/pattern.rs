//! One pattern of a scope: braces taken apart, checked by component, and matched against paths.
//!
//! The matcher is our own because paths are bytes and people write characters: `?` and `[…]` take one
//! character where the path is UTF-8 and one byte where it is not. It is the greedy two-pointer match, so
//! that no pattern can make it slow.

use crate::domain::value::repo_path::is_dot_git;

/// Longest pattern in bytes; no path is longer on Linux.
const LONGEST: usize = 4096;
/// Depth to which braces may nest.
const DEEPEST: usize = 8;
/// Number of alternatives that the braces of one pattern may stand for.
const MOST_ALTERNATIVES: usize = 1024;

/// The reason why a pattern is refused, and what to write instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) why: String,
    pub(super) right: String,
}

fn refuse_pattern<T>(why: impl Into<String>, right: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { why: why.into(), right: right.into() })
}

/// One alternative of a pattern as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pattern {
    File(Vec<u8>),
    Beneath(Vec<u8>),
    Glob(Vec<Part>),
}

/// A component of a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Literal(Vec<u8>),
    Wild(Vec<Token>),
    /// `**`: any number of components.
    Any,
}

/// A piece of a component with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    One(u32),
    Question,
    Star,
    Class { negated: bool, ranges: Vec<(u32, u32)> },
}

impl Pattern {
    /// Reads one pattern; it stands for several where it has braces.
    pub(super) fn read_pattern(text: &str) -> Result<Vec<Pattern>, Refusal> {
        if text.is_empty() {
            return refuse_pattern("it is empty", "`dir/`, a file, or a glob; `**` for the whole tree");
        }
        if text.len() > LONGEST {
            return refuse_pattern("it is longer than 4096 bytes", "a shorter pattern");
        }
        if text.contains('\0') {
            return refuse_pattern("it holds a NUL character", "a pattern without it");
        }
        if text.contains('\\') {
            return refuse_pattern(
                "it holds a backslash, which neither separates nor escapes here",
                "`/` between components; `[*]`, `[?]`, `[[]` and `[{]` for the characters themselves",
            );
        }
        expand_braces(text, 0)?.iter().map(|alternative| Self::read_one(alternative)).collect()
    }

    fn read_one(text: &str) -> Result<Pattern, Refusal> {
        if matches!(text, "." | "./") {
            return refuse_pattern("`.` is no path of the tree", "`**` for the whole tree");
        }
        if text.starts_with('/') {
            return refuse_pattern("it is absolute", "a pattern relative to the top of the repository");
        }
        let (body, beneath) = match text.strip_suffix('/') {
            Some(body) => (body, true),
            None => (text, false),
        };
        let mut parts = body.split('/').map(read_part).collect::<Result<Vec<_>, _>>()?;
        if parts.iter().all(|part| matches!(part, Part::Literal(_))) {
            let bytes = body.as_bytes().to_vec();
            return Ok(if beneath { Self::Beneath(bytes) } else { Self::File(bytes) });
        }
        if beneath || parts.last() == Some(&Part::Any) {
            // All beneath, and so at least one component.
            if parts.last() != Some(&Part::Any) {
                parts.push(Part::Any);
            }
            parts.push(Part::Wild(vec![Token::Star]));
        }
        if let [lead @ .., Part::Any, Part::Wild(last)] = parts.as_slice()
            && last.as_slice() == [Token::Star]
            && !lead.is_empty()
            && lead.iter().all(|part| matches!(part, Part::Literal(_)))
        {
            return Ok(Self::Beneath(literal_lead(lead)));
        }
        Ok(Self::Glob(parts))
    }

    /// True where the path, given by its components, is one that the pattern names.
    pub(super) fn matches_components(&self, path: &[&[u8]]) -> bool {
        match self {
            Self::File(file) => file.split(|b| *b == b'/').eq(path.iter().copied()),
            Self::Beneath(dir) => {
                let mut rest = path.iter().copied();
                dir.split(|b| *b == b'/').all(|name| rest.next() == Some(name)) && rest.next().is_some()
            }
            Self::Glob(parts) => matches_parts(parts, path),
        }
    }

    /// The directory or file that everything named here lies in or is: the components before the first
    /// wildcard.
    pub(super) fn leading_path(&self) -> Vec<u8> {
        match self {
            Self::File(bytes) | Self::Beneath(bytes) => bytes.clone(),
            Self::Glob(parts) => {
                let until = parts.iter().position(|part| !matches!(part, Part::Literal(_)));
                literal_lead(&parts[..until.unwrap_or(parts.len())])
            }
        }
    }

    /// True where it is certain that every path beneath `dir` (the top where empty) matches. A glob that
    /// does not end in `**` never says so.
    pub(super) fn covers_all_beneath(&self, dir: &[u8]) -> bool {
        let components: Vec<&[u8]> = dir.split(|b| *b == b'/').filter(|name| !name.is_empty()).collect();
        match self {
            Self::File(_) => false,
            Self::Beneath(own) => {
                let mut rest = components.iter().copied();
                own.split(|b| *b == b'/').all(|name| rest.next() == Some(name))
            }
            Self::Glob(parts) => match parts.as_slice() {
                [lead @ .., Part::Any, Part::Wild(last)] if last.as_slice() == [Token::Star] => {
                    (0..=components.len()).any(|depth| matches_parts(lead, &components[..depth]))
                }
                _ => false,
            },
        }
    }
}

fn literal_lead(parts: &[Part]) -> Vec<u8> {
    let names: Vec<&[u8]> = parts
        .iter()
        .filter_map(|part| match part {
            Part::Literal(name) => Some(name.as_slice()),
            _ => None,
        })
        .collect();
    names.join(&b'/')
}

/// Takes the braces apart: `a{b,c}` is `ab` and `ac`.
fn expand_braces(text: &str, depth: usize) -> Result<Vec<String>, Refusal> {
    if depth > DEEPEST {
        return refuse_pattern("its braces are nested more than 8 deep", "several patterns instead");
    }
    let mut done = vec![String::new()];
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}', '[']) {
        let (plain, special) = rest.split_at(at);
        for alternative in &mut done {
            alternative.push_str(plain);
        }
        let length = match special.as_bytes()[0] {
            b'}' => {
                return refuse_pattern(
                    "a `}` closes nothing",
                    "`{a,b}` with both braces, or `[}]` for the character",
                );
            }
            b'[' => {
                let length = class_length(special)?;
                for alternative in &mut done {
                    alternative.push_str(&special[..length]);
                }
                length
            }
            _ => {
                let (choices, length) = brace_choices(special)?;
                let mut alternatives = Vec::new();
                for choice in choices {
                    for tail in expand_braces(choice, depth + 1)? {
                        alternatives.extend(done.iter().map(|head| format!("{head}{tail}")));
                        if alternatives.len() > MOST_ALTERNATIVES {
                            return refuse_pattern(
                                "its braces stand for more than 1024 patterns",
                                "several patterns instead",
                            );
                        }
                    }
                }
                done = alternatives;
                length
            }
        };
        rest = &special[length..];
    }
    for alternative in &mut done {
        alternative.push_str(rest);
    }
    Ok(done)
}

/// The choices of the braces that `text` begins with, and the length with both braces.
fn brace_choices(text: &str) -> Result<(Vec<&str>, usize), Refusal> {
    let (mut open, mut start, mut at) = (0, 1, 0);
    let mut found = Vec::new();
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'[' => {
                at += class_length(&text[at..])?;
                continue;
            }
            b'{' => open += 1,
            b',' if open == 1 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            b'}' => {
                open -= 1;
                if open == 0 {
                    found.push(&text[start..at]);
                    return Ok((found, at + 1));
                }
            }
            _ => {}
        }
        at += 1;
    }
    refuse_pattern("a `{` is not closed", "`{a,b}` with both braces, or `[{]` for the character")
}

/// The length in bytes of the class that `text` begins with, both brackets included.
fn class_length(text: &str) -> Result<usize, Refusal> {
    let negation = usize::from(text[1..].starts_with(['!', '^']));
    // A `]` in the first place stands for itself.
    let from = 1 + negation + usize::from(text[1 + negation..].starts_with(']'));
    match text[from..].find(']') {
        Some(at) if !text[..from + at].contains('/') => Ok(from + at + 1),
        Some(_) => refuse_pattern("a `[…]` holds `/`, which it can never match", "a class without `/`"),
        None => {
            refuse_pattern("a `[` is not closed", "`[abc]` with both brackets, or `[[]` for the character")
        }
    }
}

fn read_part(text: &str) -> Result<Part, Refusal> {
    match text {
        "" => return refuse_pattern("it has an empty component", "one `/` between components"),
        "." => return refuse_pattern("it has a `.` component", "the same without it"),
        ".." => {
            return refuse_pattern(
                "it has a `..` component and may leave the repository",
                "the path it leads to, from the top",
            );
        }
        "**" => return Ok(Part::Any),
        _ if text.contains("**") => {
            return refuse_pattern(
                "`**` beside other characters in one component",
                "`**` as a whole component, as in `src/**/*.rs`",
            );
        }
        _ => {}
    }
    if !text.contains(['*', '?', '[']) {
        if is_dot_git(text.as_bytes()) {
            return refuse_pattern(
                "a component is a spelling of `.git`",
                "paths of the tree; git's own directory is never one",
            );
        }
        return Ok(Part::Literal(text.as_bytes().to_vec()));
    }
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '[' => class_length(rest)?,
            _ => c.len_utf8(),
        };
        tokens.push(match c {
            '*' => Token::Star,
            '?' => Token::Question,
            '[' => read_class(&rest[1..length - 1])?,
            _ => Token::One(u32::from(c)),
        });
        rest = &rest[length..];
    }
    Ok(Part::Wild(tokens))
}

fn read_class(inside: &str) -> Result<Token, Refusal> {
    let members = inside.strip_prefix(['!', '^']).unwrap_or(inside);
    let negated = members.len() < inside.len();
    let members: Vec<char> = members.chars().collect();
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(from) = members.get(at) {
        if let (Some('-'), Some(to)) = (members.get(at + 1), members.get(at + 2)) {
            if from > to {
                return refuse_pattern(
                    format!("the range `{from}-{to}` is backwards"),
                    format!("`{to}-{from}`"),
                );
            }
            ranges.push((u32::from(*from), u32::from(*to)));
            at += 3;
        } else {
            ranges.push((u32::from(*from), u32::from(*from)));
            at += 1;
        }
    }
    Ok(Token::Class { negated, ranges })
}

/// Greedy match with one way back: to the last `**`.
fn matches_parts(parts: &[Part], path: &[&[u8]]) -> bool {
    let (mut part, mut at) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < path.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                back = Some((part + 1, at));
                part += 1;
                continue;
            }
            Some(Part::Literal(name)) if name.as_slice() == path[at] => {
                (part, at) = (part + 1, at + 1);
                continue;
            }
            Some(Part::Wild(tokens)) if matches_tokens(tokens, path[at]) => {
                (part, at) = (part + 1, at + 1);
                continue;
            }
            _ => {}
        }
        let Some((after, from)) = back else { return false };
        back = Some((after, from + 1));
        (part, at) = (after, from + 1);
    }
    parts[part..].iter().all(|rest| *rest == Part::Any)
}

fn matches_tokens(tokens: &[Token], name: &[u8]) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < name.len() {
        let (unit, length) = unit_at(name, at);
        let fits = match tokens.get(token) {
            Some(Token::Star) => {
                back = Some((token + 1, at));
                token += 1;
                continue;
            }
            Some(Token::One(want)) => *want == unit,
            Some(Token::Question) => true,
            Some(Token::Class { negated, ranges }) => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&unit)) != *negated
            }
            None => false,
        };
        if fits {
            (token, at) = (token + 1, at + length);
            continue;
        }
        let Some((after, from)) = back else { return false };
        let next = from + unit_at(name, from).1;
        back = Some((after, next));
        (token, at) = (after, next);
    }
    tokens[token..].iter().all(|rest| *rest == Token::Star)
}

/// The character at a place and its length; a byte that begins none is a unit above all characters.
fn unit_at(name: &[u8], at: usize) -> (u32, usize) {
    let byte = name[at];
    let length = match byte {
        0..=0x7f => return (u32::from(byte), 1),
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => 1,
    };
    name.get(at..at + length)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|text| text.chars().next())
        .map_or((0x11_0000 + u32::from(byte), 1), |c| (u32::from(c), length))
}
