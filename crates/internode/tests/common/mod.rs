//! What Cassandra's own classes wrote (`conformance/internode` makes it), and what tests share.
#![allow(dead_code, reason = "each test uses some of it")]

use types::hex::from_hex;

/// The vectors of a kind: their words. `release` says which Cassandra made them.
pub fn vectors(release: &str, kind: &str) -> Vec<Vec<&'static str>> {
    let text = match release {
        "4.1.10" => include_str!("../../testdata/4.1.10.txt"),
        _ => include_str!("../../testdata/5.0.9.txt"),
    };
    let words = |line: &'static str| line.split(' ').collect::<Vec<_>>();
    let found = text.lines().map(words).filter(|words| words[0] == kind);
    let found: Vec<_> = found.map(|words| words[1..].to_vec()).collect();
    assert!(!found.is_empty(), "no {kind} of {release}");
    found
}

/// The releases that there are vectors of.
pub const RELEASES: [&str; 2] = ["5.0.9", "4.1.10"];

pub fn hex(text: &str) -> Vec<u8> {
    from_hex(text).unwrap_or_else(|| panic!("no hexadecimal: {text}"))
}
