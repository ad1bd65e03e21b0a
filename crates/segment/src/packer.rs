//! Packs messages into segments.
//!
//! Messages are written straight into the connection's output buffer between [`Packer::begin`] and
//! [`Packer::end`]; one segment collects as many of them as it holds, so a loop turn's messages
//! cost one checksum and one write.

use crate::block::Blocks;
use crate::header::{Form, MAX_PAYLOAD, SegmentHeader, crc32};
use crate::reset_scratch;

/// Packs what one connection sends.
#[derive(Debug)]
pub struct Packer {
    form: Form,
    /// Where in the output the segment that is being filled starts.
    open: Option<usize>,
    /// A message that is moved.
    scratch: Vec<u8>,
    /// A payload that is compressed.
    block: Vec<u8>,
    /// Made by the first segment that may be compressed.
    blocks: Option<Box<Blocks>>,
}

impl Packer {
    /// For segments of a form.
    pub fn new(form: Form) -> Self {
        Self { form, open: None, scratch: Vec::new(), block: Vec::new(), blocks: None }
    }

    /// Makes room for a message at the end of `out`. Between this call and [`Self::flush`] bytes
    /// of `out` may be appended, but not removed from its front.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if self.open.is_none() {
            self.open = Some(out.len());
            out.resize(out.len() + self.form.header_length(), 0);
        }
    }

    /// The message that starts at `start` (what [`begin`](Self::begin) left as the end of `out`) is
    /// complete. Seals the open segment in front of a message that does not fit into it; a message
    /// that fits into none is sealed in parts.
    pub fn end(&mut self, out: &mut Vec<u8>, start: usize) {
        let Some(open) = self.open else { return };
        if out.len().saturating_sub(open + self.form.header_length()) <= MAX_PAYLOAD {
            return;
        }
        let mut message = std::mem::take(&mut self.scratch);
        message.clear();
        message.extend_from_slice(out.get(start..).unwrap_or_default());
        out.truncate(start);
        self.flush(out);
        if message.len() <= MAX_PAYLOAD {
            self.begin(out);
            out.extend_from_slice(&message);
        } else {
            for part in message.chunks(MAX_PAYLOAD) {
                let open = out.len();
                out.resize(open + self.form.header_length(), 0);
                out.extend_from_slice(part);
                self.seal(out, open, false);
            }
        }
        reset_scratch(&mut message);
        self.scratch = message;
    }

    /// Seals the segment that is being filled; after it `out` may be handed to the socket.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(open) = self.open.take() {
            if out.len() > open + self.form.header_length() {
                self.seal(out, open, true);
            } else {
                out.truncate(open);
            }
        }
    }

    /// Completes the segment at `open`, whose payload reaches to the end of `out`.
    fn seal(&mut self, out: &mut Vec<u8>, open: usize, self_contained: bool) {
        let form = self.form;
        let payload_at = open + form.header_length();
        let payload = out.get(payload_at..).unwrap_or_default();
        let mut header =
            SegmentHeader { length: payload.len(), uncompressed: None, self_contained };
        if form == Form::Lz4 {
            let blocks = self.blocks.get_or_insert_with(Box::default);
            let block = &mut self.block;
            reset_scratch(block);
            if blocks.append(payload, block).is_some() && block.len() < payload.len() {
                header.uncompressed = Some(payload.len());
                header.length = block.len();
                out.truncate(payload_at);
                out.extend_from_slice(block);
            }
        }
        let encoded = header.encode(form);
        for (place, byte) in out.iter_mut().skip(open).zip(encoded).take(form.header_length()) {
            *place = byte;
        }
        if form.trailer_length() > 0 {
            let checksum = crc32(out.get(payload_at..).unwrap_or_default());
            out.extend_from_slice(&checksum.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::{Found, Segment};
    use proptest::prelude::*;

    /// The payloads of all segments, and whether each is self-contained.
    fn unpacked(form: Form, mut wire: &[u8]) -> Vec<(bool, Vec<u8>)> {
        let mut found = Vec::new();
        while !wire.is_empty() {
            let Found::Whole(segment) = Segment::find(form, wire) else { panic!("no segment") };
            let mut plain = vec![0; segment.plain_length()];
            match segment.header.uncompressed {
                Some(_) => crate::decompress(segment.payload, &mut plain).expect("a block"),
                None => plain.copy_from_slice(segment.payload),
            }
            found.push((segment.header.self_contained, plain));
            wire = &wire[segment.total..];
        }
        found
    }

    fn message(seed: u8, length: usize) -> Vec<u8> {
        // half of it compresses
        (0..length).map(|at| if at % 2 == 0 { seed } else { ((at * 31) >> 3) as u8 }).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn messages_come_back(
            lengths in prop::collection::vec(
                prop_oneof![4 => 1usize..300, 1 => MAX_PAYLOAD - 3..MAX_PAYLOAD + 3, 1 => 1usize..400_000], 1..8),
            form in prop_oneof![Just(Form::Plain), Just(Form::Lz4), Just(Form::Bare)],
        ) {
            let mut packer = Packer::new(form);
            let mut wire = Vec::new();
            let messages: Vec<_> = lengths.iter().enumerate().map(|(at, length)| message(at as u8, *length)).collect();
            for message in &messages {
                packer.begin(&mut wire);
                let start = wire.len();
                wire.extend_from_slice(message);
                packer.end(&mut wire, start);
            }
            packer.flush(&mut wire);
            let found = unpacked(form, &wire);
            prop_assert_eq!(found.iter().flat_map(|(_, p)| p.clone()).collect::<Vec<_>>(), messages.concat());
            // what is too long for a segment is alone in its parts; all else is whole
            let long: Vec<_> = messages.iter().filter(|m| m.len() > MAX_PAYLOAD).flatten().copied().collect();
            let parts: Vec<_> = found.iter().filter(|(whole, _)| !whole).flat_map(|(_, p)| p.clone()).collect();
            prop_assert_eq!(parts, long);
        }
    }

    #[test]
    fn damage_is_seen() {
        for form in [Form::Plain, Form::Lz4, Form::Bare] {
            let mut packer = Packer::new(form);
            let mut wire = Vec::new();
            packer.begin(&mut wire);
            wire.extend_from_slice(&message(1, 100));
            packer.flush(&mut wire);
            for cut in 0..wire.len() {
                assert!(matches!(Segment::find(form, &wire[..cut]), Found::Part(n) if n > cut));
            }
            for byte in 0..wire.len() {
                wire[byte] ^= 4;
                match Segment::find(form, &wire) {
                    Found::BadHeader(_) => assert!(byte < form.header_length()),
                    Found::BadPayload(..) => assert!(byte >= form.header_length()),
                    Found::Whole(_) => assert!(form == Form::Bare && byte >= form.header_length()),
                    Found::Part(_) => panic!("a length that nobody wrote was believed"),
                }
                wire[byte] ^= 4;
            }
        }
    }
}
