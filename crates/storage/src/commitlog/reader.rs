//! Reading a segment's records back (`CommitLogReader`, `CommitLogSegmentReader`).

use crc32fast::Hasher;
use sstable::compressor::Codec;

use super::format::{
    Header, HeaderError, MARKER_BYTES, marker_crc, read_header, read_i32, update_i32,
};

/// No mutation is shorter; guards against a checksum that zeros or garbage happen to satisfy.
const MUTATION_BYTES_MIN: usize = 10;
/// Bytes of the length before a compressed section's records.
const LENGTH_BYTES: usize = 4;
/// No section becomes this many times longer: its length has no checksum, and memory is taken on
/// its word.
const RATIO_MAX: usize = 1 << 16;

/// One record of a segment.
#[derive(Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset after the record, as if the segment was not compressed.
    pub end: u32,
    /// The mutation at messaging version 12.
    pub mutation: &'a [u8],
}

/// How a segment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At a marker of zeros, or exactly at the file's end.
    Clean,
    /// At a section or record that never reached the disk whole.
    Torn {
        /// Where, as if the segment was not compressed.
        at: u32,
        /// Is it a compressed section that more follows, or a marker that is none? A writer that
        /// syncs each section before it writes the next one never leaves that behind.
        is_inner: bool,
    },
}

/// Reads a segment's records in order; stops at the first byte that fails a check.
pub struct Reader<'a> {
    bytes: &'a [u8],
    header: Header,
    codec: Option<Codec>,
    /// Where the next section's marker lies in the file.
    marker: usize,
    /// Where that of the present one lies.
    entered: usize,
    /// Where the present section's records begin, as if the segment was not compressed.
    base: usize,
    /// The present section's records in `bytes`, if it is not compressed.
    stored: &'a [u8],
    /// Else here.
    unpacked: Vec<u8>,
    /// Place of the next record in the section.
    at: usize,
    end: Option<End>,
}

impl<'a> Reader<'a> {
    /// Checks the header of a segment's `bytes`.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        let header = read_header(bytes)?;
        let codec = header.compression.as_ref().map(super::format::Compression::codec);
        let marker = header.bytes;
        Ok(Self {
            bytes,
            header,
            codec,
            marker,
            entered: marker,
            base: marker,
            stored: &[],
            unpacked: Vec::new(),
            at: 0,
            end: None,
        })
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Up to where the file could be read, as far as that is known to the byte: a compressed
    /// section is one piece.
    pub fn readable(&self) -> usize {
        match self.end {
            Some(End::Torn { at, .. }) if self.codec.is_none() => at as usize,
            Some(End::Torn { .. }) => self.entered,
            _ => self.marker,
        }
    }

    /// How the segment ended; known once `next_record` gave `None`.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    fn section(&self) -> &[u8] {
        if self.codec.is_some() { &self.unpacked } else { self.stored }
    }

    fn torn(&mut self, at: usize, is_inner: bool) {
        let is_inner = is_inner && self.codec.is_some();
        self.end = Some(End::Torn { at: at as u32, is_inner });
    }

    /// Moves into the section whose marker comes next. False when the segment ended.
    fn enter_section(&mut self) -> bool {
        let marker = self.marker;
        self.entered = marker;
        let place = self.base + self.section().len();
        let (Some(next), Some(crc)) =
            (read_i32(self.bytes, marker), read_i32(self.bytes, marker + 4))
        else {
            let tail = self.bytes.get(marker..).unwrap_or_default();
            match tail.iter().all(|byte| *byte == 0) {
                true => self.end = Some(End::Clean),
                false => self.torn(place, false),
            }
            return false;
        };
        if next == 0 && crc == 0 {
            self.end = Some(End::Clean);
            return false;
        }
        let first = marker + MARKER_BYTES;
        let next = next as u32 as usize;
        if crc as u32 != marker_crc(self.header.id, marker as u32) || next < first {
            self.torn(place, true);
            return false;
        }
        let stored = self.bytes.get(first..next.min(self.bytes.len())).unwrap_or_default();
        if self.codec.is_some() && !(next <= self.bytes.len() && self.unpack(stored)) {
            self.unpacked.clear();
            self.torn(place, next < self.bytes.len());
            return false;
        }
        self.stored = stored;
        self.marker = next;
        self.base = place + MARKER_BYTES;
        self.at = 0;
        true
    }

    fn unpack(&mut self, stored: &[u8]) -> bool {
        let Some(codec) = &mut self.codec else { return false };
        let Some((length, packed)) = stored.split_first_chunk::<LENGTH_BYTES>() else {
            return false;
        };
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { return false };
        length <= packed.len().saturating_mul(RATIO_MAX)
            && codec.decompress(packed, length, &mut self.unpacked).is_ok()
    }

    /// The next record, or `None` at the segment's end (see [`Reader::end`]).
    pub fn next_record(&mut self) -> Option<Record<'_>> {
        let (start, end) = self.find_record()?;
        let place = (self.base + end + 4) as u32;
        self.at = end + 4;
        Some(Record { end: place, mutation: self.section().get(start..end)? })
    }

    /// Where the next record's mutation lies in the section.
    fn find_record(&mut self) -> Option<(usize, usize)> {
        while self.end.is_none() {
            let at = self.at;
            let is_cut = self.codec.is_none() && self.marker > self.bytes.len();
            match read_i32(self.section(), at) {
                None if is_cut => self.torn(self.base + at, false),
                None => {
                    self.enter_section();
                }
                // Cassandra ends a section early with a zero size when its last allocation went
                // unused; where no section follows, the bytes were lost.
                Some(0) => {
                    let goes_on = !is_cut && self.enter_section();
                    if !goes_on && self.codec.is_none() {
                        self.torn(self.base + at, false);
                    }
                }
                Some(size) => match checked_record(self.section(), at, size) {
                    Some(found) => return Some(found),
                    None => self.torn(self.base + at, self.marker < self.bytes.len()),
                },
            }
        }
        None
    }
}

fn checked_record(section: &[u8], at: usize, size: i32) -> Option<(usize, usize)> {
    let size_bytes = usize::try_from(size).ok().filter(|size| *size >= MUTATION_BYTES_MIN)?;
    let mut crc = Hasher::new();
    update_i32(&mut crc, size);
    if read_i32(section, at + 4)? as u32 != crc.clone().finalize() {
        return None;
    }
    let start = at + 8;
    let end = start.checked_add(size_bytes)?;
    crc.update(section.get(start..end)?);
    (read_i32(section, end)? as u32 == crc.finalize()).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::format::{
        Compression, append_record, begin_section, compress_section, end_section, write_header,
    };
    use super::*;

    fn compressions() -> Vec<Option<Compression>> {
        let of = |class| Some(Compression::new(class, BTreeMap::new()).expect("known"));
        let named =
            ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"].map(of);
        [None].into_iter().chain(named).collect()
    }

    /// A segment, and its length up to each section's end.
    fn segment(
        id: i64,
        compression: Option<&Compression>,
        sections: &[Vec<Vec<u8>>],
    ) -> (Vec<u8>, Vec<usize>) {
        let mut file = Vec::new();
        let mut ends = Vec::new();
        write_header(id, compression, &[], None, &mut file);
        for records in sections {
            let mut section = Vec::new();
            begin_section(&mut section);
            for record in records {
                append_record(&mut section, |out| out.extend_from_slice(record));
            }
            if let Some(compression) = compression {
                let raw = std::mem::take(&mut section);
                compress_section(&raw, &mut compression.codec(), &mut section).expect("packed");
            }
            end_section(&mut section, id, file.len() as u32);
            file.extend(section);
            ends.push(file.len());
        }
        (file, ends)
    }

    fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, End) {
        let mut reader = Reader::new(bytes).expect("header");
        let mut records = Vec::new();
        while let Some(record) = reader.next_record() {
            records.push(record.mutation.to_vec());
        }
        (records, reader.end().expect("ended"))
    }

    #[test]
    fn another_version_is_refused() {
        let (mut file, _) = segment(5, None, &[]);
        assert_eq!(Reader::new(&file[..9]).err(), Some(HeaderError::Truncated));
        file[3] = 8;
        assert_eq!(Reader::new(&file).err(), Some(HeaderError::Checksum));
    }

    #[test]
    fn places_are_those_of_an_uncompressed_segment() {
        let sections = vec![vec![vec![7; 40], vec![8; 900]], vec![vec![9; 50]]];
        for compression in compressions() {
            let (file, _) = segment(5, compression.as_ref(), &sections);
            let mut reader = Reader::new(&file).expect("header");
            let mut place = reader.header().bytes;
            for records in &sections {
                place += MARKER_BYTES;
                for record in records {
                    place += record.len() + 12;
                    assert_eq!(reader.next_record().expect("a record").end as usize, place);
                }
            }
            assert_eq!(reader.next_record(), None);
        }
    }

    #[test]
    fn damage_before_a_compressed_segments_end_is_told_from_a_torn_tail() {
        let sections = vec![vec![vec![7; 400]], vec![vec![8; 400]]];
        for compression in compressions().into_iter().flatten() {
            let (whole, ends) = segment(5, Some(&compression), &sections);
            let first = ends[0];
            for at in [first - 1, first + 5] {
                let mut file = whole.clone();
                file[at] ^= 0x55;
                let (records, end) = read(&file);
                assert_eq!(records.len(), usize::from(at > first), "{compression:?} {at}");
                assert!(matches!(end, End::Torn { is_inner: true, .. }), "{compression:?} {at}");
            }
            for cut in [first + 9, whole.len() - 1] {
                let (records, end) = read(&whole[..cut]);
                assert_eq!(records.len(), 1);
                assert!(matches!(end, End::Torn { is_inner: false, .. }), "{compression:?} {cut}");
            }
            assert_eq!(read(&whole[..first]).1, End::Clean);
        }
    }

    fn sections(longest: usize) -> impl Strategy<Value = Vec<Vec<Vec<u8>>>> {
        let record = prop::collection::vec(any::<u8>(), 10..longest);
        prop::collection::vec(prop::collection::vec(record, 1..4), 0..5)
    }

    proptest! {
        #[test]
        fn every_record_comes_back(sections in sections(200), zeros in 0usize..64, kind in 0usize..5) {
            let compression = &compressions()[kind];
            let (mut file, _) = segment(77, compression.as_ref(), &sections);
            file.resize(file.len() + zeros, 0);
            let (records, end) = read(&file);
            prop_assert_eq!(records, sections.concat());
            prop_assert_eq!(end, End::Clean);
        }

        /// Whatever is cut or flipped, what comes back is a prefix of what was written.
        #[test]
        fn damage_yields_a_prefix(
            sections in sections(60),
            at in any::<prop::sample::Index>(),
            flip in 1u8..,
            cut in any::<bool>(),
            kind in 0usize..5,
        ) {
            let compression = &compressions()[kind];
            let (mut file, _) = segment(77, compression.as_ref(), &sections);
            let header = Reader::new(&file).expect("header").header().bytes;
            prop_assume!(file.len() > header);
            let at = header + at.index(file.len() - header);
            if cut { file.truncate(at); } else { file[at] ^= flip; }
            let (records, _) = read(&file);
            let all = sections.concat();
            prop_assert!(records.len() <= all.len());
            prop_assert_eq!(&all[..records.len()], &records[..]);
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..300), kind in 0usize..5) {
            let mut file = Vec::new();
            write_header(1, compressions()[kind].as_ref(), &[], None, &mut file);
            file.extend_from_slice(&bytes);
            let _ = read(&file);
            let _ = Reader::new(&bytes);
        }
    }
}
