//! LZ4 blocks.

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};

/// Compresses to LZ4 blocks, with a table that is used again.
#[derive(Default)]
pub struct Blocks {
    table: CompressTable,
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").finish_non_exhaustive()
    }
}

impl Blocks {
    /// Appends `plain` as one block to `out`; none if that failed, and `out` is to be thrown away.
    pub fn append(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let at = out.len();
        out.resize(at + get_maximum_output_size(plain.len()), 0);
        let place = out.get_mut(at..)?;
        let written = compress_into_with_table(plain, place, &mut self.table).ok()?;
        out.truncate(at + written);
        Some(())
    }
}

/// Decompresses one block to fill `plain` exactly.
pub fn decompress(block: &[u8], plain: &mut [u8]) -> Option<()> {
    let written = lz4_flex::block::decompress_into(block, plain).ok()?;
    (written == plain.len()).then_some(())
}
