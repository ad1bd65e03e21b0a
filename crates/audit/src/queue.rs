//! The files of a queue (Chronicle Queue 5.23, format 1), of which this process is the only writer.
//!
//! ```text
//! +----------------+--------------------+------------------+---------------------
//! | header         | index of the index | page of the index| records, pages, end
//! +----------------+--------------------+------------------+---------------------
//! each: length and flags (u32, little endian, at a multiple of 4) | that many bytes
//! ```
//!
//! docs/formats/full-query-log.md has all of it. Numbers in headers and pages stand at multiples of
//! eight and change in place.

use crate::roll_cycle::RollCycle;
use crate::wire::Wire;

/// Chronicle reserves so much for a file; holes take no room on the disk.
pub const FILE_BYTES: u64 = 80 << 20;
/// By how much a file grows then.
const GROWTH_BYTES: u64 = 64 << 20;
/// Of the word before a part: what is no record.
const META: u32 = 1 << 30;
/// The word at the end of a file after which another one was begun.
const END: u32 = 3 << 30;
/// The bits of a word that are a length.
const LENGTH: u32 = META - 1;
/// Where a header keeps the place of the last record.
const WRITE_POSITION: u64 = 0x40;
/// Where it keeps the number of records that the index covers.
const LAST_INDEX: u64 = 0xb0;
/// Where the index of the index begins.
const INDEX_OF_INDEX: u64 = 0xc8;
/// Where its entries begin.
const INDEX_OF_INDEX_ENTRIES: u64 = 0xf0;
/// Bytes of `metadata.cq4t`.
const TABLE_BYTES: usize = 128 << 10;
/// What a lock has that nobody holds.
const UNLOCKED: i64 = i64::MIN;

/// Something to write, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where in the file.
    pub at: u64,
    /// What.
    pub bytes: Vec<u8>,
}

/// Why a file is not gone on with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damaged {
    /// It is not of this kind, or of another cycle.
    Foreign,
    /// A length in it points beyond its end, at this offset.
    Torn(u64),
}

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Foreign => f.write_str("it was not written with this roll_cycle"),
            Self::Torn(at) => write!(f, "it is damaged at offset {at}"),
        }
    }
}

/// Reads a part of a file, at most as much as there is room; less at its end.
pub type Read<'a, E> = &'a mut dyn FnMut(u64, &mut [u8]) -> Result<usize, E>;

/// Gathers records for a file, and says what to write.
#[derive(Clone, Debug)]
pub struct Appender {
    cycle: RollCycle,
    /// Where the next part begins.
    end: u64,
    /// The last record.
    last: u64,
    records: u64,
    /// The page of the index that is filled, and how many pages there are.
    page: u64,
    pages: u64,
    /// What is gathered: parts that begin at `from`.
    from: u64,
    parts: Vec<u8>,
    /// Entries of the index, and other numbers that change.
    numbers: Vec<(u64, i64)>,
}

fn number(write: &mut Vec<Write>, at: u64, value: i64) {
    write.push(Write { at, bytes: value.to_le_bytes().to_vec() });
}

/// A part that is no record: its word, and what `write` appends.
fn meta(out: &mut Vec<u8>, at: u64, write: impl FnOnce(&mut Wire<'_>)) {
    let begin = out.len();
    out.extend([0; 4]);
    let base = at - begin as u64;
    write(&mut Wire::new(out, base));
    let length = (out.len() - begin - 4) as u32;
    set_word(out, begin, META | length);
}

fn set_word(out: &mut [u8], at: usize, word: u32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}

fn align(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn page(out: &mut Vec<u8>, at: u64, capacity: u32) {
    meta(out, at, |wire| {
        wire.event("index");
        wire.array(capacity as usize, &[]);
    });
}

/// Where the entries of a page begin.
fn entries_of(page: u64) -> u64 {
    // the word, the event's name and the code, then the capacity and the number used
    (page + 4 + 7 + 1).next_multiple_of(8) + 16
}

impl Appender {
    /// A new file: what it begins with.
    pub fn create(cycle: RollCycle) -> (Self, Vec<u8>) {
        let count = cycle.index_count as usize;
        let mut out = Vec::new();
        meta(&mut out, 0, |wire| {
            wire.event("header").type_prefix("SCQStore").nested(|wire| {
                wire.field("writePosition").array(2, &[0, 0]);
                wire.field("indexing").type_prefix("SCQSIndexing").nested(|wire| {
                    wire.field("indexCount").int(cycle.index_count as i32);
                    wire.field("indexSpacing").int(cycle.index_spacing as i32);
                    wire.field("index2Index").aligned_long(INDEX_OF_INDEX as i64);
                    wire.field("lastIndex").aligned_long(0);
                });
                wire.field("dataFormat").int(1);
            });
        });
        align(&mut out);
        debug_assert_eq!(out.len() as u64, INDEX_OF_INDEX);
        // the page comes right behind it
        let first_page = INDEX_OF_INDEX_ENTRIES + 8 * u64::from(cycle.index_count);
        meta(&mut out, INDEX_OF_INDEX, |wire| {
            wire.event("index2index").array(count, &[first_page as i64]);
        });
        align(&mut out);
        debug_assert_eq!(out.len() as u64, first_page);
        page(&mut out, first_page, cycle.index_count);
        align(&mut out);
        let end = out.len() as u64;
        let this = Self {
            cycle,
            end,
            last: 0,
            records: 0,
            page: first_page,
            pages: 1,
            from: end,
            parts: Vec::new(),
            numbers: Vec::new(),
        };
        (this, out)
    }

    /// A file that is there: goes on behind its last record. A length that points beyond the end
    /// of the file is not followed.
    ///
    /// # Errors
    /// If it cannot be read, or is not whole.
    pub fn resume<E>(
        cycle: RollCycle,
        bytes: u64,
        read: Read<'_, E>,
    ) -> Result<Result<Self, Damaged>, E> {
        let (mut this, fresh) = Self::create(cycle);
        let mut found = vec![0; fresh.len()];
        let got = read(0, &mut found)?;
        found.truncate(got);
        if !is_same_header(&fresh, &found, this.page) {
            return Ok(Err(Damaged::Foreign));
        }
        loop {
            let mut word = [0; 4];
            if read(this.end, &mut word)? < 4 {
                break;
            }
            let word = u32::from_le_bytes(word);
            // one that was ended may go on all the same
            if word == 0 || word == END {
                break;
            }
            let (length, is_meta) = (u64::from(word & LENGTH), word & END == META);
            if length == 0 || word & END > META || this.end + 4 + length > bytes {
                return Ok(Err(Damaged::Torn(this.end)));
            }
            match is_meta {
                true => (this.page, this.pages) = (this.end, this.pages + 1),
                false => (this.last, this.records) = (this.end, this.records + 1),
            }
            this.end = (this.end + 4 + length).next_multiple_of(4);
        }
        this.from = this.end;
        Ok(Ok(this))
    }

    /// Bytes of the file with what was gathered.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Bytes that the file should have, holes included.
    pub fn file_bytes(&self) -> u64 {
        let beyond = (self.end + GROWTH_BYTES / 4).saturating_sub(FILE_BYTES);
        FILE_BYTES + beyond.next_multiple_of(GROWTH_BYTES)
    }

    /// Records of the file.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Gathers a record; one that a length cannot say is not taken.
    pub fn append(&mut self, record: &[u8]) -> bool {
        let Ok(length) = u32::try_from(record.len()) else { return false };
        if length == 0 || length > LENGTH {
            return false;
        }
        let spacing = u64::from(self.cycle.index_spacing);
        if self.records.is_multiple_of(spacing) {
            self.add_to_index(self.records / spacing);
        }
        self.parts.extend(length.to_le_bytes());
        self.parts.extend_from_slice(record);
        align(&mut self.parts);
        self.last = self.end;
        self.records += 1;
        self.end = self.from + self.parts.len() as u64;
        true
    }

    /// The next record is this one of the index.
    fn add_to_index(&mut self, entry: u64) {
        let count = u64::from(self.cycle.index_count);
        let (page_number, of_page) = (entry / count, entry % count);
        if page_number >= count {
            // what is not in the index is found from what is
            return;
        }
        if page_number >= self.pages {
            self.page = self.end;
            page(&mut self.parts, self.end, self.cycle.index_count);
            align(&mut self.parts);
            self.end = self.from + self.parts.len() as u64;
            self.pages = page_number + 1;
            self.numbers.push((INDEX_OF_INDEX_ENTRIES - 8, self.pages as i64));
            self.numbers.push((INDEX_OF_INDEX_ENTRIES + 8 * page_number, self.page as i64));
        }
        let entries = entries_of(self.page);
        self.numbers.push((entries + 8 * of_page, self.end as i64));
        self.numbers.push((entries - 8, of_page as i64 + 1));
        let spacing = u64::from(self.cycle.index_spacing);
        self.numbers.push((LAST_INDEX, ((entry + 1) * spacing) as i64));
    }

    /// What to write of what was gathered. A reader that follows the file sees all of it at once:
    /// its first word comes last.
    pub fn take(&mut self) -> Vec<Write> {
        let mut writes = Vec::new();
        if self.parts.is_empty() {
            return writes;
        }
        let parts = std::mem::take(&mut self.parts);
        let (first, rest) = parts.split_at(4.min(parts.len()));
        writes.push(Write { at: self.from + 4, bytes: rest.to_vec() });
        writes.push(Write { at: self.from, bytes: first.to_vec() });
        self.from = self.end;
        for (at, value) in std::mem::take(&mut self.numbers) {
            number(&mut writes, at, value);
        }
        let last_record = self.records.saturating_sub(1);
        let packed = (self.last << self.cycle.position_shift()) | last_record;
        number(&mut writes, WRITE_POSITION, self.last as i64);
        number(&mut writes, WRITE_POSITION + 8, packed as i64);
        writes
    }

    /// What ends the file, when another one is begun.
    pub fn finish(&self) -> Write {
        Write { at: self.end, bytes: END.to_le_bytes().to_vec() }
    }
}

/// Does a file begin as a new one would, but for the numbers that change?
fn is_same_header(fresh: &[u8], found: &[u8], page: u64) -> bool {
    let fixed = [
        0..WRITE_POSITION,
        WRITE_POSITION + 16..LAST_INDEX,
        LAST_INDEX + 8..INDEX_OF_INDEX_ENTRIES - 8,
        INDEX_OF_INDEX_ENTRIES..INDEX_OF_INDEX_ENTRIES + 8,
        page..entries_of(page) - 8,
    ];
    fresh.len() == found.len()
        && fixed.into_iter().all(|range| {
            let range = range.start as usize..range.end as usize;
            fresh.get(range.clone()) == found.get(range)
        })
}

/// What `metadata.cq4t` says: how the queue rolls, and which files it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// How it rolls.
    pub cycle: RollCycle,
    /// The number of its oldest file.
    pub lowest: i64,
    /// The number of its newest one.
    pub highest: i64,
    /// How often that changed.
    pub changes: i64,
}

impl Table {
    /// The name of the file.
    pub const FILE: &str = "metadata.cq4t";

    fn header(cycle: RollCycle) -> Vec<u8> {
        let mut out = Vec::new();
        meta(&mut out, 0, |wire| {
            wire.event("header").type_prefix("STStore").nested(|wire| {
                wire.field("wireType").type_prefix("WireType").text(Some("BINARY_LIGHT"));
                wire.field("metadata").type_prefix("SCQMeta").nested(|wire| {
                    wire.field("roll").type_prefix("SCQSRoll").nested(|wire| {
                        wire.field("length").int(cycle.millis as i32);
                        wire.field("format").text(Some(cycle.format));
                        wire.field("epoch").int(0);
                    });
                    wire.field("deltaCheckpointInterval").int(64);
                    wire.field("sourceId").int(0);
                });
                let missing = (4 - wire.offset() % 4) % 4;
                wire.pad(missing as usize);
            });
        });
        out
    }

    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Self::header(self.cycle);
        for (name, value) in [
            ("listing.highestCycle", self.highest),
            ("listing.lowestCycle", self.lowest),
            ("listing.modCount", self.changes),
            ("chronicle.write.lock", UNLOCKED),
            ("chronicle.append.lock", UNLOCKED),
            ("chronicle.lastIndexReplicated", -1),
            ("chronicle.lastAcknowledgedIndexReplicated", -1),
            ("chronicle.lastIndexMSynced", -1),
        ] {
            let begin = out.len();
            out.extend([0; 4]);
            Wire::new(&mut out, 0).event(name).aligned_long(value);
            let length = (out.len() - begin - 4) as u32;
            set_word(&mut out, begin, length);
        }
        out.resize(TABLE_BYTES, 0);
        out
    }

    /// Do these bytes, which a file begins with, say that its queue rolls so?
    pub fn rolls_so(cycle: RollCycle, found: &[u8]) -> bool {
        found.starts_with(&Self::header(cycle))
    }
}
