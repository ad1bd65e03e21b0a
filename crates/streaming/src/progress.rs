//! How far sessions are.

use std::cell::RefCell;
use std::collections::BTreeMap;

use schema::TableId;

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
pub struct TableView {
    /// The table.
    pub table: TableId,
    /// Files that are to go.
    pub files: u32,
    /// Bytes that are to go.
    pub bytes: u64,
}

impl TableView {
    pub(crate) fn new(table: TableId, files: u32, bytes: u64) -> Self {
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
    /// What is to go which way.
    pub tables: Vec<(Direction, TableView)>,
    /// Files that are under way, or went.
    pub files: Vec<(Direction, FileView)>,
}

/// What a session has announced and done.
#[derive(Default)]
pub(crate) struct Progress {
    tables: RefCell<BTreeMap<(Direction, TableId), TableView>>,
    files: RefCell<BTreeMap<FileKey, FileView>>,
}

impl Progress {
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

    pub fn went_on(&self, key: FileKey, bytes: u64) {
        if let Some(view) = self.files.borrow_mut().get_mut(&key) {
            view.done += bytes;
        }
    }

    /// Files and bytes in all.
    pub fn announced(&self, direction: Direction) -> (u32, u64) {
        let tables = self.tables.borrow();
        let of = tables.iter().filter(|((way, _), _)| *way == direction).map(|(_, view)| view);
        of.fold((0, 0), |(files, bytes), view| (files + view.files, bytes + view.bytes))
    }

    /// Bytes that are still to go.
    pub fn left(&self, direction: Direction) -> u64 {
        let files = self.files.borrow();
        let of = files.iter().filter(|(key, _)| key.direction == direction);
        let done: u64 = of.map(|(_, view)| view.done).sum();
        self.announced(direction).1.saturating_sub(done)
    }

    pub fn tables(&self) -> Vec<(Direction, TableView)> {
        let tables = self.tables.borrow();
        tables.iter().map(|((direction, _), view)| (*direction, *view)).collect()
    }

    pub fn files(&self) -> Vec<(Direction, FileView)> {
        let files = self.files.borrow();
        files.iter().map(|(key, view)| (key.direction, view.clone())).collect()
    }
}
