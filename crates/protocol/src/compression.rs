//! Compression of message bodies before version 5: LZ4 (a big-endian `i32` with the uncompressed
//! length, then one block) and Snappy (`org.apache.cassandra.transport.Compressor`).

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

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

/// Decompresses `body` into `plain` (whose content is replaced); never allocates more than `limit`
/// bytes nor more than the algorithm's largest ratio allows.
pub(crate) fn decompress_body(
    compression: Compression,
    body: &[u8],
    limit: u32,
    plain: &mut Vec<u8>,
) -> Result<(), ProtocolError> {
    match compression {
        Compression::Lz4 => decompress_lz4_body(body, limit, plain),
        Compression::Snappy => decompress_snappy(body, limit, plain),
    }
}

fn decompress_lz4_body(body: &[u8], limit: u32, plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
    const MISMATCH: ProtocolError = ProtocolError::BadCompression("Compressed lengths mismatch");
    let (prefix, block) = body.split_first_chunk::<LZ4_PREFIX>().ok_or(MISMATCH)?;
    let length = u32::from_be_bytes(*prefix);
    size_for(plain, u64::from(length), block.len(), LZ4_MAX_RATIO, limit, MISMATCH)?;
    decompress_block(block, plain).ok_or(MISMATCH)
}

/// Decompresses one LZ4 block to fill `plain` exactly.
pub(crate) fn decompress_block(block: &[u8], plain: &mut [u8]) -> Option<()> {
    let written = lz4_flex::block::decompress_into(block, plain).ok()?;
    (written == plain.len()).then_some(())
}

fn decompress_snappy(body: &[u8], limit: u32, plain: &mut Vec<u8>) -> Result<(), ProtocolError> {
    const INVALID: ProtocolError =
        ProtocolError::BadCompression("Provided frame does not appear to be Snappy compressed");
    let length = snap::raw::decompress_len(body).map_err(|_| INVALID)?;
    size_for(plain, length as u64, body.len(), SNAPPY_MAX_RATIO, limit, INVALID)?;
    let written = snap::raw::Decoder::new().decompress(body, plain).map_err(|_| INVALID)?;
    if written == plain.len() { Ok(()) } else { Err(INVALID) }
}

/// Sizes `plain` for a claimed length, unless the claim is above the limit or impossible.
fn size_for(
    plain: &mut Vec<u8>,
    claimed: u64,
    compressed: usize,
    ratio: u64,
    limit: u32,
    impossible: ProtocolError,
) -> Result<(), ProtocolError> {
    if claimed > u64::from(limit) {
        return Err(ProtocolError::DecompressedTooBig { length: claimed, limit });
    }
    if claimed > (compressed as u64).saturating_mul(ratio) {
        return Err(impossible);
    }
    plain.clear();
    plain.resize(claimed as usize, 0);
    Ok(())
}

/// State that compressing reuses from one message to the next.
pub(crate) struct Compressor {
    lz4: CompressTable,
    snappy: snap::raw::Encoder,
    out: Vec<u8>,
}

impl std::fmt::Debug for Compressor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

/// Capacity that scratch buffers keep between messages, in bytes.
pub(crate) const KEPT_SCRATCH: usize = 256 << 10;

/// Empties a scratch buffer and gives back what a large message made it grow to.
pub(crate) fn reset_scratch(scratch: &mut Vec<u8>) {
    scratch.clear();
    if scratch.capacity() > KEPT_SCRATCH {
        *scratch = Vec::new();
    }
}

impl Compressor {
    pub fn new() -> Self {
        Self { lz4: CompressTable::default(), snappy: snap::raw::Encoder::new(), out: Vec::new() }
    }

    /// Compresses a message's body; none if that would not make it smaller.
    pub fn body(&mut self, compression: Compression, plain: &[u8]) -> Option<&[u8]> {
        reset_scratch(&mut self.out);
        let written = match compression {
            Compression::Lz4 => {
                let length = u32::try_from(plain.len()).ok()?;
                self.out.extend_from_slice(&length.to_be_bytes());
                self.append_block(plain)?
            }
            Compression::Snappy => {
                self.out.resize(snap::raw::max_compress_len(plain.len()), 0);
                self.snappy.compress(plain, &mut self.out).ok()?
            }
        };
        self.smaller(written, plain)
    }

    /// Compresses a segment's payload to one LZ4 block; none if that would not make it smaller.
    pub fn block(&mut self, plain: &[u8]) -> Option<&[u8]> {
        reset_scratch(&mut self.out);
        let written = self.append_block(plain)?;
        self.smaller(written, plain)
    }

    /// Appends a block to what is in `out` and returns the length of both.
    fn append_block(&mut self, plain: &[u8]) -> Option<usize> {
        let at = self.out.len();
        self.out.resize(at + get_maximum_output_size(plain.len()), 0);
        let place = self.out.get_mut(at..)?;
        let written = compress_into_with_table(plain, place, &mut self.lz4).ok()?;
        Some(at + written)
    }

    fn smaller(&self, written: usize, plain: &[u8]) -> Option<&[u8]> {
        self.out.get(..written).filter(|compressed| compressed.len() < plain.len())
    }
}
