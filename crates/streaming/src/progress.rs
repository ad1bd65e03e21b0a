//! How far sessions are.

use std::cell::RefCell;
use std::collections::BTreeMap;

use env::Instant;
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

/// How much of a table is to go one way, and went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableView {
    /// The table.
    pub table: TableId,
    /// Files that are to go.
    pub files: u32,
    /// Bytes that are to go.
    pub bytes: u64,
    /// Bytes that went.
    pub done: u64,
}

impl TableView {
    pub(crate) fn new(table: TableId, files: u32, bytes: u64) -> Self {
        Self { table, files, bytes, done: 0 }
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
    /// What goes which way.
    pub tables: Vec<(Direction, TableView)>,
}

/// What a session has announced and done.
pub(crate) struct Progress {
    pub started: Instant,
    tables: RefCell<BTreeMap<(Direction, TableId), TableView>>,
}

impl Progress {
    pub fn new(started: Instant) -> Self {
        Self { started, tables: RefCell::default() }
    }

    pub fn announce(&self, direction: Direction, view: TableView) {
        self.tables.borrow_mut().insert((direction, view.table), view);
    }

    pub fn expect(&self, direction: Direction, summaries: &[Summary]) {
        for Summary { table, files, bytes } in summaries {
            self.announce(direction, TableView::new(*table, *files, *bytes));
        }
    }

    pub fn went_on(&self, direction: Direction, table: TableId, bytes: u64) {
        if let Some(view) = self.tables.borrow_mut().get_mut(&(direction, table)) {
            view.done += bytes;
        }
    }

    /// Files and bytes in all.
    pub fn announced(&self, direction: Direction) -> (u32, u64) {
        let tables = self.tables.borrow();
        let of = tables.iter().filter(|((way, _), _)| *way == direction).map(|(_, view)| view);
        of.fold((0, 0), |(files, bytes), view| (files + view.files, bytes + view.bytes))
    }

    pub fn tables(&self) -> Vec<(Direction, TableView)> {
        let tables = self.tables.borrow();
        tables.iter().map(|((direction, _), view)| (*direction, *view)).collect()
    }
}
