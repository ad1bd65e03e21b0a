//! Where sessions are kept: `system.repairs` (`LocalSessions.save`, `LocalSessions.load`).

use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use repair::wire::SessionState;
use schema::TableId;
use types::{Address, Reader, TokenRange, Uuid, hex};

use super::session::LocalSession;
use crate::own_cql::{OwnCql, Row};
use crate::shard_context::ShardContext;

/// The table.
const TABLE: (&str, &str) = ("system", "repairs");

/// Keeps them.
pub(super) struct Store {
    shard: Rc<ShardContext>,
    cql: Rc<OwnCql>,
}

impl Store {
    pub fn new(shard: &Rc<ShardContext>, cql: &Rc<OwnCql>) -> Self {
        Self { shard: Rc::clone(shard), cql: Rc::clone(cql) }
    }

    /// All sessions that are kept. A row that makes no sense is left out.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub async fn load(&self) -> Result<Vec<LocalSession>, String> {
        let text = "SELECT parent_id, started_at, last_update, repaired_at, state, coordinator, \
                    coordinator_port, participants_wp, ranges, cfids FROM system.repairs";
        let rows = self.cql.run(text, &[]).await.map_err(|error| error.message)?;
        Ok(rows.iter().filter_map(session).collect())
    }

    /// Keeps a session; until the disk has it, where `is_durable` says so.
    ///
    /// # Errors
    /// If it cannot be kept.
    pub async fn save(&self, of: &LocalSession, is_durable: bool) -> Result<(), String> {
        let (id, coordinator) = (of.id, of.coordinator);
        let tables = of.tables.iter().map(|id| Uuid::from_bytes(id.0).to_string());
        let ranges = of.ranges.iter().map(|range| {
            let mut bytes = Vec::new();
            range.write(&mut bytes);
            format!("0x{}", hex::to_hex(&bytes))
        });
        let quoted = |text: String| format!("'{text}'");
        let ips = of.participants.iter().map(|node| quoted(node.ip.to_string()));
        let nodes = of.participants.iter().map(|node| quoted(node.to_string()));
        let statement = format!(
            "INSERT INTO system.repairs (parent_id, started_at, last_update, repaired_at, state, \
             coordinator, coordinator_port, participants, participants_wp, ranges, cfids) VALUES \
             ({id}, {}, {}, {}, {}, '{}', {}, {}, {}, {}, {})",
            of.started * 1000,
            of.updated * 1000,
            of.repaired_at,
            of.state.number(),
            coordinator.ip,
            coordinator.port,
            set(ips),
            set(nodes),
            set(ranges),
            set(tables)
        );
        self.cql.run(&statement, &[]).await.map_err(|error| error.message)?;
        if !is_durable || self.shard.env.planted("repair_promise_not_durable") {
            return Ok(());
        }
        let schema = self.shard.schema();
        let table = schema.table(TABLE.0, TABLE.1).map(|table| table.id);
        let (Some(table), Some(node)) = (table, self.shard.engine.node()) else {
            return Err("the node is stopping".to_owned());
        };
        node.flush(table).await.map(drop).map_err(|error| error.to_string())
    }

    /// Forgets a session.
    ///
    /// # Errors
    /// If it cannot be forgotten.
    pub async fn delete(&self, id: Uuid) -> Result<(), String> {
        let statement = format!("DELETE FROM system.repairs WHERE parent_id = {id}");
        self.cql.run(&statement, &[]).await.map(drop).map_err(|error| error.message)
    }
}

fn set(elements: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", elements.collect::<Vec<_>>().join(", "))
}

fn session(row: &Row) -> Option<LocalSession> {
    let uuid = |bytes: &[u8]| bytes.try_into().ok().map(Uuid::from_bytes);
    let int = |column| Some(i32::from_be_bytes(row.bytes(column)?.try_into().ok()?));
    let ip = |bytes: &[u8]| -> Option<IpAddr> {
        let four = <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from);
        four.or_else(|| <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from))
    };
    let address = |text: String| {
        let address: SocketAddr = text.parse().ok()?;
        Some(Address::new(address.ip(), address.port()))
    };
    let range = |bytes: Vec<u8>| TokenRange::read(&mut Reader::new(&bytes)).ok();
    let tables = row.elements(9).into_iter().map(|bytes| Some(TableId(bytes.try_into().ok()?)));
    Some(LocalSession {
        id: uuid(row.bytes(0)?)?,
        state: SessionState::of_number(int(4)?)?,
        coordinator: Address::new(ip(row.bytes(5)?)?, u16::try_from(int(6)?).ok()?),
        tables: tables.collect::<Option<_>>()?,
        repaired_at: row.long(3)?,
        ranges: row.elements(8).into_iter().map(range).collect::<Option<_>>()?,
        participants: row.texts(7).into_iter().map(address).collect::<Option<_>>()?,
        started: row.long(1)? / 1000,
        updated: row.long(2)? / 1000,
    })
}
