//! Files of hints: their names, headers and records. Checksums are made to fit: what is looked for
//! lies behind them.

use hints::record::{self, Found};
use hints::{Descriptor, Hint, Named};
use types::Uuid;

const HOST: Uuid = Uuid(0x5c3b3720_e5dd_11f1_9a15_1b96078e4459);

/// The first byte says what the rest is: a header, its parameters, records as they are, or hints of
/// records that fit.
pub fn hints(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    match choice % 4 {
        0 => drop(Descriptor::read(bytes)),
        1 => header(bytes),
        2 => walk(bytes),
        _ => {
            let mut records = Vec::new();
            for body in bytes.split(|byte| *byte == b'|') {
                if let Some(hint) = Hint::read(body) {
                    hint.append(&mut records);
                }
            }
            walk(&records);
        }
    }
    if let Ok(name) = str::from_utf8(bytes)
        && let Some(named) = Named::parse(name)
    {
        assert_eq!(Named::parse(&named.file_name()), Some(named), "a name read back");
    }
}

/// A header with these parameters, and checksums that fit.
fn header(parameters: &[u8]) {
    let plain = Descriptor { host: HOST, timestamp: 1, compression: None };
    let mut bytes = Vec::new();
    plain.write(&mut bytes);
    // version, time, host: before the length of the parameters
    let fixed = bytes.len() - 2 - 4 - 4 - 4;
    bytes.truncate(fixed);
    let length = (parameters.len() as i32).to_be_bytes();
    let mut crc = crc32fast::Hasher::new();
    let halves = [1, (HOST.0 >> 64) as u64, HOST.0 as u64];
    crc.update(&bytes[..4]);
    for half in halves {
        crc.update(&(half as u32).to_be_bytes());
        crc.update(&((half >> 32) as u32).to_be_bytes());
    }
    crc.update(&length);
    bytes.extend(length);
    bytes.extend(crc.clone().finalize().to_be_bytes());
    bytes.extend(parameters);
    crc.update(parameters);
    bytes.extend(crc.finalize().to_be_bytes());
    if let Ok((read, used)) = Descriptor::read(&bytes) {
        assert_eq!(used, bytes.len(), "all of it is the header");
        let mut again = Vec::new();
        read.write(&mut again);
        assert_eq!(Descriptor::read(&again), Ok((read, again.len())), "a header read back");
    }
}

/// Records, one behind the other; what is none is passed over.
fn walk(bytes: &[u8]) {
    let mut place = 0;
    while place < bytes.len() {
        let next = match record::at(bytes, place) {
            Found::Whole(body, next) => {
                if let Some(hint) = Hint::read(body) {
                    let mut again = Vec::new();
                    hint.append(&mut again);
                    assert!(matches!(record::at(&again, 0), Found::Whole(..)), "a record");
                }
                next
            }
            Found::Damaged(next) => next,
            Found::Longer(_) | Found::Nothing => match record::find(bytes, place + 1) {
                Some(next) => next,
                None => return,
            },
        };
        assert!(next > place, "it goes on");
        place = next;
    }
}
