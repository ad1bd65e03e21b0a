//! A day of load in simulated time, over descriptions and keys alone: flushes, the strategy's
//! choices, merges. After every step what can be read is what was written, and the strategy's laws
//! hold.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schema::CompactionParams;
use storage::compaction::{Candidate, Choice, Reason, Split, Splitter, Strategy, View};
use storage::{PartitionKey, RepairStatus};
use types::Token;

/// Bytes that a row stands for, and a tombstone.
const ROW_BYTES: u64 = 80 << 10;
const TOMBSTONE_BYTES: u64 = 64;
/// A minute, between two flushes.
const STEP_SECONDS: i64 = 60;
/// 2023-11-14, 22:13:20.
const START_SECONDS: i64 = 1_700_000_000;
/// Rows that a flush has, on average over the day.
const ROWS_PER_FLUSH: u64 = 300;
/// How many keys there are to be updated.
const KEYS: u64 = 24_000;
const BYTES_PER_SECOND: u64 = 64 << 20;
const COMPACTORS: usize = 2;
const GC_GRACE_SECONDS: i64 = 3600;

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Rows are updated, some keys often, and now and then deleted.
    Updates,
    /// Each row is new, and lives for three hours.
    Series,
}

/// A generator of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }
}

/// The newest of a row: when it was written, and when it ends or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    micros: i64,
    /// Seconds; `i64::MAX` for never.
    ends: i64,
    is_deleted: bool,
}

impl Row {
    fn bytes(self) -> u64 {
        if self.is_deleted { TOMBSTONE_BYTES } else { ROW_BYTES }
    }

    /// With a value that has expired gone.
    fn at(self, now: i64) -> Self {
        Self { is_deleted: self.is_deleted || self.ends <= now, ..self }
    }
}

struct File {
    facts: Candidate,
    rows: Vec<(i64, Row)>,
    /// When things in it end, ascending.
    ends: Vec<i64>,
}

impl File {
    fn find(&self, token: i64) -> Option<Row> {
        let at = self.rows.binary_search_by_key(&token, |(token, _)| *token).ok()?;
        Some(self.rows[at].1)
    }
}

struct Running {
    ends_at: f64,
    choice: Choice,
}

/// What came of a day.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub flushed: u64,
    pub written: u64,
    pub tasks: BTreeMap<&'static str, u64>,
    pub dropped_whole: u64,
    pub outputs_max: usize,
    pub tables_max: usize,
    pub tables: usize,
    pub pending_max: usize,
    reads: u64,
    tables_read: u64,
    /// Bytes on disk by bytes that are alive, times 1000: the mean of all steps, and the most.
    space: (u64, u64),
    steps: u64,
}

impl Report {
    pub fn write_amplification(&self) -> f64 {
        (self.flushed + self.written) as f64 / self.flushed.max(1) as f64
    }

    pub fn space_amplification(&self) -> (f64, f64) {
        let mean = self.space.0 as f64 / self.steps.max(1) as f64;
        (mean / 1000.0, self.space.1 as f64 / 1000.0)
    }

    pub fn tables_per_read(&self) -> f64 {
        self.tables_read as f64 / self.reads.max(1) as f64
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mean, most) = self.space_amplification();
        write!(
            f,
            "{:>6.1} GiB flushed, write amplification {:>5.2}, space {mean:>5.2} (at most {most:>5.2}), {:>5.2} \
             tables a read, {:>3} tables ({:>3} at most), {:>3} pending at most, {:>4} dropped whole,",
            self.flushed as f64 / (1u64 << 30) as f64,
            self.write_amplification(),
            self.tables_per_read(),
            self.tables,
            self.tables_max,
            self.pending_max,
            self.dropped_whole,
        )?;
        for (reason, count) in &self.tasks {
            write!(f, " {count} {reason}")?;
        }
        Ok(())
    }
}

/// The day.
pub struct Day {
    strategy: Strategy,
    params: CompactionParams,
    load: Load,
    draw: Draw,
    now: i64,
    next_id: u64,
    files: BTreeMap<u64, File>,
    busy: BTreeSet<u64>,
    running: Vec<Running>,
    /// When the limit of throughput lets the next task end.
    paid: f64,
    flush_bytes: f64,
    model: BTreeMap<i64, Row>,
    report: Report,
}

fn token_of(key: u64) -> i64 {
    Draw(key).next() as i64 | 1
}

fn key(token: i64) -> PartitionKey {
    PartitionKey { token: Token(token), bytes: token.to_be_bytes().into() }
}

impl Day {
    pub fn new(params: CompactionParams, load: Load, seed: u64) -> Self {
        Self {
            strategy: Strategy::new(&params, START_SECONDS * 1000),
            params,
            load,
            draw: Draw(seed),
            now: START_SECONDS,
            next_id: 1,
            files: BTreeMap::new(),
            busy: BTreeSet::new(),
            running: Vec::new(),
            paid: 0.0,
            flush_bytes: f64::NAN,
            model: BTreeMap::new(),
            report: Report::default(),
        }
    }

    /// Goes on for so many minutes.
    pub fn run(&mut self, minutes: u64) {
        for _ in 0..minutes {
            self.now += STEP_SECONDS;
            self.flush();
            self.work();
            self.look();
        }
    }

    /// Lets everything that is to be done be done.
    pub fn settle(&mut self) {
        while !self.running.is_empty() || self.start() {
            self.now += STEP_SECONDS;
            self.work();
        }
        self.look();
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    pub fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    fn gc_before(&self) -> i64 {
        self.now - GC_GRACE_SECONDS
    }

    fn add(&mut self, rows: Vec<(i64, Row)>, level: usize) -> Candidate {
        let id = self.next_id;
        self.next_id += 1;
        let bytes: u64 = rows.iter().map(|(_, row)| row.bytes()).sum();
        let mut ends: Vec<i64> = rows.iter().map(|(_, row)| row.ends).collect();
        ends.sort_unstable();
        let times = || rows.iter().map(|(_, row)| row.micros);
        let facts = Candidate {
            id,
            data_bytes: bytes,
            total_bytes: bytes + bytes / 64,
            first: key(rows[0].0),
            last: key(rows[rows.len() - 1].0),
            min_timestamp: times().min().expect("rows"),
            max_timestamp: times().max().expect("rows"),
            max_local_deletion_time: *ends.last().expect("rows"),
            created_millis: self.now * 1000,
            level,
            repair: RepairStatus::Unrepaired,
            droppable_ratio: 0.0,
            keys: rows.len() as u64,
            cells: (1, rows.len() as i64),
            hotness: 0.0,
            is_compacting: false,
        };
        self.files.insert(id, File { facts: facts.clone(), rows, ends });
        facts
    }

    fn flush(&mut self) {
        let hour = (self.now / 3600 % 24) as f64;
        let share = 1.0 + 0.8 * (hour * std::f64::consts::TAU / 24.0).sin();
        let count = (ROWS_PER_FLUSH as f64 * share) as u64;
        let mut memtable = BTreeMap::new();
        for at in 0..count {
            let micros = self.now * 1_000_000 + at as i64;
            let (key, ends) = match self.load {
                Load::Updates => {
                    // half of the writes go to a tenth of the keys
                    let keys = if self.draw.below(2) == 0 { KEYS / 10 } else { KEYS };
                    (self.draw.below(keys), i64::MAX)
                }
                Load::Series => (self.draw.next(), self.now + 3 * 3600),
            };
            let is_deleted = self.load == Load::Updates && self.draw.below(20) == 0;
            let ends = if is_deleted { self.now } else { ends };
            memtable.insert(token_of(key), Row { micros, ends, is_deleted });
        }
        self.model.extend(&memtable);
        let bytes: u64 = memtable.values().map(|row| row.bytes()).sum();
        self.report.flushed += bytes;
        self.flush_bytes = if self.flush_bytes.is_nan() {
            bytes as f64
        } else {
            self.flush_bytes + 0.0046 * (bytes as f64 - self.flush_bytes)
        };
        let shards = self.strategy.flush_shards(self.flush_bytes);
        self.split(memtable.into_iter().collect(), Splitter::new(Split::Shards(shards), 0));
    }

    /// Writes rows as a splitter says.
    fn split(&mut self, rows: Vec<(i64, Row)>, mut splitter: Splitter) -> Vec<Candidate> {
        let mut made = Vec::new();
        let (mut part, mut bytes) = (Vec::new(), 0);
        let mut level = splitter.level();
        for (token, row) in rows {
            if splitter.cuts(Token(token), bytes, part.is_empty()) {
                made.push(self.add(std::mem::take(&mut part), level));
                bytes = 0;
            }
            level = splitter.level();
            bytes += row.bytes();
            part.push((token, row));
        }
        if !part.is_empty() {
            made.push(self.add(part, level));
        }
        made
    }

    fn view<T>(&mut self, with: impl FnOnce(&mut Strategy, &View<'_>) -> T) -> T {
        let gc_before = self.gc_before();
        let describe = |file: &File| {
            let ended = file.ends.partition_point(|ends| *ends < gc_before);
            Candidate {
                droppable_ratio: ended as f64 / file.ends.len() as f64,
                is_compacting: self.busy.contains(&file.facts.id),
                ..file.facts.clone()
            }
        };
        let tables: Vec<Candidate> = self.files.values().map(describe).collect();
        let files = &self.files;
        let keys_in = |id: u64, ranges: &[(Token, Token)]| {
            let file = files.get(&id)?;
            let is_in = |token: i64| ranges.iter().any(|(a, b)| a.0 < token && token <= b.0);
            Some(file.rows.iter().filter(|(token, _)| is_in(*token)).count() as u64)
        };
        let view = View {
            tables: &tables,
            now_millis: self.now * 1000,
            gc_before,
            memtable_min_timestamp: i64::MAX,
            flush_bytes: self.flush_bytes,
            keys_in: &keys_in,
            random: &|below| (self.now as u32 / 60) % below,
        };
        with(&mut self.strategy, &view)
    }

    /// Starts a task, if there is one and a slot for it.
    fn start(&mut self) -> bool {
        if self.running.len() >= COMPACTORS {
            return false;
        }
        let displaced = self.view(|strategy, view| strategy.displaced(view));
        assert_eq!(displaced, [0u64; 0], "what compaction writes stays in its level");
        let Some(choice) = self.view(|strategy, view| strategy.next(view)) else { return false };
        self.judge(&choice);
        self.busy.extend(&choice.inputs);
        let bytes: u64 = choice.inputs.iter().map(|id| self.files[id].facts.data_bytes).sum();
        self.paid = self.paid.max(self.now as f64) + bytes as f64 / BYTES_PER_SECOND as f64;
        self.running.push(Running { ends_at: self.paid, choice });
        true
    }

    fn work(&mut self) {
        loop {
            let now = self.now as f64;
            let due = self.running.iter().position(|task| task.ends_at <= now);
            match due {
                Some(at) => {
                    let task = self.running.remove(at);
                    self.finish(&task.choice);
                }
                None if self.start() => {}
                None => break,
            }
        }
        let pending = self.view(|strategy, view| strategy.pending(view));
        self.report.pending_max = self.report.pending_max.max(pending);
    }

    fn finish(&mut self, choice: &Choice) {
        let inputs = &choice.inputs;
        let expired = self.view(|strategy, view| strategy.expired(view, inputs));
        self.report.dropped_whole += expired.len() as u64;
        let mut removed = Vec::new();
        let mut merged: BTreeMap<i64, Row> = BTreeMap::new();
        for id in inputs {
            self.busy.remove(id);
            let file = self.files.remove(id).expect("an input that is live");
            if !expired.contains(id) {
                for (token, row) in &file.rows {
                    let newest = merged.entry(*token).or_insert(*row);
                    if row.micros > newest.micros {
                        *newest = *row;
                    }
                }
            }
            removed.push(file.facts);
        }
        let (now, gc_before) = (self.now, self.gc_before());
        let older = |token: i64, row: Row| {
            let holds =
                |file: &File| file.facts.min_timestamp <= row.micros && file.find(token).is_some();
            self.files.values().any(holds)
        };
        let rows: Vec<(i64, Row)> = merged
            .into_iter()
            .map(|(token, row)| (token, row.at(now)))
            .filter(|(token, row)| !row.is_deleted || row.ends >= gc_before || older(*token, *row))
            .collect();
        let splitter = Splitter::new(choice.split.clone(), choice.level);
        let added = if choice.moves {
            vec![self.add(rows, choice.level)]
        } else {
            self.split(rows, splitter)
        };
        if !choice.moves {
            self.report.written += added.iter().map(|table| table.data_bytes).sum::<u64>();
        }
        self.report.outputs_max = self.report.outputs_max.max(added.len());
        let name = match choice.reason {
            Reason::Tombstones => "for tombstones",
            Reason::Expired => "of what expired",
            _ if choice.moves => "moved",
            _ => "merges",
        };
        *self.report.tasks.entry(name).or_default() += 1;
        self.strategy.replaced(&removed, &added);
        self.laws(choice, &added);
    }

    /// Laws of a choice.
    fn judge(&self, choice: &Choice) {
        assert!(!choice.inputs.is_empty());
        let distinct: BTreeSet<_> = choice.inputs.iter().collect();
        assert_eq!(distinct.len(), choice.inputs.len(), "{choice:?}");
        for id in &choice.inputs {
            assert!(self.files.contains_key(id) && !self.busy.contains(id), "{choice:?}");
        }
        if self.params.class.ends_with("TimeWindowCompactionStrategy") {
            let is_alive =
                |id: &&u64| self.files[*id].facts.max_local_deletion_time >= self.gc_before();
            let hour = |id: &u64| self.files[id].facts.max_timestamp / 3_600_000_000;
            let windows: BTreeSet<_> = choice.inputs.iter().filter(is_alive).map(hour).collect();
            assert!(windows.len() <= 1, "windows {windows:?} in {choice:?}");
        }
    }

    /// Laws of a result.
    fn laws(&self, choice: &Choice, added: &[Candidate]) {
        for table in added {
            for other in added.iter().filter(|other| other.id != table.id) {
                assert!(!table.overlaps(other), "outputs overlap");
            }
        }
        if let Split::Shards(shards) = choice.split {
            for table in added {
                let shard = |key: &PartitionKey| storage::compaction::shard_of(key.token, shards);
                assert_eq!(shard(&table.first), shard(&table.last), "an output in two shards");
            }
        }
        if self.params.class.ends_with("LeveledCompactionStrategy") {
            let mut levels: BTreeMap<usize, Vec<&Candidate>> = BTreeMap::new();
            for file in self.files.values() {
                levels.entry(file.facts.level).or_default().push(&file.facts);
            }
            for (level, mut tables) in levels.into_iter().filter(|(level, _)| *level > 0) {
                tables.sort_by(|a, b| a.first.cmp(&b.first));
                let apart = |two: &[&Candidate]| two[0].last < two[1].first;
                assert!(tables.windows(2).all(apart), "level {level} overlaps");
            }
        }
    }

    fn read(&mut self, token: i64) -> Option<Row> {
        let found: Vec<Row> = self.files.values().filter_map(|file| file.find(token)).collect();
        self.report.reads += 1;
        self.report.tables_read += found.len() as u64;
        found.into_iter().max_by_key(|row| row.micros)
    }

    /// Reads agree with the model; what is on disk is measured.
    fn look(&mut self) {
        let alive = |row: &Row, now: i64| !row.at(now).is_deleted;
        let now = self.now;
        let wanted: Vec<(i64, Row)> = match self.load {
            Load::Updates => (0..40)
                .filter_map(|_| {
                    let token = token_of(self.draw.below(KEYS));
                    self.model.get(&token).map(|row| (token, *row))
                })
                .collect(),
            Load::Series => {
                let from = self.draw.next() as i64;
                self.model.range(from..).take(40).map(|(token, row)| (*token, *row)).collect()
            }
        };
        for (token, row) in wanted {
            let found = self.read(token).filter(|row| alive(row, now));
            let expected = Some(row).filter(|row| alive(row, now));
            assert_eq!(found.map(|row| row.micros), expected.map(|row| row.micros), "{token}");
        }
        if self.load == Load::Series {
            self.model.retain(|_, row| row.ends > now - 2 * GC_GRACE_SECONDS);
        }
        let bytes: u64 = self.files.values().map(|file| file.facts.data_bytes).sum();
        let model: u64 = self.model.values().filter(|r| alive(r, now)).map(|r| r.bytes()).sum();
        let space = bytes * 1000 / model.max(1);
        let report = &mut self.report;
        report.space = (report.space.0 + space, report.space.1.max(space));
        report.steps += 1;
        report.tables = self.files.len();
        report.tables_max = report.tables_max.max(self.files.len());
    }

    /// All that was written can be read, and nothing else.
    pub fn compare(&mut self) {
        let now = self.now;
        let model: Vec<(i64, Row)> = self.model.iter().map(|(t, row)| (*t, *row)).collect();
        for (token, row) in &model {
            let found = self.read(*token).filter(|row| !row.at(now).is_deleted);
            let expected = Some(row).filter(|row| !row.at(now).is_deleted);
            assert_eq!(found.map(|row| row.micros), expected.map(|row| row.micros), "{token}");
        }
        let tokens = self.files.values().flat_map(|file| &file.rows);
        let alive = tokens.filter(|(_, row)| !row.at(now).is_deleted).map(|(token, _)| *token);
        for token in alive.collect::<BTreeSet<_>>() {
            let newest = self.read(token).expect("it was there");
            let is_known = self.model.contains_key(&token);
            assert!(is_known || newest.at(now).is_deleted, "{token} came back");
        }
    }

    /// A major compaction of what is idle; how many tables are left.
    pub fn major(&mut self, split: bool) -> usize {
        assert!(self.running.is_empty());
        for choice in self.view(|strategy, view| strategy.major(view, split)) {
            self.finish(&choice);
        }
        self.compare();
        self.files.len()
    }
}
