//! What virtual tables show of the node as a whole, gathered when one of them is read.

use std::cell::OnceCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use config::{Config, Timeouts};
use cql::CqlError;
use rows::PartitionUpdate;
use schema::Table;

use super::data::NodeData;
use crate::guardrails::Guardrails;
use crate::hints::Handoff;
use crate::shard_context::ShardContext;

/// What a node knows of itself; whoever composes it knows its parts.
pub trait Views {
    /// Gathers what the table of this name shows.
    fn gather(&self, table: &str) -> Pin<Box<dyn Future<Output = NodeData>>>;
    /// Forgets what `system_logs` shows; asked of the first shard.
    fn forget_logs(&self);
}

/// Tables that are made when they are read.
pub struct VirtualTables {
    shard: Rc<ShardContext>,
    handoff: Rc<Handoff>,
    guardrails: Rc<Guardrails>,
    /// Who knows what they show of the node.
    views: OnceCell<Box<dyn Views>>,
}

impl VirtualTables {
    pub(crate) fn new(
        shard: &Rc<ShardContext>,
        handoff: &Rc<Handoff>,
        guardrails: &Rc<Guardrails>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            handoff: Rc::clone(handoff),
            guardrails: Rc::clone(guardrails),
            views: OnceCell::new(),
        })
    }

    /// Forgets what `system_logs` shows; on the first shard.
    pub(crate) fn forget_logs(&self) {
        self.views.get().inspect(|views| views.forget_logs());
    }

    /// Lets virtual tables show what `views` gather.
    pub fn show(&self, views: Box<dyn Views>) {
        // told once, when the node is composed
        let _ = self.views.set(views);
    }

    /// The partitions of a virtual table, as of now.
    pub(crate) async fn partitions(&self, table: &Table) -> Result<Vec<PartitionUpdate>, CqlError> {
        let gathered = match self.views.get() {
            Some(views) if table.keyspace == "system_views" => views.gather(&table.name).await,
            _ => NodeData::default(),
        };
        let data = NodeData {
            settings: (table.name == "settings").then(|| self.settings()),
            // connections between nodes are not shown yet
            inbound: Some(Vec::new()),
            outbound: Some(Vec::new()),
            ..gathered
        };
        let now = self.shard.env.unix_micros();
        let partitions = super::partitions(table, &self.shard.schema(), &data, now);
        let name = || format!("{}.{}", table.keyspace, table.name);
        partitions.ok_or_else(|| CqlError::unsupported(name()))
    }

    /// The configuration with what the operator set since the start.
    pub fn settings(&self) -> Vec<(String, Option<String>)> {
        let (was, now) = (self.shard.config.timeouts, self.shard.timeouts());
        let timeouts = timeouts(&was, &now)
            .into_iter()
            .filter(|(_, was, now)| was != now)
            .map(|(key, _, now)| format!("{key}={}ms", now.as_millis()));
        let changed: Vec<String> =
            timeouts.chain(hints(&self.shard.config.hints, &self.handoff.settings())).collect();
        let current = self.guardrails.current_config();
        let mut config = Config::clone(&current);
        match config.set_all(changed.iter().map(String::as_str)) {
            Ok(()) => config.entries(),
            // below what may be configured, which the operator may set all the same
            Err(_) => current.entries(),
        }
    }
}

type Changed = (&'static str, std::time::Duration, std::time::Duration);

/// Timeouts by their keys: as configured, and as they are.
fn timeouts(was: &Timeouts, now: &Timeouts) -> [Changed; 9] {
    [
        ("read_request_timeout", was.read, now.read),
        ("range_request_timeout", was.range, now.range),
        ("write_request_timeout", was.write, now.write),
        ("counter_write_request_timeout", was.counter_write, now.counter_write),
        ("cas_contention_timeout", was.cas_contention, now.cas_contention),
        ("truncate_request_timeout", was.truncate, now.truncate),
        ("internode_tcp_connect_timeout", was.internode_connect, now.internode_connect),
        ("internode_tcp_user_timeout", was.internode_user, now.internode_user),
        ("request_timeout", was.other, now.other),
    ]
}

/// What the operator set of hints, by its keys.
fn hints(was: &config::Hints, now: &config::Hints) -> Vec<String> {
    let (enabled, window) = (now.is_enabled, now.window.as_millis());
    let centers = now.disabled_datacenters.join(", ");
    let throttle = now.throttle.unwrap_or_default() >> 10;
    let all = [
        (was.is_enabled != enabled, format!("hinted_handoff_enabled={enabled}")),
        (was.window != now.window, format!("max_hint_window={window}ms")),
        (was.throttle != now.throttle, format!("hinted_handoff_throttle={throttle}KiB")),
        (
            was.disabled_datacenters != now.disabled_datacenters,
            format!("hinted_handoff_disabled_datacenters=[{centers}]"),
        ),
    ];
    all.into_iter().filter(|(is_other, _)| *is_other).map(|(_, text)| text).collect()
}
