//! Tokens that start with a digit or a minus, UUIDs and durations.

use super::{Kind, LexError, Lexed, fail, peek};

fn digits(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len())
}

/// Whether eight hexadecimal digits and a minus stand here: from then on nothing but a UUID will
/// do.
pub(super) fn opens_uuid(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..at + 9) {
        Some([head @ .., b'-']) => head.iter().all(u8::is_ascii_hexdigit),
        _ => false,
    }
}

/// Whether the digit here begins a UUID: true from the first character that fits a UUID and no
/// number, even if the rest then fits neither (`0b`, `1da`, `12345678-1`).
fn digit_opens_uuid(bytes: &[u8], at: usize) -> bool {
    /// What could still be a number: digits, an exponent being read, days being read.
    enum Number {
        Digits,
        Exponent,
        Signed,
        Power,
        Days,
        More,
    }
    let mut number = Number::Digits;
    for offset in 1..UUID_LENGTH {
        let byte = peek(bytes, at + offset);
        if !fits_uuid(byte, offset) {
            return false;
        }
        number = match (number, byte) {
            (Number::Digits, b'0'..=b'9') => Number::Digits,
            (Number::Digits, b'e' | b'E') => Number::Exponent,
            (Number::Exponent, b'-') => Number::Signed,
            (Number::Exponent | Number::Signed | Number::Power, b'0'..=b'9') => Number::Power,
            (Number::Digits | Number::More, b'd' | b'D') => Number::Days,
            (Number::Days | Number::More, b'0'..=b'9') => Number::More,
            _ => return true,
        };
    }
    true
}

const UUID_LENGTH: usize = 36;

fn fits_uuid(byte: u8, offset: usize) -> bool {
    match offset {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    }
}

/// 8-4-4-4-12 hexadecimal digits.
pub(super) fn uuid(bytes: &[u8], at: usize) -> Lexed {
    for offset in 0..UUID_LENGTH {
        if !fits_uuid(peek(bytes, at + offset), offset) {
            return fail(at + offset, "set null");
        }
    }
    Ok((Kind::Uuid, at + UUID_LENGTH))
}

/// A token that starts with a digit.
pub(super) fn unsigned(bytes: &[u8], at: usize) -> Lexed {
    if digit_opens_uuid(bytes, at) {
        return uuid(bytes, at);
    }
    if peek(bytes, at) == b'0' && matches!(peek(bytes, at + 1), b'x' | b'X') {
        let rest = bytes.get(at + 2..).unwrap_or_default();
        let length = rest.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(rest.len());
        return Ok((Kind::Hex, at + 2 + length));
    }
    number(bytes, at)
}

/// A token that starts with a minus.
pub(super) fn minus(bytes: &[u8], at: usize) -> Lexed {
    match peek(bytes, at + 1) {
        b'0'..=b'9' => number(bytes, at + 1),
        b'=' => Ok((Kind::MinusEqual, at + 2)),
        b'P' => negative_iso(bytes, at),
        b'n' | b'N' => literally(bytes, at + 1, b"nan", Kind::NegativeNan),
        b'i' | b'I' => literally(bytes, at + 1, b"infinity", Kind::NegativeInfinity),
        _ => Ok((Kind::Minus, at + 1)),
    }
}

/// `-P` and the rest of a duration. Unlike a word that starts with `P` it cannot turn out a name,
/// so a number or a `T` that leads nowhere is an error.
fn negative_iso(bytes: &[u8], at: usize) -> Lexed {
    let Some(end) = iso(bytes, at + 1)? else { return fail(at + 2, "set null") };
    let timed = bytes.get(at..end).unwrap_or_default().contains(&b'T');
    match peek(bytes, end) {
        b'0'..=b'9' => fail(end, "set null"),
        b'T' if !timed => fail(end, "set null"),
        _ => Ok((Kind::Duration, end)),
    }
}

fn literally(bytes: &[u8], at: usize, word: &[u8], kind: Kind) -> Lexed {
    for (offset, expected) in word.iter().enumerate() {
        if !peek(bytes, at + offset).eq_ignore_ascii_case(expected) {
            return fail(at + offset, "set null");
        }
    }
    Ok((kind, at + word.len()))
}

/// Digits and what may follow them: a point, an exponent or the units of a duration.
fn number(bytes: &[u8], at: usize) -> Lexed {
    let end = digits(bytes, at);
    match peek(bytes, end) {
        b'.' => match (peek(bytes, end + 1), peek(bytes, end + 2)) {
            (b'.', b'.') => Ok((Kind::Float, end + 1)), // `1...` is `1.` and a range
            (b'.', _) => Ok((Kind::Integer, end)),
            _ => {
                let fraction = digits(bytes, end + 1);
                match peek(bytes, fraction) {
                    b'e' | b'E' => exponent(bytes, fraction),
                    _ => Ok((Kind::Float, fraction)),
                }
            }
        },
        b'e' | b'E' => exponent(bytes, end),
        _ => match unit(bytes, end)? {
            Some(next) => units(bytes, next),
            None => Ok((Kind::Integer, end)),
        },
    }
}

fn exponent(bytes: &[u8], at: usize) -> Lexed {
    let sign = usize::from(matches!(peek(bytes, at + 1), b'+' | b'-'));
    let end = digits(bytes, at + 1 + sign);
    if end == at + 1 + sign {
        return Err(LexError { at: end, expected: None });
    }
    Ok((Kind::Float, end))
}

/// The rest of `1h30m` after its first unit.
fn units(bytes: &[u8], mut at: usize) -> Lexed {
    while peek(bytes, at).is_ascii_digit() {
        let end = digits(bytes, at);
        match unit(bytes, end)? {
            Some(next) => at = next,
            None => return Err(LexError { at: end, expected: None }),
        }
    }
    Ok((Kind::Duration, at))
}

/// The end of the unit that stands here, if one does: y, mo, w, d, h, m, s, ms, us, ns or its micro
/// sign.
fn unit(bytes: &[u8], at: usize) -> Result<Option<usize>, LexError> {
    let second = peek(bytes, at + 1).to_ascii_lowercase();
    match peek(bytes, at).to_ascii_lowercase() {
        b'y' | b'w' | b'd' | b'h' | b's' => Ok(Some(at + 1)),
        b'm' if second == b'o' || second == b's' => Ok(Some(at + 2)),
        b'm' => Ok(Some(at + 1)),
        b'u' | b'n' if second == b's' => Ok(Some(at + 2)),
        b'u' | b'n' => fail(at + 1, "set null"),
        0xC2 if second == 0xB5 => match peek(bytes, at + 2) {
            b's' | b'S' => Ok(Some(at + 3)),
            _ => fail(at + 2, "set null"),
        },
        _ => Ok(None),
    }
}

/// A word that starts with `P`: a duration if all of it reads as one (`P1Yx` is a name).
pub(super) fn iso_word(bytes: &[u8], at: usize, end: usize) -> Option<Lexed> {
    match iso(bytes, at) {
        Ok(Some(found)) if found >= end => Some(Ok((Kind::Duration, found))),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The end of the ISO 8601 duration whose `P` stands here.
fn iso(bytes: &[u8], at: usize) -> Result<Option<usize>, LexError> {
    let end = digits(bytes, at + 1);
    if end == at + 5 && peek(bytes, end) == b'-' {
        return iso_date(bytes, at).map(Some);
    }
    if end > at + 1 && peek(bytes, end) == b'W' {
        return Ok(Some(end + 1));
    }
    let period = designators(bytes, at + 1, b"YMD");
    let time_at = period.unwrap_or(at + 1);
    let time = match peek(bytes, time_at) {
        b'T' => designators(bytes, time_at + 1, b"HMS"),
        _ => None,
    };
    Ok(time.or(period))
}

/// `n` and one of the letters, in their order, each at most once; `None` where not even one stands
/// here.
fn designators(bytes: &[u8], at: usize, letters: &[u8]) -> Option<usize> {
    let mut found = None;
    let mut next = at;
    for letter in letters {
        let end = digits(bytes, next);
        if end > next && peek(bytes, end) == *letter {
            next = end + 1;
            found = Some(next);
        }
    }
    found
}

/// `Pyyyy-mm-ddThh:mm:ss`.
fn iso_date(bytes: &[u8], at: usize) -> Result<usize, LexError> {
    for (offset, &shape) in b"Pdddd-dd-ddTdd:dd:dd".iter().enumerate() {
        let byte = peek(bytes, at + offset);
        let fits = if shape == b'd' { byte.is_ascii_digit() } else { byte == shape };
        if !fits {
            return fail(at + offset, if shape == b'T' { "'T'" } else { "set null" });
        }
    }
    Ok(at + 20)
}
