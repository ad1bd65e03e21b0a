//! What clients wrote and deleted, what of it must be read, and what was repaired in time.
//!
//! A place is a register with rising numbers, which are its timestamps. A deletion is a number that
//! leaves nothing. So is what expires.
//!
//! What a quorum has of a deletion is purged after `gc_grace_seconds`. If no repair brought it to
//! the other replicas before, what it deleted may return: Cassandra says so. Then nothing is asked
//! of the place, until something later was acknowledged.
//!
//! One repair in time is enough where all are full. Where some are incremental, there is a way for
//! what is deleted to return after one: an older write that reaches a replica after the deletion
//! was set apart there, and is repaired when others have purged both. So there an incremental
//! repair is to follow once nothing older is under way any more, and nothing else is streamed.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use env::Instant;

/// Tables: the first with a short `gc_grace_seconds`.
pub const TABLES: [&str; 2] = ["s", "g"];
/// Partitions of each.
pub const KEYS: usize = 10;
/// Rows of each partition.
pub const ROWS: usize = 3;
/// Columns of each row.
pub const COLUMNS: [&str; 2] = ["a", "b"];

/// What was not answered may be done until then: by the write itself, or by a read that mends.
const UNDER_WAY: Duration = Duration::from_secs(12);
/// What was answered may reach the other replicas until then.
const STRAGGLES: Duration = Duration::from_secs(3);
/// Seconds are whole, and are not those of the client.
const INEXACT: Duration = Duration::from_secs(2);
/// So far the clock of a node may be ahead that was killed and started again: what expires does so
/// early there, and is purged early.
const EARLY: Duration = Duration::from_secs(12);

/// A column of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// Of [`TABLES`].
    pub table: usize,
    /// The partition.
    pub key: usize,
    /// The row.
    pub row: usize,
    /// Of [`COLUMNS`].
    pub column: usize,
}

impl Spot {
    /// All of a partition.
    pub fn of_key(table: usize, key: usize) -> impl Iterator<Item = Self> {
        let columns = move |row| (0..COLUMNS.len()).map(move |column| (row, column));
        let cells = (0..ROWS).flat_map(columns);
        cells.map(move |(row, column)| Self { table, key, row, column })
    }
}

/// A write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write {
    /// That stays.
    Put,
    /// That expires after so long.
    Expiring(Duration),
    /// That deletes.
    Delete,
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A quorum acknowledged it.
    AtQuorum,
    /// One replica did.
    AtOne,
    /// It may be done or not.
    Unknown,
}

/// A number that leaves nothing, or will.
#[derive(Clone, Debug)]
struct Gone {
    is_deletion: bool,
    /// From when on nobody has it who does not have it yet.
    settled: Instant,
    /// It may be gone.
    from: Instant,
    /// It is gone.
    by: Instant,
    /// It may be purged.
    purged_from: Instant,
    /// A repair brought it to all replicas in time.
    is_everywhere: bool,
    /// And one set all apart that it deletes.
    is_set_apart: bool,
}

#[derive(Clone, Debug, Default)]
struct Register {
    tried: i64,
    at_quorum: i64,
    at_one: i64,
    gone: BTreeMap<i64, Gone>,
}

impl Register {
    /// Is nothing asked of it?
    fn is_void(&self, floor: i64, now: Instant, needs_both: bool) -> bool {
        self.gone.range(floor..).any(|(_, gone)| {
            let is_safe = gone.is_everywhere && (gone.is_set_apart || !needs_both);
            !is_safe && gone.purged_from <= now
        })
    }

    /// What is wrong with a value that was read between two moments?
    fn wrong(
        &self,
        floor: i64,
        value: Option<i64>,
        began: Instant,
        now: Instant,
    ) -> Option<String> {
        match value {
            Some(number) => {
                let gone = self.gone.get(&number);
                if number > self.tried || gone.is_some_and(|gone| gone.is_deletion) {
                    return Some(format!("{number}, which was never written"));
                }
                if gone.is_some_and(|gone| gone.by < began) {
                    return Some(format!("{number}, which expired"));
                }
                (number < floor).then(|| format!("{number} instead of {floor}"))
            }
            None => {
                let explains = |gone: &Gone| gone.from <= now;
                let is_gone = floor == 0 || self.gone.range(floor..).any(|(_, it)| explains(it));
                (!is_gone).then(|| format!("nothing instead of {floor}"))
            }
        }
    }
}

/// What is known of all places.
pub struct Data {
    registers: RefCell<BTreeMap<Spot, Register>>,
    /// `gc_grace_seconds`, by table.
    grace: [Duration; TABLES.len()],
    /// Are repairs incremental, and full ones too?
    needs_both: bool,
    /// What is under way to a partition, and until when something else may be.
    busy: RefCell<BTreeMap<(usize, usize), (u32, Instant)>>,
    /// When all has expired.
    expired_at: Cell<Instant>,
}

/// A repair that succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Repaired {
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Was it incremental, and did no full repair stream meanwhile or shortly before?
    pub sets_apart: bool,
}

impl Data {
    /// Nothing is written.
    pub fn new(grace: [Duration; TABLES.len()], needs_both: bool) -> Self {
        Self {
            registers: RefCell::default(),
            grace,
            needs_both,
            busy: RefCell::default(),
            expired_at: Cell::default(),
        }
    }

    /// Something goes to a partition.
    pub fn goes(&self, of: (usize, usize)) {
        self.busy.borrow_mut().entry(of).or_default().0 += 1;
    }

    /// It came back, if `is_answered`.
    pub fn came(&self, of: (usize, usize), is_answered: bool, now: Instant) {
        let mut busy = self.busy.borrow_mut();
        let (count, until) = busy.entry(of).or_default();
        *count -= 1;
        let rest = if is_answered { STRAGGLES } else { UNDER_WAY + STRAGGLES };
        *until = (*until).max(now + rest);
    }

    /// Is nothing under way to a partition? Deletions are for such: no replica may have an older
    /// write to come.
    pub fn is_quiet(&self, of: (usize, usize), now: Instant) -> bool {
        let busy = self.busy.borrow();
        busy.get(&of).is_none_or(|(count, until)| *count == 0 && *until <= now)
    }

    /// A write begins; its number.
    pub fn write(&self, spots: &[Spot], write: Write, now: Instant) -> i64 {
        let mut registers = self.registers.borrow_mut();
        let tried = |spot| registers.get(spot).map_or(0, |register| register.tried);
        let number = spots.iter().map(tried).max().unwrap_or(0) + 1;
        for spot in spots {
            let grace = self.grace[spot.table];
            let register = registers.entry(*spot).or_default();
            register.tried = number;
            let lives = match write {
                Write::Put => continue,
                Write::Expiring(lives) => lives,
                Write::Delete => Duration::ZERO,
            };
            let by = now + lives + UNDER_WAY + INEXACT;
            self.expired_at.set(self.expired_at.get().max(by));
            // one that expires is purged as if it had been deleted when it was written
            let purged_from = now + (grace.max(lives) - EARLY.min(grace.max(lives)));
            register.gone.insert(
                number,
                Gone {
                    is_deletion: write == Write::Delete,
                    settled: now + UNDER_WAY,
                    from: now + (lives - EARLY.min(lives)),
                    by,
                    purged_from,
                    is_everywhere: false,
                    is_set_apart: false,
                },
            );
        }
        number
    }

    /// It ended.
    pub fn written(&self, spots: &[Spot], number: i64, end: End, now: Instant) {
        let mut registers = self.registers.borrow_mut();
        for spot in spots {
            let register = registers.entry(*spot).or_default();
            match end {
                End::AtQuorum => {
                    register.at_quorum = register.at_quorum.max(number);
                    if let Some(gone) = register.gone.get_mut(&number) {
                        gone.settled = now;
                    }
                }
                End::AtOne => register.at_one = register.at_one.max(number),
                End::Unknown => {}
            }
        }
    }

    /// What a read at QUORUM shows at least that begins now.
    pub fn floor(&self, spot: Spot) -> i64 {
        self.registers.borrow().get(&spot).map_or(0, |register| register.at_quorum)
    }

    /// What is wrong with what was read? `floor`: when the read began.
    pub fn wrong(
        &self,
        spot: Spot,
        (floor, began): (i64, Instant),
        value: Option<i64>,
        now: Instant,
    ) -> Option<String> {
        let mut registers = self.registers.borrow_mut();
        let register = registers.entry(spot).or_default();
        let is_void = register.is_void(floor, now, self.needs_both);
        let asked = if is_void { 0 } else { floor };
        let wrong = register.wrong(asked, value, began, now)?;
        let gone = register.gone.get(&floor);
        Some(format!("{spot:?} is {wrong} ({gone:?})"))
    }

    /// What is wrong with what a replica has in the end? What one replica alone acknowledged was
    /// repaired by then too.
    pub fn wrong_in_the_end(&self, spot: Spot, value: Option<i64>, now: Instant) -> Option<String> {
        let floor = {
            let registers = self.registers.borrow();
            registers.get(&spot).map_or(0, |register| register.at_quorum.max(register.at_one))
        };
        self.wrong(spot, (floor, now), value, now)
    }

    /// May what was deleted there return?
    pub fn is_void(&self, spot: Spot, now: Instant) -> bool {
        let registers = self.registers.borrow();
        registers
            .get(&spot)
            .is_some_and(|it| it.is_void(it.at_quorum.max(it.at_one), now, self.needs_both))
    }

    /// Deletions that are purged, and must not undo themselves.
    pub fn purged(&self, now: Instant) -> u64 {
        let registers = self.registers.borrow();
        let is_purged = |register: &&Register| {
            let floor = register.at_quorum;
            let gone = register.gone.get(&floor);
            gone.is_some_and(|gone| gone.purged_from <= now)
                && !register.is_void(floor, now, self.needs_both)
        };
        registers.values().filter(is_purged).count() as u64
    }

    /// A repair of some partitions succeeded.
    pub fn repaired(&self, of: impl Fn(usize, usize) -> bool, repaired: Repaired) {
        let Repaired { began, ended, sets_apart } = repaired;
        for (spot, register) in self.registers.borrow_mut().iter_mut() {
            if !of(spot.table, spot.key) {
                continue;
            }
            for gone in register.gone.values_mut() {
                let is_in_time = gone.settled <= began && ended + INEXACT < gone.purged_from;
                gone.is_everywhere |= is_in_time;
                gone.is_set_apart |=
                    is_in_time && sets_apart && gone.settled + UNDER_WAY + STRAGGLES <= began;
            }
        }
    }

    /// When all has expired that was to.
    pub fn expired_at(&self) -> Instant {
        self.expired_at.get()
    }
}
