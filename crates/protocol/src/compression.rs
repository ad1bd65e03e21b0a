//! Compression of message bodies before version 5: LZ4 (a big-endian `i32` with the uncompressed
//! length, then one block) and Snappy (`org.apache.cassandra.transport.Compressor`).

use segment::{Blocks, decompress, reset_scratch};

use crate::error::ProtocolError;

/// An algorithm that STARTUP may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// LZ4 blocks.
    Lz4,
    /// Snappy blocks; versions 3 and 4 only.
    Snappy,
}

impl Compression {
    /// Their names, as SUPPORTED lists them.
    pub const NAMES: [&'static str; 2] = ["snappy", "lz4"];

    /// Name in STARTUP and SUPPORTED.
    pub fn name(self) -> &'static str {
        match self {
            Self::Snappy => Self::NAMES[0],
            Self::Lz4 => Self::NAMES[1],
        }
    }
}

/// An LZ4 block cannot expand to more than this many times its length, so a larger claim is a lie
/// and nothing is allocated for it.
const LZ4_MAX_RATIO: u64 = 255;
/// The same of Snappy: a copy of 64 bytes takes at least 2.
const SNAPPY_MAX_RATIO: u64 = 32;
/// Bytes of the length in front of an LZ4 body.
const LZ4_PREFIX: usize = 4;

/// Bytes at the front of a body in which it claims its length after decompression: four of LZ4, up
/// to five of Snappy.
pub(crate) const CLAIM_LENGTH: usize = 5;

const LZ4_MISMATCH: ProtocolError = ProtocolError::BadCompression("Compressed lengths mismatch");
const SNAPPY_INVALID: ProtocolError =
    ProtocolError::BadCompression("Provided frame does not appear to be Snappy compressed");

/// What a body of `length` bytes that begins with `start` (all of it, or at least [`CLAIM_LENGTH`]
/// bytes) claims to have after decompression, unless that is above the limit or impossible.
pub(crate) fn claimed_length(
    compression: Compression,
    start: &[u8],
    length: usize,
    limit: u32,
) -> Result<usize, ProtocolError> {
    let (claimed, compressed, ratio, impossible) = match compression {
        Compression::Lz4 => {
            let prefix = start.first_chunk::<LZ4_PREFIX>().ok_or(LZ4_MISMATCH)?;
            let claimed = u64::from(u32::from_be_bytes(*prefix));
            (claimed, length.saturating_sub(LZ4_PREFIX), LZ4_MAX_RATIO, LZ4_MISMATCH)
        }
        Compression::Snappy => {
            let claimed = snap::raw::decompress_len(start).map_err(|_| SNAPPY_INVALID)?;
            (claimed as u64, length, SNAPPY_MAX_RATIO, SNAPPY_INVALID)
        }
    };
    if claimed > u64::from(limit) {
        return Err(ProtocolError::DecompressedTooBig { length: claimed, limit });
    }
    if claimed > (compressed as u64).saturating_mul(ratio) {
        return Err(impossible);
    }
    Ok(claimed as usize)
}

/// Decompresses `body` into `plain` (whose content is replaced); never allocates more than `limit`
/// bytes nor more than the algorithm's largest ratio allows.
pub(crate) fn decompress_body(
    compression: Compression,
    body: &[u8],
    limit: u32,
    plain: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    let length = claimed_length(compression, body, body.len(), limit)?;
    plain.clear();
    plain.resize(length, 0);
    match compression {
        Compression::Lz4 => {
            let block = body.get(LZ4_PREFIX..).ok_or(LZ4_MISMATCH)?;
            decompress(block, plain).ok_or(LZ4_MISMATCH)
        }
        Compression::Snappy => {
            let written = snap::raw::Decoder::new().decompress(body, plain);
            match written.map_err(|_| SNAPPY_INVALID)? == plain.len() {
                true => Ok(()),
                false => Err(SNAPPY_INVALID),
            }
        }
    }
}

/// State that compressing reuses from one message to the next.
pub(crate) struct Compressor {
    lz4: Blocks,
    snappy: snap::raw::Encoder,
    out: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl Compressor {
    pub fn new() -> Self {
        Self { lz4: Blocks::default(), snappy: snap::raw::Encoder::new(), out: Vec::new() }
    }

    /// Compresses a message's body; none if that would not make it smaller.
    pub fn body(&mut self, compression: Compression, plain: &[u8]) -> Option<&[u8]> {
        reset_scratch(&mut self.out);
        let written = match compression {
            Compression::Lz4 => {
                let length = u32::try_from(plain.len()).ok()?;
                self.out.extend_from_slice(&length.to_be_bytes());
                self.lz4.append(plain, &mut self.out)?;
                self.out.len()
            }
            Compression::Snappy => {
                self.out.resize(snap::raw::max_compress_len(plain.len()), 0);
                self.snappy.compress(plain, &mut self.out).ok()?
            }
        };
        self.smaller(written, plain)
    }

    fn smaller(&self, written: usize, plain: &[u8]) -> Option<&[u8]> {
        self.out.get(..written).filter(|compressed| compressed.len() < plain.len())
    }
}
