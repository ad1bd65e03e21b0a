//! How many images there were of which place and cut.

use std::collections::BTreeMap;
use std::fmt;

use env::sim::Change;

use super::place::COMPONENTS;
use super::{CUTS, Cut, Place, Purpose};

/// Counts by place: changes seen, and images by where they were cut.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: BTreeMap<Place, (u64, [u64; CUTS.len()])>,
    /// Images on which a node started.
    pub images: u64,
    /// Writes of which a power cut left a part, over all images.
    pub torn_writes: u64,
    /// Changes that it left nothing of.
    pub lost: u64,
    /// Writes of clients that were read back.
    pub checked: u64,
}

/// What must be cut in every campaign: each step of each operation on each of its files.
const REQUIRED: &[(Purpose, &[&str], &[Change])] = {
    use Change::{
        Create, Link, MakeDir, Remove, RemoveDir, Rename, Resize, Sync, SyncNames, Write,
    };
    const SSTABLE: &[&str] = &COMPONENTS;
    const TRANSACTION: &[&str] = &["transaction log"];
    const TRANSACTION_STEPS: &[Change] = &[Create, Write, Sync, Rename, Remove];
    const DIRECTORY: &[&str] = &["directory"];
    &[
        (Purpose::Log, &["log segment"], &[Create, Resize, Write, Sync]),
        (Purpose::Log, &["list of segments"], &[Create, Write, Sync, Rename]),
        (Purpose::Log, DIRECTORY, &[SyncNames]),
        (Purpose::Recycling, &["log segment"], &[Remove]),
        (Purpose::Recycling, DIRECTORY, &[SyncNames]),
        (Purpose::Flush, SSTABLE, &[Create, Write, Sync]),
        (Purpose::Flush, TRANSACTION, TRANSACTION_STEPS),
        (Purpose::Flush, DIRECTORY, &[MakeDir, SyncNames]),
        (Purpose::Backup, SSTABLE, &[Link]),
        (Purpose::Backup, DIRECTORY, &[MakeDir, SyncNames]),
        (Purpose::Compaction, SSTABLE, &[Create, Write, Sync, Remove]),
        (Purpose::Compaction, TRANSACTION, TRANSACTION_STEPS),
        (Purpose::Compaction, DIRECTORY, &[SyncNames]),
        (Purpose::Snapshot, SSTABLE, &[Link]),
        (Purpose::Snapshot, &["manifest.json", "schema.cql"], &[Create, Write, Sync, Rename]),
        (Purpose::Snapshot, DIRECTORY, &[MakeDir, SyncNames]),
        (Purpose::Clear, DIRECTORY, &[RemoveDir]),
        (Purpose::Truncate, &["truncation record"], &[Create, Write, Sync, Rename]),
        (Purpose::Truncate, SSTABLE, &[Remove]),
        (Purpose::Truncate, TRANSACTION, TRANSACTION_STEPS),
        (Purpose::Truncate, DIRECTORY, &[SyncNames]),
        (Purpose::Import, &["Data.db", "Statistics.db", "TOC.txt"], &[Link, Sync]),
        (Purpose::Import, TRANSACTION, TRANSACTION_STEPS),
        (Purpose::Import, DIRECTORY, &[SyncNames]),
        (Purpose::Start, &["log segment"], &[Create, Sync]),
        (Purpose::Start, &["list of segments"], &[Create, Write, Sync, Rename]),
        (Purpose::Start, TRANSACTION, &[Remove]),
        (Purpose::Start, DIRECTORY, &[MakeDir, SyncNames]),
    ]
};

impl Table {
    /// A change was seen.
    pub fn saw(&mut self, place: Place, times: u64) {
        self.rows.entry(place).or_default().0 += times;
    }

    /// There was an image.
    pub fn cut(&mut self, place: Place, cut: Cut) {
        self.rows.entry(place).or_default().1[cut as usize] += 1;
        self.images += 1;
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        for (place, (seen, cuts)) in &other.rows {
            let row = self.rows.entry(*place).or_default();
            row.0 += seen;
            row.1.iter_mut().zip(cuts).for_each(|(sum, more)| *sum += more);
        }
        self.images += other.images;
        self.torn_writes += other.torn_writes;
        self.lost += other.lost;
        self.checked += other.checked;
    }

    /// Places and cuts that must be in a whole campaign and are not.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (purpose, files, changes) in REQUIRED {
            for file in *files {
                for change in *changes {
                    let place = Place { purpose: *purpose, file, change: *change };
                    let cuts = self.rows.get(&place).map_or([0; CUTS.len()], |row| row.1);
                    let none = CUTS.into_iter().filter(|cut| cuts[*cut as usize] == 0);
                    missing.extend(none.map(|cut| format!("{place} {cut:?}")));
                }
            }
        }
        missing
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} images, {} kinds of changes; {} writes torn, {} changes lost; {} writes to be found again",
            self.images,
            self.rows.len(),
            self.torn_writes,
            self.lost,
            self.checked
        )?;
        writeln!(
            f,
            "  {:<11}{:<20}{:<10}{:>10}{:>8}{:>8}{:>8}",
            "purpose", "file", "change", "seen", "before", "torn", "after"
        )?;
        for (place, (seen, [before, torn, after])) in &self.rows {
            writeln!(f, "  {place}{seen:>10}{before:>8}{torn:>8}{after:>8}")?;
        }
        Ok(())
    }
}
