//! How far sessions are.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use env::Instant;
use schema::TableId;

use crate::meter::{Meter, time_left};
use crate::session::{Role, SessionId, State};
use crate::wire::{Operation, Summary};

/// Which way files go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// To this node.
    In,
    /// From it.
    Out,
}

/// How much of a table is to go one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableView {
    table: TableId,
    files: u32,
    bytes: u64,
}

impl TableView {
    pub fn new(table: TableId, files: u32, bytes: u64) -> Self {
        Self { table, files, bytes }
    }
}

/// Which file of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileKey {
    pub direction: Direction,
    pub table: TableId,
    pub sequence: i32,
}

/// How far a file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileView {
    /// Its data, where this node has it.
    pub name: String,
    /// Files that it counts for.
    pub files: u32,
    /// Its bytes.
    pub bytes: u64,
    /// Bytes that went.
    pub done: u64,
}

impl FileView {
    pub(crate) fn new(name: String, files: u32, bytes: u64) -> Self {
        Self { name, files, bytes, done: 0 }
    }
}

/// What goes one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Files in all; an SSTable that goes whole has several.
    pub files: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Files that went.
    pub files_done: u64,
    /// Bytes that went.
    pub bytes_done: u64,
}

impl Sum {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            files: self.files + other.files,
            bytes: self.bytes + other.bytes,
            files_done: self.files_done + other.files_done,
            bytes_done: self.bytes_done + other.bytes_done,
        }
    }

    /// Bytes that are still to go.
    pub fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.bytes_done)
    }
}

/// How fast a session goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    /// Since it began.
    pub elapsed: Duration,
    /// Bytes a second of late, both ways together.
    pub bytes_per_second: u64,
    /// At that rate; none where nothing goes.
    pub left: Option<Duration>,
}

/// A session, as it is shown.
#[derive(Clone, Debug)]
pub struct SessionView {
    /// Which.
    pub id: SessionId,
    /// What for.
    pub operation: Operation,
    /// Who began it.
    pub role: Role,
    /// How far it is.
    pub state: State,
    /// What comes.
    pub receiving: Sum,
    /// What goes.
    pub sending: Sum,
    /// How fast.
    pub speed: Speed,
    /// Files that are under way, or went.
    pub files: Vec<(Direction, FileView)>,
}

/// What a session has announced and done.
pub(crate) struct Progress {
    meter: Meter,
    tables: RefCell<BTreeMap<(Direction, TableId), TableView>>,
    files: RefCell<BTreeMap<FileKey, FileView>>,
}

impl Progress {
    pub fn new(began: Instant) -> Self {
        let (tables, files) = (RefCell::default(), RefCell::default());
        Self { meter: Meter::new(began), tables, files }
    }

    pub fn announce(&self, direction: Direction, view: TableView) {
        self.tables.borrow_mut().insert((direction, view.table), view);
    }

    pub fn expect(&self, direction: Direction, summaries: &[Summary]) {
        for Summary { table, files, bytes } in summaries {
            self.announce(direction, TableView::new(*table, *files, *bytes));
        }
    }

    pub fn begin(&self, key: FileKey, view: FileView) {
        self.files.borrow_mut().insert(key, view);
    }

    pub fn went_on(&self, key: FileKey, bytes: u64, now: Instant) {
        self.meter.went_on(bytes, now);
        if let Some(view) = self.files.borrow_mut().get_mut(&key) {
            view.done += bytes;
        }
    }

    /// All went. Other shards say how far files are, and may say it behind the session's end.
    pub fn all_done(&self) {
        self.files.borrow_mut().values_mut().for_each(|view| view.done = view.bytes);
    }

    /// What goes one way, in all.
    pub fn sum(&self, direction: Direction) -> Sum {
        let mut sum = Sum::default();
        let tables = self.tables.borrow();
        for (_, view) in tables.iter().filter(|((way, _), _)| *way == direction) {
            sum.files += u64::from(view.files);
            sum.bytes = sum.bytes.saturating_add(view.bytes);
        }
        let files = self.files.borrow();
        for (_, view) in files.iter().filter(|(key, _)| key.direction == direction) {
            sum.bytes_done += view.done.min(view.bytes);
            if view.done >= view.bytes {
                sum.files_done += u64::from(view.files);
            }
        }
        sum
    }

    /// How fast it goes now.
    pub fn speed(&self, now: Instant) -> Speed {
        let left = self.sum(Direction::In).left() + self.sum(Direction::Out).left();
        let bytes_per_second = self.meter.rate(now);
        let elapsed = self.meter.elapsed(now);
        Speed { elapsed, bytes_per_second, left: time_left(left, bytes_per_second) }
    }

    /// Bytes a second since it began.
    pub fn mean(&self, now: Instant) -> u64 {
        self.meter.mean(now)
    }

    pub fn files(&self) -> Vec<(Direction, FileView)> {
        let files = self.files.borrow();
        files.iter().map(|(key, view)| (key.direction, view.clone())).collect()
    }
}
