//! CQL of the node's own, which nobody has to be allowed.

use std::cell::OnceCell;
use std::rc::Rc;

use cql::Plan;
use protocol::{Consistency, ErrorResponse, QueryOptions, Value, Version};

use crate::answer::{Answer, cql_error, parse_error, server_error};
use crate::peers::Peers;
use crate::prepared::result_metadata;
use crate::read::Reads;
use crate::request::Request;
use crate::shard_context::ShardContext;
use crate::values::Bound;
use crate::write::Writes;

/// The keyspace of roles and rights.
const ROLES: &str = "system_auth";
/// The role that a new ring has: who asks for it asks a quorum, whatever is set.
const FIRST_ROLE: &str = "cassandra";

/// A row: the bytes of its columns.
pub(crate) struct Row(Vec<Option<Vec<u8>>>);

impl Row {
    pub fn bytes(&self, column: usize) -> Option<&[u8]> {
        self.0.get(column)?.as_deref()
    }

    pub fn text(&self, column: usize) -> Option<String> {
        String::from_utf8(self.bytes(column)?.to_vec()).ok()
    }

    pub fn bool(&self, column: usize) -> bool {
        self.bytes(column) == Some(&[1])
    }

    pub fn long(&self, column: usize) -> Option<i64> {
        Some(i64::from_be_bytes(self.bytes(column)?.try_into().ok()?))
    }

    /// The elements of a collection, in order; those of a map are keys and values in turn.
    pub fn elements(&self, column: usize) -> Vec<Vec<u8>> {
        let Some(mut rest) = self.bytes(column).and_then(|bytes| bytes.get(4..)) else {
            return Vec::new();
        };
        let mut elements = Vec::new();
        while let Some((element, after)) = take(rest) {
            elements.extend(element.map(<[u8]>::to_vec));
            rest = after;
        }
        elements
    }

    pub fn texts(&self, column: usize) -> Vec<String> {
        let elements = self.elements(column).into_iter();
        elements.filter_map(|bytes| String::from_utf8(bytes).ok()).collect()
    }

    /// The entries of a map.
    pub fn entries(&self, column: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut elements = self.elements(column).into_iter();
        std::iter::from_fn(|| Some((elements.next()?, elements.next()?))).collect()
    }
}

/// A value with its length before it, null where that is negative; and what follows.
fn take(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    match usize::try_from(i32::from_be_bytes(*length)) {
        Ok(length) => rest.split_at_checked(length).map(|(value, rest)| (Some(value), rest)),
        Err(_) => Some((None, rest)),
    }
}

/// Runs statements in the node's own name.
pub(crate) struct OwnCql {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    reads: Rc<Reads>,
    writes: Rc<Writes>,
}

impl OwnCql {
    pub fn new(
        shard: &Rc<ShardContext>,
        peers: &Rc<Peers>,
        reads: &Rc<Reads>,
        writes: &Rc<Writes>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            reads: Rc::clone(reads),
            writes: Rc::clone(writes),
        })
    }

    /// The level of what the node asks in its own name (`AuthProperties`,
    /// `CassandraRoleManager.consistencyForRoleRead`): of roles and rights in a ring. One that is
    /// alone has all that there is, however many replicas are wanted.
    fn own_level(&self, plan: &Plan, values: &[&str]) -> Consistency {
        let is_of_roles = plan.tables().iter().any(|table| table.keyspace == ROLES);
        if self.peers.is_alone() || !is_of_roles {
            return Consistency::One;
        }
        if values.contains(&FIRST_ROLE) {
            return Consistency::Quorum;
        }
        let [read, write] = &self.shard.config.auth_levels;
        let level = if matches!(plan, Plan::Select(_)) { read } else { write };
        Consistency::from_name(level).unwrap_or(Consistency::Quorum)
    }

    /// Runs a SELECT, INSERT, UPDATE or DELETE in the node's own name.
    pub async fn run(&self, text: &str, values: &[&str]) -> Result<Vec<Row>, ErrorResponse> {
        let parsed = cql::parse(text).map_err(|error| parse_error(&error))?;
        let prepared = cql::prepare(&parsed, None, &self.shard.schema()).map_err(cql_error)?;
        let names = values;
        let values = values.iter().map(|value| Some(Value::Bytes(value.as_bytes())));
        let values = Bound::Ordered(values.collect());
        let consistency = self.own_level(&prepared.plan, names);
        let options = QueryOptions { consistency, ..QueryOptions::default() };
        let deadline = self.shard.env.now() + self.shard.timeouts().other;
        let request = Request {
            keyspace: None,
            version: Version::CURRENT,
            options: &options,
            deadline,
            user: None,
            tracing: None,
            guard: OnceCell::new(),
            observed: None,
            is_shard_aware: false,
        };
        let outcome = match &prepared.plan {
            Plan::Modify(modify) => self.writes.modify(modify, &values, &request).await,
            Plan::Select(select) => {
                self.reads.select(select, &values, &result_metadata(&prepared), &request).await
            }
            _ => return Err(server_error("an internal statement neither reads nor writes")),
        };
        let Answer::Rows(page) = outcome.result? else { return Ok(Vec::new()) };
        let columns = prepared.result.map_or(0, |columns| columns.len());
        let (mut rows, mut rest) = (Vec::new(), page.cells.as_slice());
        for _ in 0..page.rows {
            let mut row = Vec::with_capacity(columns);
            for _ in 0..columns {
                let (cell, after) = take(rest)
                    .ok_or_else(|| server_error("a row of an internal statement is cut off"))?;
                row.push(cell.map(<[u8]>::to_vec));
                rest = after;
            }
            rows.push(Row(row));
        }
        Ok(rows)
    }
}
