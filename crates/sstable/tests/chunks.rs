//! The chunks of a data file, one after the other.

use sstable::table::Table;

/// All bytes of a table's data, uncompressed.
pub fn uncompressed(table: &Table, data: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while (all.len() as u64) < table.uncompressed_length() {
        let range = table.chunk_at(all.len() as u64).expect("a chunk");
        let stored = &data[range.offset as usize..range.offset as usize + range.length];
        all.extend(table.decode_chunk(range, stored).expect("verifies"));
    }
    all
}
