//! The blocks of a compressed file (`CompressedHintsWriter`): whole records, compressed together.
//!
//! block = i32 bytes of records | i32 n | n bytes, compressed
//!
//! Source: the code of 4.1.10 and 5.0.9; a file that 5.0.9's classes wrote is in `testdata`.

use sstable::compressor::Codec;
use types::WriteBytes;

/// Bytes before what is compressed.
pub const HEAD_BYTES: usize = 8;
/// Bytes of records in a block at most, as it is read: more than the largest mutation that a node
/// takes.
pub const RECORDS_BYTES_MAX: usize = 64 << 20;

/// Appends records, compressed.
///
/// # Errors
/// If they cannot be compressed.
pub fn append(records: &[u8], codec: &mut Codec, out: &mut Vec<u8>) -> Result<(), sstable::Error> {
    let start = out.len();
    out.put_u32(records.len() as u32);
    out.put_u32(0);
    let from = out.len();
    codec.compress(records, out)?;
    let n = (out.len() - from) as u32;
    if let Some(at) = out.get_mut(start + 4..start + HEAD_BYTES) {
        at.copy_from_slice(&n.to_be_bytes());
    }
    Ok(())
}

/// What a block's head says: bytes of its records, and compressed bytes. `None` where that is
/// nothing that is written.
pub fn head(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut reader = types::Reader::new(bytes);
    let (records, n) = (reader.i32().ok()?, reader.i32().ok()?);
    let (records, n) = (usize::try_from(records).ok()?, usize::try_from(n).ok()?);
    // Cassandra writes an empty block before a hint that is larger than its buffer
    (records <= RECORDS_BYTES_MAX).then_some((records, n))
}
