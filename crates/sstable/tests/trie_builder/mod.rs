//! Writes a trie as Cassandra might: children before parents, no node across a page, a type that
//! fits.

use std::collections::BTreeMap;

use sstable::bti::PAGE_BYTES;

/// The trie in the making.
#[derive(Default)]
pub struct TrieBuilder {
    bytes: Vec<u8>,
    /// Takes turns among the types that fit.
    turn: usize,
}

impl TrieBuilder {
    /// The bytes of a trie of these entries, and where its root is. A value is a payload of as many
    /// bytes as its flags say.
    pub fn build(map: &BTreeMap<Vec<u8>, u64>) -> (Vec<u8>, u64) {
        let mut builder = Self::default();
        let entries: Vec<_> = map.iter().map(|(key, value)| (&key[..], *value)).collect();
        let root = builder.node(&entries);
        (builder.bytes, root)
    }

    fn node(&mut self, entries: &[(&[u8], u64)]) -> u64 {
        let own = entries.first().filter(|(key, _)| key.is_empty()).map(|(_, value)| *value);
        let rest = if own.is_some() { &entries[1..] } else { entries };
        let mut children = Vec::new();
        for group in rest.chunk_by(|a, b| a.0[0] == b.0[0]) {
            let below: Vec<_> = group.iter().map(|(key, value)| (&key[1..], *value)).collect();
            children.push((group[0].0[0], self.node(&below)));
        }
        let payload: Vec<u8> = own.map_or_else(Vec::new, |value| {
            let bytes = value.to_be_bytes();
            bytes[value.leading_zeros().min(56) as usize / 8..].to_vec()
        });
        // padded as if the node were as large as can be
        let size = 3 + 256 * 8 + payload.len() as u64;
        let at = self.bytes.len() as u64;
        if at % PAGE_BYTES + size > PAGE_BYTES {
            self.bytes.resize(at.next_multiple_of(PAGE_BYTES) as usize, 0xee);
        }
        let at = self.bytes.len() as u64;
        self.turn += 1;
        let distances: Vec<_> = children.iter().map(|(byte, child)| (*byte, at - child)).collect();
        let node = encode(&distances, payload.len() as u8, self.turn);
        self.bytes.extend(node);
        self.bytes.extend(payload);
        at
    }
}

/// One of the forms that a node with these children and flags can have.
fn encode(children: &[(u8, u64)], flags: u8, turn: usize) -> Vec<u8> {
    let far = children.iter().map(|child| child.1).max().unwrap_or(0);
    let fits = |bits: u32| bits == 64 || far < 1 << bits;
    let mut forms: Vec<Vec<u8>> = Vec::new();
    let head = |kind: u8| kind << 4 | flags;
    if children.is_empty() {
        return vec![head(0)];
    }
    if let [(byte, distance)] = children {
        if flags == 0 && fits(4) {
            forms.push(vec![1 << 4 | *distance as u8, *byte]);
        }
        if flags == 0 && fits(12) {
            forms.push(vec![3 << 4 | (distance >> 8) as u8, *distance as u8, *byte]);
        }
        for (kind, bits) in [(2, 8), (4, 16)] {
            if fits(bits) {
                forms.push([&[head(kind), *byte][..], &packed(&[*distance], bits)].concat());
            }
        }
    }
    let distances: Vec<u64> = children.iter().map(|child| child.1).collect();
    if children.len() < 256 {
        for (kind, bits) in [(5, 8), (6, 12), (7, 16), (8, 24), (9, 40)] {
            if fits(bits) {
                let bytes: Vec<u8> = children.iter().map(|child| child.0).collect();
                let count = [head(kind), children.len() as u8];
                forms.push([&count[..], &bytes, &packed(&distances, bits)].concat());
            }
        }
    }
    let (first, last) = (children[0].0, children[children.len() - 1].0);
    let all: Vec<u64> = (first..=last)
        .map(|byte| children.iter().find(|child| child.0 == byte).map_or(0, |child| child.1))
        .collect();
    for (kind, bits) in [(10, 12), (11, 16), (12, 24), (13, 32), (14, 40), (15, 64)] {
        if fits(bits) {
            let range = [head(kind), first, last - first];
            forms.push([&range[..], &packed(&all, bits)].concat());
        }
    }
    forms.swap_remove(turn % forms.len())
}

/// Big-endian numbers of so many bits, one after the other; the last byte filled up with zeros.
fn packed(numbers: &[u64], bits: u32) -> Vec<u8> {
    let mut text = String::new();
    for number in numbers {
        let number = format!("{number:064b}");
        text.push_str(&number[64 - bits as usize..]);
    }
    while !text.len().is_multiple_of(8) {
        text.push('0');
    }
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 8], 2).expect("bits");
    (0..text.len()).step_by(8).map(byte).collect()
}
