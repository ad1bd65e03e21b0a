//! What another node sends: a handshake, frames, and the messages in frames whose checksums are
//! right.

use internode::receiver::most_buffered;
use internode::{Accept, Envelope, Framing, Initiate, Outcome, Receiver, Versions};
use segment::{Form, SegmentHeader, crc32};

/// Small: lengths that lie are found with short inputs.
const MAX_MESSAGE: u64 = 1 << 16;

fn feed(framing: Framing, bytes: &[u8], piece: usize, discard: bool) {
    let mut receiver = Receiver::new(framing, MAX_MESSAGE);
    let mut input: Vec<u8> = Vec::new();
    for part in bytes.chunks(piece.max(1)) {
        input.extend_from_slice(part);
        loop {
            let step = receiver.next(&input);
            let consumed = step.consumed;
            assert!(consumed <= input.len(), "more is consumed than there is");
            let (mut waits, mut large) = (false, false);
            match step.outcome {
                Outcome::Wait(needed) => {
                    assert!(needed > input.len() - consumed, "it waits for what is there");
                    waits = true;
                }
                Outcome::Large { .. } => large = true,
                Outcome::Failed(_) => return,
                Outcome::Message(message) => assert!(message.size <= MAX_MESSAGE),
                Outcome::Refused(_) | Outcome::Lost(_) => {}
            }
            if large && discard {
                receiver.discard();
            }
            assert!(receiver.buffered() as u64 <= most_buffered(MAX_MESSAGE), "too much is held");
            input.drain(..consumed);
            if waits {
                break;
            }
        }
    }
}

/// The first byte says what the rest is: a handshake, bytes of a connection, payloads of frames
/// each behind flags and length, or one message.
pub fn internode(data: &[u8]) {
    let Some(([choice, piece], bytes)) = data.split_first_chunk::<2>() else { return };
    let framing = [Framing::Unprotected, Framing::Lz4, Framing::Crc][usize::from(choice >> 2) % 3];
    match choice % 4 {
        0 => {
            handshake(bytes);
            let mut sealed = bytes.to_vec();
            sealed.extend(crc32(bytes).to_be_bytes());
            handshake(&sealed);
        }
        1 => feed(framing, bytes, usize::from(*piece), choice & 0x80 != 0),
        2 => feed(framing, &framed(framing.form(), bytes), usize::from(*piece), choice & 0x80 != 0),
        _ => {
            let Ok((_, Ok(header))) = Envelope::read(bytes) else { return };
            let mut again = Vec::new();
            header.write(&mut again).expect("what was read");
            again.push(0);
            let (_, read) = Envelope::read(&again).expect("what was written");
            assert_eq!(read, Ok(header), "a header read back");
        }
    }
}

fn handshake(bytes: &[u8]) {
    if let Ok(Some((initiate, used))) = Initiate::read(bytes, Versions::OURS) {
        assert!(used <= bytes.len(), "more is used than there is");
        let mut again = Vec::new();
        initiate.write(&mut again);
        assert_eq!(Initiate::read(&again, Versions::OURS), Ok(Some((initiate, again.len()))));
        let (answer, accepted) = initiate.accept(Versions::OURS);
        assert_eq!(accepted.ok(), answer.agreed(initiate.versions).ok(), "both sides agree");
    }
    let _ = Accept::read(bytes, Versions::OURS);
}

/// Payloads in frames: each is preceded by its flags and length.
fn framed(form: Form, mut bytes: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    while let Some(([flags, length], more)) = bytes.split_first_chunk::<2>() {
        let (payload, after) = more.split_at(usize::from(*length).min(more.len()));
        bytes = after;
        let claimed = usize::from(flags >> 1) << 3;
        let header = SegmentHeader {
            length: payload.len(),
            uncompressed: (form == Form::Lz4 && claimed > 0).then_some(claimed),
            self_contained: flags & 1 != 0,
        };
        wire.extend_from_slice(&header.encode(form)[..form.header_length()]);
        wire.extend_from_slice(payload);
        if form.trailer_length() > 0 {
            wire.extend(crc32(payload).to_le_bytes());
        }
    }
    wire
}
