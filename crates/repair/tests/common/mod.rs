//! What Cassandra's own classes printed (`conformance/repair`), and what tests share.

use repair::hash_bytes;
use repair::tree::{Hash, Tree};
use types::hex::{from_hex, to_hex};
use types::{Address, Token, TokenRange};

/// The releases that there are vectors of messages of.
pub const RELEASES: [&str; 2] = ["5.0.9", "4.1.10"];
/// Trees of more bytes are recorded as their hash.
const BYTES_MOST: usize = 600;

/// The vectors of a kind: their parts. `release` says which Cassandra made them.
pub fn vectors(release: &str, kind: &str) -> Vec<Vec<&'static str>> {
    let text = match release {
        "4.1.10" => include_str!("../../testdata/4.1.10.txt"),
        _ => include_str!("../../testdata/5.0.9.txt"),
    };
    let parts = |line: &'static str| line.split('\t').collect::<Vec<_>>();
    let found = text.lines().map(parts).filter(|parts| parts[0] == kind);
    let found: Vec<_> = found.map(|parts| parts[1..].to_vec()).collect();
    assert!(!found.is_empty(), "no {kind} of {release}");
    found
}

pub fn hex(text: &str) -> Vec<u8> {
    from_hex(text).unwrap_or_else(|| panic!("no hexadecimal: {text}"))
}

/// The parts of a list.
pub fn list(text: &str) -> Vec<&str> {
    if text == "-" { Vec::new() } else { text.split(',').collect() }
}

/// A list of what is shown.
pub fn join<T: ToString>(parts: impl IntoIterator<Item = T>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.to_string()).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(",") }
}

pub fn token(text: &str) -> Token {
    Token(text.parse().unwrap_or_else(|_| panic!("no token: {text}")))
}

pub fn tokens(text: &str) -> Vec<Token> {
    list(text).into_iter().map(token).collect()
}

pub fn range(left: &str, right: &str) -> TokenRange {
    TokenRange { left: token(left), right: token(right) }
}

pub fn ranges(text: &str) -> Vec<TokenRange> {
    let parts = list(text).into_iter().map(|part| part.split_once(':').expect("a range"));
    parts.map(|(left, right)| range(left, right)).collect()
}

pub fn show_ranges(ranges: &[TokenRange]) -> String {
    join(ranges.iter().map(|range| format!("{}:{}", range.left, range.right)))
}

/// As the vectors have them: Java's form of IPv6 addresses, `@`, the port.
pub fn address(text: &str) -> Address {
    let (ip, port) = text.split_once('@').expect("an address");
    let ip: std::net::IpAddr = ip.parse().expect("an IP address");
    Address::new(ip, port.parse().expect("a port"))
}

/// The vectors' hash of a partition with this token.
pub fn hash_of(token: Token) -> Hash {
    hash_bytes(&[&token.0.to_be_bytes()])
}

pub fn add_all(tree: &mut Tree, tokens: &[Token]) {
    for token in tokens {
        tree.add(*token, &hash_of(*token)).expect("in the range");
    }
}

/// Bytes, or their length and hash, as the vectors have them.
pub fn shown(bytes: &[u8]) -> String {
    match bytes.len() <= BYTES_MOST {
        true => to_hex(bytes),
        false => format!("{}:{}", bytes.len(), to_hex(&hash_bytes(&[bytes]))),
    }
}

pub fn bytes_of(tree: &Tree) -> Vec<u8> {
    let mut bytes = Vec::new();
    tree.write(&mut bytes);
    bytes
}
