//! Guava's hashes, whole and in pieces.

use repair::hash_bytes;
use types::hash128_unsigned;
use types::hex::to_hex;

use crate::common::{hex, vectors};

/// `new java.util.Random(seed).nextBytes`.
fn java_bytes(seed: u64) -> Vec<u8> {
    let mut state = (seed ^ 0x5_DEEC_E66D) & ((1 << 48) - 1);
    let mut next = move || {
        state = (state.wrapping_mul(0x5_DEEC_E66D) + 0xB) & ((1 << 48) - 1);
        (state >> 16) as u32
    };
    let words = (0..seed.div_ceil(4)).flat_map(|_| next().to_le_bytes());
    words.take(seed as usize).collect()
}

#[test]
fn are_guavas() {
    let mut lengths = Vec::new();
    for parts in vectors("5.0.9", "hash") {
        let bytes = match parts[0].strip_prefix("random:") {
            Some(length) => java_bytes(length.parse().unwrap()),
            None => hex(parts[0]),
        };
        assert_eq!(to_hex(&hash_bytes(&[&bytes])), parts[1], "{} bytes", bytes.len());
        // pieces of each length, so that each fill of a block meets each piece
        for piece in 1..40 {
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            assert_eq!(to_hex(&hash_bytes(&pieces)), parts[1], "{} in {piece}", bytes.len());
        }
        // an empty piece, and one piece that is longer than a block behind a shorter one
        let (head, tail) = bytes.split_at(bytes.len().min(5));
        assert_eq!(to_hex(&hash_bytes(&[&[], head, &[], tail])), parts[1]);
        lengths.push(bytes.len());
    }
    assert!(lengths.len() >= 200 && lengths.iter().any(|length| *length > 2000));
}

#[test]
fn are_the_two_hashes_of_all_bytes() {
    for seed in 0..300 {
        let bytes = java_bytes(seed);
        let words = [1000, 2000].map(|seed| hash128_unsigned(&bytes, seed));
        let expected: Vec<u8> =
            words.as_flattened().iter().flat_map(|word| word.to_le_bytes()).collect();
        assert_eq!(hash_bytes(&[&bytes]).to_vec(), expected);
    }
}
