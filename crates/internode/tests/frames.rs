//! Messages in frames: as Cassandra frames them, in any pieces, damaged in any byte, and as a peer
//! that means harm.

use crate::common;

use common::{hex, vectors};
use internode::receiver::most_buffered;
use internode::{
    Corruption, Flags, Framing, Header, HeaderError, LARGE_MESSAGE, Outcome, Receiver, SendError,
    Sender, Verb, WireError,
};
use proptest::prelude::*;
use segment::{Form, Found, MAX_PAYLOAD, Packer, Segment, SegmentHeader, crc32};

const MAX: u64 = 1 << 20;
const FRAMINGS: [Framing; 3] = [Framing::Unprotected, Framing::Lz4, Framing::Crc];

#[test]
fn frames_as_cassandra_writes_them() {
    for words in vectors("5.0.9", "frame") {
        let [name, contained, payload, bytes] = words[..] else { panic!("{words:?}") };
        let form = match name {
            "CRC" => Form::Plain,
            "LZ4" => Form::Lz4,
            _ => Form::Bare,
        };
        let (payload, bytes) = (hex(payload), hex(bytes));
        let Found::Whole(segment) = Segment::find(form, &bytes) else { panic!("{words:?}") };
        assert_eq!(segment.header.self_contained.to_string(), contained);
        assert_eq!((segment.total, segment.plain_length()), (bytes.len(), payload.len()));
        let mut plain = vec![0; payload.len()];
        match segment.header.uncompressed {
            Some(_) => segment::decompress(segment.payload, &mut plain).expect("a block"),
            None => plain.copy_from_slice(segment.payload),
        }
        assert_eq!(plain, payload);
        // compressors differ in what they find
        if form != Form::Lz4 && contained == "true" {
            let mut out = Vec::new();
            let mut packer = Packer::new(form);
            packer.begin(&mut out);
            out.extend_from_slice(&payload);
            packer.flush(&mut out);
            assert_eq!(out, bytes);
        }
    }
}

fn payload(length: usize, seed: u8) -> Vec<u8> {
    (0..length).map(|at| if at % 3 == 0 { (at >> 2) as u8 ^ seed } else { seed }).collect()
}

fn header(id: u64, verb: Verb) -> Header {
    Header::new(id, verb, 1_700_000_000_000, 2000)
}

/// The messages of those payload lengths as they travel; ids count from 1.
fn wire(framing: Framing, lengths: &[usize], flush: impl Fn(usize) -> bool) -> Vec<u8> {
    let mut sender = Sender::new(framing, MAX);
    let mut out = Vec::new();
    for (at, length) in lengths.iter().enumerate() {
        let header = header(at as u64 + 1, Verb::MutationReq);
        sender.push(&header, &payload(*length, at as u8), &mut out).expect("small enough");
        if flush(at) {
            sender.flush(&mut out);
        }
    }
    sender.flush(&mut out);
    out
}

/// What a receiver makes of bytes that come `piece` at a time: ids and payloads of messages, what
/// else there was, and why it ended.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    messages: Vec<(u64, Vec<u8>)>,
    announced: Vec<u64>,
    refused: Vec<u64>,
    lost: Vec<Option<u64>>,
    failed: Option<WireError>,
}

fn receive(
    receiver: &mut Receiver,
    wire: &[u8],
    piece: usize,
    discard: impl Fn(u64) -> bool,
) -> Seen {
    let mut seen = Seen::default();
    let mut input = Vec::new();
    for part in wire.chunks(piece) {
        input.extend_from_slice(part);
        loop {
            let step = receiver.next(&input);
            let consumed = step.consumed;
            let mut unwanted = false;
            let mut is_whole = false;
            let mut waits = false;
            match step.outcome {
                Outcome::Wait(needed) => {
                    assert!(needed > input.len() - consumed && needed <= segment::MAX_SEGMENT);
                    waits = true;
                }
                Outcome::Message(message) => {
                    is_whole = message.is_large;
                    seen.messages.push((message.header.id, message.payload.to_vec()));
                }
                Outcome::Large { header, .. } => {
                    seen.announced.push(header.id);
                    unwanted = discard(header.id);
                }
                Outcome::Refused(refusal) => seen.refused.push(refusal.id),
                Outcome::Lost(Corruption::Segment(_)) => seen.lost.push(None),
                Outcome::Lost(Corruption::Large { header, .. }) => seen.lost.push(Some(header.id)),
                Outcome::Failed(error) => {
                    seen.failed = Some(error);
                    return seen;
                }
            }
            if unwanted {
                receiver.discard();
            }
            if is_whole {
                let last = seen.messages.last().map(|(_, payload)| payload.as_slice());
                assert_eq!(Some(receiver.take_large().as_slice()), last);
            }
            input.drain(..consumed);
            assert!(receiver.buffered() as u64 <= most_buffered(MAX));
            if waits {
                break;
            }
        }
    }
    seen
}

fn expected(lengths: &[usize]) -> Vec<(u64, Vec<u8>)> {
    lengths.iter().enumerate().map(|(at, n)| (at as u64 + 1, payload(*n, at as u8))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn messages_come_back(
        lengths in prop::collection::vec(prop_oneof![
            6 => 0usize..400, 2 => LARGE_MESSAGE - 20..LARGE_MESSAGE + 5, 2 => MAX_PAYLOAD - 20..MAX_PAYLOAD + 20,
            1 => 0usize..400_000], 1..10),
        framing in prop::sample::select(&FRAMINGS[..]),
        piece in prop_oneof![1usize..200, 1000usize..300_000],
        flushes: u16,
    ) {
        let wire = wire(framing, &lengths, |at| flushes >> (at % 16) & 1 == 1);
        let seen = receive(&mut Receiver::new(framing, MAX), &wire, piece, |_| false);
        prop_assert_eq!(seen.failed, None);
        prop_assert_eq!(seen.messages, expected(&lengths));
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), framing in prop::sample::select(&FRAMINGS[..])) {
        receive(&mut Receiver::new(framing, MAX), &bytes, 7, |_| false);
    }

    /// Payloads of frames whose checksums are right, as nobody would make them.
    #[test]
    fn any_payloads(
        frames in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 0..60)), 0..6),
        piece in 1usize..100,
    ) {
        let wire: Vec<u8> = frames.iter().flat_map(|(whole, payload)| frame(*whole, payload)).collect();
        receive(&mut Receiver::new(Framing::Crc, MAX), &wire, piece, |id| id % 2 == 0);
    }
}

/// A frame with checksums.
fn frame(self_contained: bool, payload: &[u8]) -> Vec<u8> {
    let header = SegmentHeader { length: payload.len(), uncompressed: None, self_contained };
    let mut out = header.encode(Form::Plain)[..Form::Plain.header_length()].to_vec();
    out.extend_from_slice(payload);
    out.extend_from_slice(&crc32(payload).to_le_bytes());
    out
}

/// A message with a payload that claims to have `length` bytes.
fn claiming(id: u64, length: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header(id, Verb::MutationReq).write(&mut out).unwrap();
    types::WriteBytes::put_uvint(&mut out, length);
    out.extend_from_slice(payload);
    out
}

fn seen(wire: &[u8]) -> Seen {
    receive(&mut Receiver::new(Framing::Crc, MAX), wire, 1000, |_| false)
}

#[test]
fn small_messages_share_a_frame_and_large_ones_have_their_own() {
    let count = |lengths: &[usize]| {
        let wire = wire(Framing::Crc, lengths, |_| false);
        let mut frames = Vec::new();
        let mut rest = &wire[..];
        while let Found::Whole(segment) = Segment::find(Form::Plain, rest) {
            frames.push(segment.header.self_contained);
            rest = &rest[segment.total..];
        }
        frames
    };
    assert_eq!(count(&[100; 50]), [true]);
    assert_eq!(count(&[100_000, 100_000, 10]), [true, true]);
    assert_eq!(count(&[10, 300_000, 10]), [true, false, false, false, true]);
}

#[test]
fn a_damaged_byte_costs_its_frame_alone() {
    for framing in [Framing::Lz4, Framing::Crc] {
        let lengths = [50, 60, 70];
        let good = wire(framing, &lengths, |_| true);
        let first = match Segment::find(framing.form(), &good) {
            Found::Whole(segment) => segment.total,
            other => panic!("{other:?}"),
        };
        for byte in 0..first {
            let mut bad = good.clone();
            bad[byte] ^= 0x10;
            let seen = receive(&mut Receiver::new(framing, MAX), &bad, 9, |_| false);
            if byte < framing.form().header_length() {
                assert!(matches!(seen.failed, Some(WireError::Header(_))), "{byte}: {seen:?}");
                assert_eq!(seen.messages, []);
            } else {
                assert_eq!((seen.failed, seen.lost), (None, vec![None]), "{byte}");
                assert_eq!(seen.messages, expected(&lengths)[1..]);
            }
        }
    }
}

#[test]
fn a_damaged_part_costs_its_large_message() {
    for framing in [Framing::Lz4, Framing::Crc] {
        let lengths = [10, 300_000, 20];
        let good = wire(framing, &lengths, |_| false);
        let mut starts = vec![0];
        while let Found::Whole(s) = Segment::find(framing.form(), &good[*starts.last().unwrap()..])
        {
            starts.push(starts.last().unwrap() + s.total);
        }
        assert_eq!(starts.len(), 6, "five frames");
        for part in 1..4 {
            let mut bad = good.clone();
            bad[starts[part] + framing.form().header_length() + 3] ^= 1;
            let seen = receive(&mut Receiver::new(framing, MAX), &bad, 5000, |_| false);
            if part == 1 {
                assert!(matches!(seen.failed, Some(WireError::FirstPart(_))), "{:?}", seen.failed);
                continue;
            }
            assert_eq!((seen.failed, seen.lost), (None, vec![Some(2)]));
            let all = expected(&lengths);
            assert_eq!(seen.messages, [all[0].clone(), all[2].clone()]);
        }
    }
}

#[test]
fn what_nobody_wants_is_passed_over_without_being_held() {
    let lengths = [200_000, 300_000, 10];
    let wire = wire(Framing::Crc, &lengths, |_| false);
    let mut receiver = Receiver::new(Framing::Crc, MAX);
    let seen = receive(&mut receiver, &wire, 10_000, |id| id == 2);
    assert_eq!(seen.announced, [1, 2]);
    let all = expected(&lengths);
    assert_eq!(seen.messages, [all[0].clone(), all[2].clone()]);
    assert!(receiver.buffered() < 200_000);
}

#[test]
fn other_messages_may_come_between_the_parts_of_a_large_one() {
    let large = claiming(9, 40, &[7; 40]);
    let (first, rest) = large.split_at(30);
    let small = claiming(3, 2, &[1, 2]);
    let wire = [frame(false, first), frame(true, &small), frame(false, rest)].concat();
    let seen = seen(&wire);
    assert_eq!(seen.failed, None);
    assert_eq!(seen.messages, [(3, vec![1, 2]), (9, vec![7; 40])]);
    let mut receiver = Receiver::new(Framing::Crc, MAX);
    receive(&mut receiver, &frame(false, first), 1000, |_| false);
    assert_eq!(receiver.abandoned().map(|header| header.id), Some(9));
    assert_eq!(receiver.abandoned(), None);
}

#[test]
fn what_is_not_understood_is_passed_over() {
    let mut unknown = claiming(5, 3, &[1, 2, 3]);
    let verb = unknown.iter().rposition(|byte| *byte == Verb::MutationReq.number()).unwrap() - 2;
    assert_eq!(unknown[verb], Verb::MutationReq.number());
    unknown[verb] = 0x7f;
    unknown[verb + 1] = Flags::CALL_BACK_ON_FAILURE.0 as u8;
    let good = claiming(6, 1, &[9]);
    let wire = frame(true, &[unknown.clone(), good.clone()].concat());
    let mut receiver = Receiver::new(Framing::Crc, MAX);
    let Outcome::Refused(refusal) = receiver.next(&wire).outcome else { panic!("not refused") };
    assert_eq!((refusal.id, refusal.size), (5, unknown.len() as u64));
    assert!(refusal.flags.contains(Flags::CALL_BACK_ON_FAILURE));
    assert_eq!(refusal.error, HeaderError::Verb(0x7f));
    let seen = seen(&[wire, frame(false, &unknown), frame(true, &good)].concat());
    assert_eq!((seen.refused, seen.failed), (vec![5, 5], None));
    assert_eq!(seen.messages, [(6, vec![9]), (6, vec![9])]);
}

#[test]
fn lies_end_the_connection() {
    let bounds = seen(&frame(true, &claiming(1, 100, &[0; 99])));
    assert!(matches!(bounds.failed, Some(WireError::Bounds { left: _, size: _ })), "{bounds:?}");
    let excess = seen(&frame(false, &claiming(1, 5, &[0; 6])));
    assert!(matches!(excess.failed, Some(WireError::Excess { .. })), "{excess:?}");
    for contained in [true, false] {
        let large = seen(&frame(contained, &claiming(1, MAX, &[])));
        assert!(matches!(large.failed, Some(WireError::TooLarge { max: MAX, .. })), "{large:?}");
        let larger = seen(&frame(contained, &claiming(1, u64::MAX, &[])));
        assert!(matches!(larger.failed, Some(WireError::TooLarge { size: u64::MAX, .. })));
        let cut = seen(&frame(contained, &claiming(1, 5, &[])[..4]));
        assert!(matches!(cut.failed, Some(WireError::Envelope(_))), "{cut:?}");
    }
    // a claim of much costs nothing until it is kept
    let mut receiver = Receiver::new(Framing::Crc, MAX);
    receive(&mut receiver, &frame(false, &claiming(1, MAX - 50, &[0; 10])), 1000, |_| false);
    assert!(receiver.buffered() < 1000);
    // a block that is not what it says
    let header = SegmentHeader { length: 4, uncompressed: Some(100), self_contained: true };
    let mut wire = header.encode(Form::Lz4)[..Form::Lz4.header_length()].to_vec();
    wire.extend([1, 2, 3, 4]);
    wire.extend(crc32(&[1, 2, 3, 4]).to_le_bytes());
    let mut receiver = Receiver::new(Framing::Lz4, MAX);
    let block = receive(&mut receiver, &wire, 100, |_| false);
    assert_eq!(block.failed, Some(WireError::Block));
    assert_eq!(receiver.next(&wire).outcome, Outcome::Failed(WireError::Block), "it stays ended");
}

#[test]
fn what_is_too_large_is_not_sent() {
    let mut sender = Sender::new(Framing::Crc, 100);
    let mut out = Vec::new();
    sender.push(&header(1, Verb::MutationReq), &[1; 50], &mut out).expect("small enough");
    let refused = sender.push(&header(2, Verb::MutationReq), &[1; 100], &mut out);
    assert!(matches!(refused, Err(SendError::TooLarge { max: 100, .. })), "{refused:?}");
    sender.push(&header(3, Verb::MutationReq), &[2; 50], &mut out).expect("small enough");
    sender.flush(&mut out);
    let seen = seen(&out);
    assert_eq!(seen.messages, [(1, vec![1; 50]), (3, vec![2; 50])]);
    let mut nothing = Vec::new();
    assert!(sender.push(&header(4, Verb::MutationReq), &[1; 100], &mut nothing).is_err());
    sender.flush(&mut nothing);
    assert_eq!(nothing, [0u8; 0]);
}
