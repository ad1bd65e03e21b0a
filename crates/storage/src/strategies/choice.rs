//! What a strategy sees of a table, and what it answers. Plain data: choices are made and tested
//! without a disk.

use schema::CompactionParams;
use types::Token;

use crate::memtable::PartitionKey;
use crate::repair_status::RepairStatus;

/// What a choice needs to know of an SSTable.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// What the caller knows it by; of two tables the younger one has the larger.
    pub id: u64,
    /// Bytes of `Data.db` as stored.
    pub data_bytes: u64,
    /// Bytes of all components.
    pub total_bytes: u64,
    /// The first key.
    pub first: PartitionKey,
    /// The last key.
    pub last: PartitionKey,
    /// The oldest timestamp in it.
    pub min_timestamp: i64,
    /// The newest timestamp in it.
    pub max_timestamp: i64,
    /// The last second at which something in it is deleted or expires; `i64::MAX` if something
    /// never is.
    pub max_local_deletion_time: i64,
    /// When it was written, in milliseconds.
    pub created_millis: i64,
    /// The level that its metadata name.
    pub level: usize,
    /// What incremental repair knows of it.
    pub repair: RepairStatus,
    /// The share of its cells that are tombstones which may go, as estimated.
    pub droppable_ratio: f64,
    /// Estimated number of keys.
    pub keys: u64,
    /// Mean number of cells of a partition, and how many partitions that is of.
    pub cells: (i64, i64),
    /// Reads per second and key.
    pub hotness: f64,
    /// Is a task at work on it?
    pub is_compacting: bool,
}

impl Candidate {
    /// Do the ranges of tokens of two tables meet?
    pub fn overlaps(&self, other: &Self) -> bool {
        self.covers(other.first.token, other.last.token)
    }

    /// Does its range of tokens meet another, ends included?
    pub fn covers(&self, first: Token, last: Token) -> bool {
        self.first.token <= last && first <= self.last.token
    }
}

/// A table as its strategy sees it.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// All live SSTables.
    pub tables: &'a [Candidate],
    /// The time, in milliseconds.
    pub now_millis: i64,
    /// Tombstones of seconds before this one may go.
    pub gc_before: i64,
    /// The oldest timestamp in a memtable; `i64::MAX` for none.
    pub memtable_min_timestamp: i64,
    /// The moving average of what a flush writes, in bytes; not a number before the first.
    pub flush_bytes: f64,
    /// About how many keys of a table lie in ranges of tokens (without their starts); `None` if its
    /// sample is too small to say.
    pub keys_in: &'a dyn Fn(u64, &[(Token, Token)]) -> Option<u64>,
    /// A number below another one.
    pub random: &'a dyn Fn(u32) -> u32,
}

impl View<'_> {
    /// Live tables beside `these` that may hold the same keys.
    pub fn overlapping<'s>(&'s self, these: &[&Candidate]) -> Vec<&'s Candidate> {
        let is_other = |table: &&Candidate| these.iter().all(|this| this.id != table.id);
        let meets = |table: &&Candidate| these.iter().any(|this| this.overlaps(table));
        self.tables.iter().filter(is_other).filter(meets).collect()
    }
}

/// Where a compaction's output ends and the next begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Split {
    /// Nowhere.
    None,
    /// Before the partition at which it has more than so many bytes.
    Size(u64),
    /// The same, and outputs fill one level after the other, from the first.
    Levels {
        /// Bytes of an output.
        bytes: u64,
        /// How many times larger a level is than the one below.
        fanout: u32,
    },
    /// At a half, three quarters, ... of so many bytes, as long as that makes sense.
    Halves(u64),
    /// At the boundaries of so many equal parts of the ring.
    Shards(u32),
}

/// Why a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Enough SSTables of about one size, or of one density.
    Tier,
    /// A level is full.
    Level,
    /// Enough SSTables in the window of the newest, or several in an older one.
    Window,
    /// One SSTable with many tombstones that may go.
    Tombstones,
    /// Nothing but what has expired.
    Expired,
    /// The operator wants all in one.
    Major,
    /// The operator named the SSTables.
    UserDefined,
    /// The operator wants what is readable of one SSTable.
    Scrub,
    /// The operator wants what is needless of one SSTable dropped.
    Garbage,
    /// The operator wants one SSTable in the directories where it belongs.
    Relocate,
    /// The operator wants the partitions of one SSTable gone of which the node is no replica.
    Cleanup,
    /// A repair wants what is in its ranges apart from the rest of one SSTable.
    Anticompaction,
}

impl Reason {
    /// `OperationType`, as Cassandra shows it.
    pub fn operation(self) -> &'static str {
        match self {
            Self::Tombstones => "Tombstone Compaction",
            Self::Major => "Major compaction",
            Self::Scrub => "Scrub",
            Self::Garbage => "Remove deleted data",
            Self::Relocate => "Relocate sstables to correct disk",
            Self::Cleanup => "Cleanup",
            Self::Anticompaction => "Anticompaction after repair",
            _ => "Compaction",
        }
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The inputs.
    pub inputs: Vec<u64>,
    /// The level of the outputs.
    pub level: usize,
    /// Where outputs end.
    pub split: Split,
    /// Why.
    pub reason: Reason,
    /// Only the level of the one input is to be changed.
    pub moves: bool,
}

impl Choice {
    /// A task that makes one SSTable of several.
    pub(crate) fn merge(inputs: Vec<u64>, reason: Reason) -> Self {
        Self { inputs, level: 0, split: Split::None, reason, moves: false }
    }
}

/// The options of a table, read leniently: the schema has validated them, and what a later
/// Cassandra allows more must not stop a start.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a>(pub &'a CompactionParams);

impl<'a> Given<'a> {
    pub fn text(self, name: &str) -> Option<&'a str> {
        self.0.options.get(name).map(String::as_str)
    }

    pub fn number<T: std::str::FromStr>(self, name: &str, default: T) -> T {
        self.text(name).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
    }

    pub fn flag(self, name: &str) -> bool {
        self.text(name).is_some_and(|text| text.eq_ignore_ascii_case("true"))
    }

    /// A size such as `512MiB`, in bytes.
    pub fn bytes(self, name: &str, default: u64) -> u64 {
        self.text(name).and_then(schema::bytes_of).map_or(default, |bytes| bytes as u64)
    }
}
