//! What the clients of a ring know together, and the first thing that was wrong.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use env::Instant;

use super::definitions::Definitions;
use super::register::{Register, SHOWN_EARLY};

/// Keys whose columns are written and read at QUORUM.
pub const WIDE_KEYS: usize = 5;
/// Keys of each data centre that are written and read at LOCAL_QUORUM there.
pub const LOCAL_KEYS: usize = 2;
/// Keys of all kinds of `ring.r`.
pub const KEYS: usize = WIDE_KEYS + 2 * LOCAL_KEYS;
/// Columns of each.
pub const COLUMNS: [&str; 2] = ["a", "b"];
/// Keys that are counted at.
pub const COUNTED: usize = 2;
/// Keys that are written under conditions.
pub const CONDITIONED: usize = 1;
/// Keys that are written once at most.
pub const ONCE_MAX: usize = 60;
/// Pairs of keys that are written together.
pub const PAIRS: usize = 2;

/// A place that clients write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A column of a key of `ring.r`.
    Cell(usize, usize),
    /// A key of `ring.c`.
    Count(usize),
    /// A key of `ring.l`.
    Condition(usize),
    /// A key of `ring.p`.
    Half(usize),
    /// A key of `ring.h`, written once and read in the end alone.
    Once(usize),
}

impl Spot {
    fn index(self) -> usize {
        match self {
            Self::Cell(key, column) => key * COLUMNS.len() + column,
            Self::Count(key) => KEYS * COLUMNS.len() + key,
            Self::Condition(key) => KEYS * COLUMNS.len() + COUNTED + key,
            Self::Half(key) => KEYS * COLUMNS.len() + COUNTED + CONDITIONED + key,
            Self::Once(key) => KEYS * COLUMNS.len() + COUNTED + CONDITIONED + 2 * PAIRS + key,
        }
    }

    /// The statement that reads it.
    pub fn text(self) -> String {
        match self {
            Self::Cell(key, at) => format!("SELECT {} FROM ring.r WHERE k = {key}", COLUMNS[at]),
            Self::Count(key) => format!("SELECT n FROM ring.c WHERE k = {key}"),
            Self::Condition(key) => format!("SELECT n FROM ring.l WHERE k = {key}"),
            Self::Half(key) => format!("SELECT n FROM ring.p WHERE k = {key}"),
            Self::Once(key) => format!("SELECT n FROM ring.h WHERE k = {key}"),
        }
    }

    /// Its key in its table.
    pub fn key(self) -> usize {
        match self {
            Self::Cell(key, _)
            | Self::Count(key)
            | Self::Condition(key)
            | Self::Half(key)
            | Self::Once(key) => key,
        }
    }

    /// All of them but those that are written once.
    pub fn all() -> impl Iterator<Item = Self> {
        let columns = |key| (0..COLUMNS.len()).map(move |column| Self::Cell(key, column));
        let cells = (0..KEYS).flat_map(columns);
        let others = (0..COUNTED).map(Self::Count).chain((0..CONDITIONED).map(Self::Condition));
        cells.chain(others).chain((0..2 * PAIRS).map(Self::Half))
    }
}

/// A number as a column has it, and back: digests of rows do not tell columns apart, as Cassandra's
/// do not, where both value and timestamp are the same.
pub fn value_in(column: usize, number: i64) -> i64 {
    if column == 0 { number } else { -number }
}

/// The data centre that a key of `ring.r` belongs to; none for those of all.
pub fn center_of(key: usize) -> Option<usize> {
    key.checked_sub(WIDE_KEYS).map(|of| of / LOCAL_KEYS)
}

/// What is known.
#[derive(Default)]
pub struct Model {
    registers: RefCell<BTreeMap<usize, Register>>,
    /// Conditional writes that were applied, by key and number.
    applied: RefCell<BTreeSet<(usize, i64)>>,
    /// What became of the schema.
    pub definitions: RefCell<Definitions>,
    /// The first thing that was wrong.
    wrong: RefCell<Option<String>>,
    counts: RefCell<BTreeMap<&'static str, u64>>,
    /// Operations that were answered as asked for.
    pub done: Cell<u64>,
    digest: Cell<u64>,
    /// What happened, if somebody wants to be told.
    story: RefCell<Option<Vec<String>>>,
    /// Keys of `ring.h`.
    pub written_once: Cell<usize>,
    /// The schema is to change no more.
    pub is_quiet: Cell<bool>,
    /// Clients are to end.
    pub is_over: Cell<bool>,
    /// Reads may show less than what was acknowledged, until the replicas are mended. See
    /// `elastic`.
    pub is_lax: Cell<bool>,
    /// What was read and not acknowledged may be lost: see `elastic`.
    pub shows_for_now: Cell<bool>,
    /// Since when they show all again.
    strict_since: Cell<Instant>,
}

impl Model {
    /// Does something with a register.
    pub fn with<T>(&self, spot: Spot, f: impl FnOnce(&mut Register) -> T) -> T {
        f(self.registers.borrow_mut().entry(spot.index()).or_default())
    }

    /// What a read of a place shows at least if it begins now.
    pub fn floor(&self, spot: Spot, now: Instant) -> (i64, Instant) {
        (self.with(spot, |register| register.floor()), now)
    }

    /// A read of a place that began when the floor was `floor` shows this.
    pub fn read(
        &self,
        spot: Spot,
        floor: (i64, Instant),
        value: Option<i64>,
        now: Instant,
        how: &str,
    ) {
        self.fold(value.unwrap_or(-1).cast_unsigned());
        self.tell(now, || format!("{spot:?} read {how}: {value:?}, at least {floor:?}"));
        let is_lax = self.is_lax.get() || floor.1 < self.strict_since.get();
        let floor = if is_lax { (0, floor.1) } else { floor };
        let read = self.with(spot, |register| {
            let read = register.read(floor, value, now);
            if self.shows_for_now.get() {
                register.forget_shown();
            }
            read
        });
        if let Err(why) = read {
            self.fail(format!("{spot:?} read {how} at {now:?}: {why}"));
        }
    }

    /// A conditional write was applied.
    pub fn apply(&self, key: usize, number: i64) {
        if !self.applied.borrow_mut().insert((key, number)) && !self.is_lax.get() {
            self.fail(format!("condition of {key}: two were applied that made it {number}"));
        }
    }

    /// Time has passed. `bad_since`: since when a disk keeps nothing.
    pub fn settle(&self, now: Instant, bad_since: Option<Instant>) {
        let until = bad_since.map_or(now, |bad| bad.min(now)) - SHOWN_EARLY;
        for register in self.registers.borrow_mut().values_mut() {
            register.settle(now, until);
        }
    }

    /// A node ends without having had time to.
    pub fn ended(&self, node: usize, at: Instant) {
        for register in self.registers.borrow_mut().values_mut() {
            register.ended(node, at);
        }
    }

    /// The replicas are mended: reads that begin from now on show all.
    pub fn be_strict(&self, now: Instant) {
        self.is_lax.set(false);
        self.strict_since.set(now);
    }

    /// What was counted until now may be lost.
    pub fn forgive_counts(&self) {
        (0..COUNTED).for_each(|key| self.with(Spot::Count(key), Register::forgive));
    }

    /// Something is wrong.
    pub fn fail(&self, what: String) {
        self.wrong.borrow_mut().get_or_insert(what);
    }

    /// What was wrong first.
    pub fn wrong(&self) -> Result<(), String> {
        self.wrong.borrow().clone().map_or(Ok(()), Err)
    }

    /// Something was done.
    pub fn count(&self, name: &'static str) {
        *self.counts.borrow_mut().entry(name).or_default() += 1;
    }

    /// How often what was done.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.borrow().clone()
    }

    /// Somebody wants to be told what happens.
    pub fn be_told(&self) {
        self.story.borrow_mut().get_or_insert_default();
    }

    /// Notes what happens, if somebody wants to be told.
    pub fn tell(&self, now: Instant, what: impl FnOnce() -> String) {
        if let Some(story) = &mut *self.story.borrow_mut() {
            story.push(format!("{now:?} {}", what()));
        }
    }

    /// What happened.
    pub fn story(&self) -> Vec<String> {
        self.story.take().unwrap_or_default()
    }

    fn fold(&self, fact: u64) {
        let mixed = (self.digest.get() ^ fact).wrapping_mul(0x0000_0100_0000_01b3);
        self.digest.set(mixed ^ (mixed >> 29));
    }

    /// Stands for what was read.
    pub fn digest(&self) -> u64 {
        self.digest.get()
    }
}
