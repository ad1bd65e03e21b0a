//! What is remembered of repairs that this node coordinated, in `system_distributed`
//! (`SystemDistributedKeyspace`). A repair does not fail for it.

use std::collections::BTreeMap;
use std::rc::Rc;

use metrics::Level;
use types::{Address, Uuid};

use super::neighbors::{CommonRange, shown};
use crate::own_cql::OwnCql;
use crate::peers::Peers;
use types::TokenRange;

/// Writes it.
pub(super) struct History {
    cql: Rc<OwnCql>,
    peers: Rc<Peers>,
}

impl History {
    pub fn new(cql: &Rc<OwnCql>, peers: &Rc<Peers>) -> Self {
        Self { cql: Rc::clone(cql), peers: Rc::clone(peers) }
    }

    async fn write(&self, statement: String, values: &[&str]) {
        if let Err(error) = self.cql.run(&statement, values).await {
            let why = error.message;
            let text = format!("cannot write the history of a repair to system_distributed: {why}");
            self.peers.note(Level::Warn, text);
        }
    }

    /// A repair begins.
    pub async fn begun(
        &self,
        parent: Uuid,
        (keyspace, tables): (&str, &[String]),
        ranges: &[TokenRange],
        options: &BTreeMap<String, String>,
    ) {
        let each = options.iter().map(|(name, value)| format!("{}: {}", text(name), text(value)));
        let options = each.collect::<Vec<_>>().join(", ");
        self.write(
            format!(
                "INSERT INTO system_distributed.parent_repair_history (parent_id, keyspace_name, \
                 columnfamily_names, requested_ranges, started_at, options) VALUES ({parent}, {}, \
                 {}, {}, to_timestamp(now()), {{{options}}})",
                text(keyspace),
                texts(tables.iter().cloned()),
                texts(ranges.iter().map(|range| shown(*range)))
            ),
            &[],
        )
        .await;
    }

    /// It came to its end.
    pub async fn succeeded(&self, parent: Uuid, ranges: &[TokenRange]) {
        self.write(
            format!(
                "UPDATE system_distributed.parent_repair_history SET finished_at = \
                 to_timestamp(now()), successful_ranges = {} WHERE parent_id = {parent}",
                texts(ranges.iter().map(|range| shown(*range)))
            ),
            &[],
        )
        .await;
    }

    /// It failed.
    pub async fn failed(&self, parent: Uuid, why: &str) {
        self.write(
            format!(
                "UPDATE system_distributed.parent_repair_history SET finished_at = \
                 to_timestamp(now()), exception_message = ?, exception_stacktrace = ? WHERE \
                 parent_id = {parent}"
            ),
            &[why, why],
        )
        .await;
    }

    /// A session begins on a table.
    pub async fn session_begun(
        &self,
        (session, parent): (Uuid, Uuid),
        (keyspace, table): (&str, &str),
        local: Address,
        of: &CommonRange,
    ) {
        // of several ranges Cassandra keeps the last, as they have one key
        let Some(range) = of.ranges.last() else { return };
        let (ip, port) = (local.ip, local.port);
        self.write(
            format!(
                "INSERT INTO system_distributed.repair_history (keyspace_name, columnfamily_name, \
                 id, parent_id, range_begin, range_end, coordinator, coordinator_port, \
                 participants, participants_v2, status, started_at) VALUES ({}, {}, {session}, \
                 {parent}, '{}', '{}', '{ip}', {port}, {}, {}, 'STARTED', to_timestamp(now()))",
                text(keyspace),
                text(table),
                range.left,
                range.right,
                texts(of.nodes.iter().map(|node| node.ip.to_string())),
                texts(of.nodes.iter().map(|node| node.to_string()))
            ),
            &[],
        )
        .await;
    }

    /// It ended there.
    pub async fn session_ended(
        &self,
        session: Uuid,
        (keyspace, table): (&str, &str),
        failed: Option<&str>,
    ) {
        let key = format!(
            "keyspace_name = {} AND columnfamily_name = {} AND id = {session}",
            text(keyspace),
            text(table)
        );
        let statement = "UPDATE system_distributed.repair_history SET status =";
        let now = "finished_at = to_timestamp(now())";
        match failed {
            None => self.write(format!("{statement} 'SUCCESS', {now} WHERE {key}"), &[]).await,
            Some(why) => {
                let failure = "exception_message = ?, exception_stacktrace = ?";
                let statement = format!("{statement} 'FAILED', {now}, {failure} WHERE {key}");
                self.write(statement, &[why, why]).await;
            }
        }
    }
}

/// A text as CQL has it.
fn text(of: &str) -> String {
    format!("'{}'", of.replace('\'', "''"))
}

/// A set of texts.
fn texts(all: impl Iterator<Item = String>) -> String {
    let each: Vec<_> = all.map(|of| text(&of)).collect();
    format!("{{{}}}", each.join(", "))
}
