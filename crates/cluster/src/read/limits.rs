//! Limits of what reads go over and of what they give (`service.reads.thresholds`,
//! `SelectStatement.maybeFail`).

use std::net::SocketAddr;
use std::sync::Arc;

use config::ReadSizes;
use cql::select::{PageRequest, RangeBound, Read, Select, Target};
use protocol::{Consistency, ErrorResponse, FailureReason};
use schema::Table;
use storage::PartitionKey;
use types::{Token, maybe_quote};

use super::Reads;
use crate::binding::Now;
use crate::read::page::Merged;
use crate::read::shard::{Over, Task};
use crate::request::Request;
use crate::ring_read::RingRead;
use crate::scanned::{Command, Excess, Scanned};
use crate::values::Bound as Bindings;

/// The length before each cell.
const CELL_LENGTH: u64 = 4;

/// Answers that came and answers that were wanted, where this node reads alone.
const BY_ITSELF: (i32, i32) = (0, 1);

/// What a client is warned of; what replicas had to say comes last.
#[derive(Default)]
pub(super) struct Warnings {
    pub first: Vec<String>,
    tracked: Vec<String>,
}

impl Warnings {
    pub fn all(mut self) -> Vec<String> {
        self.first.append(&mut self.tracked);
        self.first
    }

    /// Warns of what one read of a partition, or of a range up to its last one, went over.
    pub fn of_command(&mut self, task: &Task, key: &PartitionKey, scanned: Scanned) {
        if !task.thresholds.warns(scanned) {
            return;
        }
        let warnings = task.thresholds.warnings(scanned, &command(task, Some(key)));
        match task.thresholds.are_tracked {
            true => self.tracked.extend(warnings),
            false => self.first.extend(warnings),
        }
    }
}

impl Warnings {
    /// Warns of what replicas went over.
    pub fn of_ring(&mut self, task: &Task, ring: &RingRead) {
        for (key, told) in ring.told() {
            let messages = told.messages(&ring.thresholds, command(task, key.as_ref()));
            match ring.thresholds.are_tracked {
                true => self.tracked.extend(messages),
                false => self.first.extend(messages),
            }
        }
    }
}

/// The read of a partition, or of all of a range.
pub(crate) fn command(task: &Task, key: Option<&PartitionKey>) -> Command {
    let token = key.map_or(Token(i64::MIN), |key| key.token);
    let key = key.filter(|_| matches!(task.read.target, Target::Keys(_)));
    let key = key.map(|key| cql::select::PartitionKey { token, bytes: key.bytes.clone() });
    let tokens = match (&key, &task.read.target) {
        (None, Target::Range { from, to }) => range(from, to, true),
        _ => format!("token={}", token.0),
    };
    Command { text: task.select.command_text(&task.read, key.as_ref()), tokens, token }
}

/// A range of the ring as messages show it: its start is never of it, unless a page begins in a
/// partition.
fn range(from: &RangeBound, to: &RangeBound, is_closed: bool) -> String {
    let token = |bound: &RangeBound| match bound {
        RangeBound::Unbounded => i64::MIN,
        RangeBound::Token { token, .. } => token.0,
        RangeBound::Key { key, .. } => key.token.0,
    };
    let open = if matches!(from, RangeBound::Key { inclusive: true, .. }) { '[' } else { '(' };
    let close = if is_closed { ']' } else { ')' };
    format!("token range: {open}{}, {}{close}", token(from), token(to))
}

/// What a statement is restricted to.
fn tokens(read: &Read, table: &Table) -> String {
    match &read.target {
        Target::Range { from: RangeBound::Unbounded, to: RangeBound::Unbounded }
            if table.is_virtual() =>
        {
            "token range: (, )".to_owned()
        }
        Target::Range { from, to } => {
            let is_all = matches!((from, to), (RangeBound::Unbounded, RangeBound::Unbounded));
            range(from, to, !is_all)
        }
        Target::Keys(keys) => match keys.as_slice() {
            [key] => format!("token: {}", key.token.0),
            keys => {
                let all: Vec<_> = keys.iter().map(|key| key.token.0.to_string()).collect();
                format!("tokens: [{}]", all.join(", "))
            }
        },
    }
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// How large a result is.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// Bytes of its values.
    all: u64,
    /// Without those of the last row, which nothing follows.
    before_last: u64,
}

impl Size {
    /// Of rows of so many columns.
    pub fn of(merged: &Merged, columns: usize) -> Self {
        let lengths = |rows: u32| CELL_LENGTH * u64::from(rows) * columns as u64;
        let (left_rows, left_bytes) = merged.left_out;
        let left_out = (left_bytes as u64).saturating_sub(lengths(left_rows));
        let size = |bytes: usize, rows| left_out + (bytes as u64).saturating_sub(lengths(rows));
        Self {
            all: size(merged.cells.len(), merged.rows),
            before_last: size(merged.last_row, merged.rows.saturating_sub(1)),
        }
    }

    /// Of an aggregation's one row.
    pub fn of_row(cells: &[u8], columns: usize) -> Self {
        let all = (cells.len() as u64).saturating_sub(CELL_LENGTH * columns as u64);
        Self { all, before_last: 0 }
    }
}

impl Reads {
    fn failure(&self, reason: FailureReason) -> [(SocketAddr, FailureReason); 1] {
        [(SocketAddr::new(self.shard.identity.broadcast, self.shard.identity.storage_port), reason)]
    }

    /// The answer to a read that went over too much.
    pub(super) fn aborted(
        &self,
        over: &Over,
        task: &Task,
        consistency: Consistency,
        warnings: &mut Warnings,
    ) -> ErrorResponse {
        let thresholds = &task.thresholds;
        let failures = self.failure(match over.excess {
            Excess::Tombstones => FailureReason::ReadTooManyTombstones,
            Excess::Bytes => FailureReason::ReadSize,
        });
        if !thresholds.are_tracked {
            return ErrorResponse::read_failure(consistency, 0, 1, false, &failures);
        }
        over.before.iter().for_each(|(key, scanned)| warnings.of_command(task, key, *scanned));
        let command = command(task, over.key.as_ref());
        let why = thresholds.abortion(over.excess, over.scanned, &command);
        warnings.tracked.push(format!("{why} with {}", command.tokens));
        ErrorResponse::read_aborted(consistency, BY_ITSELF, false, &why, &failures)
    }

    /// The answer to a read without pages whose result would take too much memory.
    pub(super) fn unpaged_too_large(
        &self,
        table: &Table,
        bytes_max: usize,
        consistency: Consistency,
    ) -> ErrorResponse {
        let name = format!("{}.{}", maybe_quote(&table.keyspace), maybe_quote(&table.name));
        let most = grouped(bytes_max as u64);
        let why = format!(
            "Read on table {name} has a result of more than {most} bytes: read it in pages"
        );
        let failures = self.failure(FailureReason::ReadSize);
        ErrorResponse::read_aborted(consistency, BY_ITSELF, true, &why, &failures)
    }

    /// What a statement is restricted to, whatever page of it is read.
    pub(super) fn restricted_to(
        &self,
        select: &Select,
        values: &Bindings<'_>,
        request: &Request<'_>,
        now: &Now,
    ) -> String {
        // who watches over the request has seen this
        let request = Request { guard: Default::default(), ..request.clone() };
        let all = PageRequest { size: None, after: None };
        let read = self.binder.with_bind(values, &request, now, |bind| select.bind(&bind, &all));
        read.map(|read| tokens(&read, select.table())).unwrap_or_default()
    }

    /// Warns of a result that is large, or refuses it.
    pub(super) fn check_size(
        &self,
        size: Size,
        sizes: ReadSizes,
        table: &Arc<Table>,
        of: impl FnOnce() -> String,
        consistency: Consistency,
        warnings: &mut Warnings,
    ) -> Result<(), ErrorResponse> {
        let name = format!("{}.{}", maybe_quote(&table.keyspace), maybe_quote(&table.name));
        let passed = |what: &str, limit: u64, of: String| {
            let limit = grouped(limit);
            format!(
                "Read on table {name} has exceeded the size {what} threshold of {limit} bytes with {of}"
            )
        };
        let [warn, fail] = sizes.coordinator;
        if let Some(limit) = fail.filter(|limit| size.before_last > *limit) {
            let why = passed("failure", limit, of());
            let failures = self.failure(FailureReason::ReadSize);
            let refused =
                ErrorResponse::read_aborted(consistency, BY_ITSELF, true, &why, &failures);
            warnings.first.push(why);
            return Err(refused);
        }
        if let Some(limit) = warn.filter(|limit| size.all > *limit) {
            warnings.first.push(passed("warning", limit, of()));
        }
        Ok(())
    }
}
