//! What a node must be able to tell and do for its operator, by domain: one method a fact, typed;
//! how it is printed is the matter of [`crate::nodetool`].

mod access;
mod caches;
mod compaction;
mod hints;
mod network;
mod node;
mod repair;
mod request_logs;
mod ring;
mod samples;
mod settings;
mod snapshots;
mod sstables;
mod tables;

pub use access::{AccessOperator, RoleCache};
pub use caches::{CacheName, CachesOperator};
pub use compaction::{CompactionOperator, StopWhich};
pub use hints::{HandoffChange, HintsOperator};
pub use network::NetworkOperator;
pub use node::NodeOperator;
pub use repair::{REPAIR_EVENTS_WAIT, RepairOperator};
pub use request_logs::RequestLogsOperator;
pub use ring::RingOperator;
pub use samples::SamplesOperator;
pub use settings::SettingsOperator;
pub use snapshots::{NewSnapshot, Snapshots, SnapshotsOperator};
pub use sstables::{NewImport, SSTablesOperator, Scrub, Verify};
pub use tables::TablesOperator;

use crate::model::Refusal;

/// An answer of an [`Operator`].
pub type Answer<T> = Result<T, Refusal>;

/// The node, as its operator meets it; implemented where the node is composed, domain by domain.
/// Called on one shard.
pub trait Operator:
    AccessOperator
    + CachesOperator
    + CompactionOperator
    + HintsOperator
    + NetworkOperator
    + NodeOperator
    + RepairOperator
    + RequestLogsOperator
    + RingOperator
    + SamplesOperator
    + SettingsOperator
    + SnapshotsOperator
    + SSTablesOperator
    + TablesOperator
    + 'static
{
}

impl<T> Operator for T where
    T: AccessOperator
        + CachesOperator
        + CompactionOperator
        + HintsOperator
        + NetworkOperator
        + NodeOperator
        + RepairOperator
        + RequestLogsOperator
        + RingOperator
        + SamplesOperator
        + SettingsOperator
        + SnapshotsOperator
        + SSTablesOperator
        + TablesOperator
        + 'static
{
}
