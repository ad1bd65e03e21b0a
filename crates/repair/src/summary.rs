//! What a repair streamed, or would stream (`consistent.SyncStatSummary`), as `nodetool repair`
//! prints it.
//!
//! Cassandra prints sets and maps in the order of their hashes. Here ranges and pairs of nodes are
//! sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use types::{Address, TokenRange};

use crate::text::{address, memory};
use crate::wire::{SessionSummary, StreamSummary};

/// Mismatching ranges of a table that are printed, at most.
const RANGES_SHOWN_MAX: usize = 30;

/// What came of two replicas (`SyncStat`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncStat {
    /// What they differed in.
    pub differences: Vec<TokenRange>,
    /// What was streamed; `None` if nothing was to be counted.
    pub summaries: Option<Vec<SessionSummary>>,
}

/// What was or would be streamed of all tables.
#[derive(Clone, Debug)]
pub struct SyncStatSummary {
    is_estimate: bool,
    /// By keyspace and name.
    tables: BTreeMap<(String, String), TableSummary>,
}

#[derive(Clone, Debug, Default)]
struct TableSummary {
    is_counter: bool,
    /// By sender and receiver.
    sessions: BTreeMap<(Address, Address), Streamed>,
}

/// Files, bytes and ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Streamed {
    files: u64,
    bytes: u64,
    ranges: BTreeSet<TokenRange>,
}

impl SyncStatSummary {
    /// Of no table yet. An estimate is a preview's.
    pub fn new(is_estimate: bool) -> Self {
        Self { is_estimate, tables: BTreeMap::new() }
    }

    /// Adds what came of a table's replicas. Tables of counters are listed, and not part of the
    /// total: their replicas may differ in what does not count.
    pub fn add(&mut self, keyspace: &str, table: &str, is_counter: bool, stats: &[SyncStat]) {
        let entry = self.tables.entry((keyspace.to_owned(), table.to_owned()));
        let summary = entry.or_default();
        summary.is_counter = is_counter;
        for SyncStat { differences, summaries } in stats {
            for session in summaries.iter().flatten() {
                let (one, other) = (session.coordinator, session.peer);
                summary.streamed(one, other).add(&session.sending, differences);
                summary.streamed(other, one).add(&session.receiving, differences);
            }
        }
    }

    /// Was nothing streamed, and does nothing differ?
    pub fn is_empty(&self) -> bool {
        self.total() == Streamed::default()
    }

    fn total(&self) -> Streamed {
        let mut total = Streamed::default();
        let counted = self.tables.values().filter(|table| !table.is_counter);
        counted.for_each(|table| total.add_all(&table.total()));
        total
    }
}

impl TableSummary {
    fn streamed(&mut self, from: Address, to: Address) -> &mut Streamed {
        self.sessions.entry((from, to)).or_default()
    }

    fn total(&self) -> Streamed {
        let mut total = Streamed::default();
        self.sessions.values().for_each(|streamed| total.add_all(streamed));
        total
    }
}

impl Streamed {
    fn add(&mut self, summaries: &[StreamSummary], ranges: &[TokenRange]) {
        for summary in summaries {
            self.files = self.files.saturating_add(summary.files.into());
            self.bytes = self.bytes.saturating_add(summary.bytes);
        }
        self.ranges.extend(ranges);
    }

    fn add_all(&mut self, other: &Self) {
        self.files = self.files.saturating_add(other.files);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.ranges.extend(&other.ranges);
    }
}

impl fmt::Display for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, bytes, ranges } = self;
        write!(f, "{} ranges, {files} sstables, {} bytes", ranges.len(), memory(*bytes))
    }
}

impl fmt::Display for SyncStatSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_estimate { "estimated streaming" } else { "streaming" };
        writeln!(f, "Total {kind}: {}", self.total())?;
        for ((keyspace, name), table) in &self.tables {
            let total = table.total();
            writeln!(f, "{keyspace}.{name} - {total}")?;
            if !total.ranges.is_empty() {
                f.write_str("    Mismatching ranges: ")?;
                for range in total.ranges.iter().take(RANGES_SHOWN_MAX) {
                    write!(f, "({},{}],", range.left, range.right)?;
                }
                // also of exactly as many, as Cassandra does
                let is_cut = total.ranges.len() >= RANGES_SHOWN_MAX;
                writeln!(f, "{}", if is_cut { "..." } else { "" })?;
            }
            for ((from, to), streamed) in &table.sessions {
                writeln!(f, "    /{} -> /{}: {streamed}", address(from), address(to))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
