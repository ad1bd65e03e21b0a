//! RESULT messages with rows.

use crate::{
    class_name::ClassName,
    column::Column,
    header::{self, HEADER_LENGTH},
    metadata::{self, MetadataForm, ResultMetadata, flag},
    opcode::Opcode,
    put,
    response::{Reply, kind},
};

/// A page of rows that is being written. It borrows nothing, so that pages of several requests may
/// be written in turn to several buffers; all its calls get the buffer that it began in, whose end
/// must be its own.
///
/// ```
/// # use protocol::{Reply, Rows, Version, ResultMetadata, MetadataForm, class_name::class_name};
/// # let metadata = ResultMetadata::new(&[], class_name);
/// let mut out = Vec::new();
/// let reply = Reply::new(Version::V5, 1);
/// let mut rows = Rows::begin(&mut out, &reply, &metadata, MetadataForm::Full);
/// Rows::value(&mut out, b"cell");
/// Rows::null(&mut out);
/// rows.end_row();
/// rows.finish(&mut out, None);
/// ```
#[derive(Debug)]
#[must_use = "a page that is not finished has no length"]
pub struct Rows {
    start: usize,
    flags_at: usize,
    paging_at: usize,
    count_at: usize,
    rows: i32,
}

impl Rows {
    /// Begins a page whose metadata is kept.
    pub fn begin(
        out: &mut Vec<u8>,
        reply: &Reply<'_>,
        metadata: &ResultMetadata,
        form: MetadataForm,
    ) -> Self {
        Self::open(out, reply, |out| metadata.write(out, reply.version, form))
    }

    /// Begins a page of a statement that was not prepared, with full metadata.
    pub fn begin_once(
        out: &mut Vec<u8>,
        reply: &Reply<'_>,
        columns: &[Column],
        names: ClassName,
    ) -> Self {
        Self::open(out, reply, |out| metadata::write_once(out, columns, reply.version, names))
    }

    fn open(
        out: &mut Vec<u8>,
        reply: &Reply<'_>,
        metadata: impl FnOnce(&mut Vec<u8>) -> usize,
    ) -> Self {
        let start = reply.begin(out, Opcode::Result);
        put::i32(out, kind::ROWS);
        let flags_at = out.len();
        let paging_at = metadata(out);
        let count_at = out.len();
        put::i32(out, 0);
        Self { start, flags_at, paging_at, count_at, rows: 0 }
    }

    /// Appends a cell.
    pub fn value(out: &mut Vec<u8>, value: &[u8]) {
        put::bytes(out, value);
    }

    /// Appends a null cell.
    pub fn null(out: &mut Vec<u8>) {
        put::i32(out, put::NULL);
    }

    /// Appends a cell that `write` appends the bytes of.
    pub fn value_with(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let at = out.len();
        put::i32(out, 0);
        write(out);
        let length = out.len().saturating_sub(at + size_of::<i32>());
        put::patch_i32(out, at, i32::try_from(length).unwrap_or(i32::MAX));
    }

    /// A row is complete: as many cells were appended as there are columns.
    pub fn end_row(&mut self) {
        self.rows = self.rows.saturating_add(1);
    }

    /// Rows so far.
    pub fn row_count(&self) -> usize {
        self.rows as usize
    }

    /// Bytes of the body so far; a page should end before this grows large.
    pub fn body_length(&self, out: &[u8]) -> usize {
        out.len().saturating_sub(self.start + HEADER_LENGTH)
    }

    /// Drops the page, for another answer to take its place.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.start);
    }

    /// Ends the page. Where more pages follow, the paging state is put in front of the rows now
    /// that it is known; that moves them once.
    pub fn finish(self, out: &mut Vec<u8>, paging_state: Option<&[u8]>) {
        put::patch_i32(out, self.count_at, self.rows);
        if let Some(state) = paging_state {
            let mut encoded = Vec::with_capacity(size_of::<i32>() + state.len());
            put::bytes(&mut encoded, state);
            let at = self.paging_at.min(out.len());
            out.splice(at..at, encoded);
            let flags = out.get(self.flags_at..).and_then(|tail| tail.first_chunk());
            let flags = flags.map_or(0, |flags| i32::from_be_bytes(*flags));
            put::patch_i32(out, self.flags_at, flags | flag::HAS_MORE_PAGES);
        }
        header::end(out, self.start);
    }
}
