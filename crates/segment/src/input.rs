//! The segment at the front of what a connection received.

use crate::header::{Form, Mismatch, SegmentHeader, crc32};

/// A whole segment whose checksums are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// What its header says.
    pub header: SegmentHeader,
    /// The payload as it travelled.
    pub payload: &'a [u8],
    /// Bytes of the whole segment.
    pub total: usize,
}

/// What lies at the front of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// The start of a segment; it takes at least this many bytes.
    Part(usize),
    /// A segment.
    Whole(Segment<'a>),
    /// A header whose checksum is wrong: nobody knows where the next segment starts.
    BadHeader(Mismatch),
    /// A segment whose payload's checksum is wrong.
    BadPayload(Mismatch, Segment<'a>),
}

impl<'a> Segment<'a> {
    /// Looks at the front of `input`.
    #[inline]
    pub fn find(form: Form, input: &'a [u8]) -> Found<'a> {
        let header = match SegmentHeader::parse(form, input) {
            None => return Found::Part(form.header_length()),
            Some(Err(mismatch)) => return Found::BadHeader(mismatch),
            Some(Ok(header)) => header,
        };
        let trailer_at = form.header_length() + header.length;
        let total = trailer_at + form.trailer_length();
        let (Some(payload), Some(trailer)) =
            (input.get(form.header_length()..trailer_at), input.get(trailer_at..total))
        else {
            return Found::Part(total);
        };
        let segment = Self { header, payload, total };
        if let Some(trailer) = trailer.first_chunk::<4>() {
            let (read, computed) = (u32::from_le_bytes(*trailer), crc32(payload));
            if read != computed {
                return Found::BadPayload(Mismatch { read, computed }, segment);
            }
        }
        Found::Whole(segment)
    }

    /// Bytes of the payload as its sender had it.
    pub fn plain_length(&self) -> usize {
        self.header.uncompressed.unwrap_or(self.header.length)
    }
}
