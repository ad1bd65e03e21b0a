//! `system_views.pending_hints`.

use cluster::Shard;
use cluster::virtual_tables::PendingHints;

use crate::addresses::socket;

/// What is shown of a node that is in no ring.
const UNKNOWN: &str = "Unknown";

/// The hints that wait; on the first shard.
pub(super) fn pending_hints(shard: &Shard) -> Vec<PendingHints> {
    let pending = shard.handoff().pending();
    let row = |hints: cluster::PendingHints| {
        let node = hints.node.as_ref();
        let name = |of: Option<&std::sync::Arc<str>>| of.map_or(UNKNOWN, |name| &**name).to_owned();
        PendingHints {
            host_id: hints.host.to_bytes(),
            address: node.map(|node| socket(node.address)),
            datacenter: name(node.map(|node| &node.data_center)),
            rack: name(node.map(|node| &node.rack)),
            status: match node.map(|node| node.is_up) {
                Some(true) => "UP",
                Some(false) => "DOWN",
                None => UNKNOWN,
            },
            files: i32::try_from(hints.files).unwrap_or(i32::MAX),
            newest: hints.newest,
            oldest: hints.oldest,
        }
    };
    pending.into_iter().map(row).collect()
}
