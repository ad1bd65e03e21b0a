//! What the operator sees of hints, and changes about them.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use admin::{Answer, Handoff, HandoffChange, HintedNode, PendingHints, Refusal};
use cluster::Shard;
use cluster::virtual_tables::PendingHints as Shown;
use types::{Address, Uuid};

use crate::node::Node;
use crate::operator::{Operations, failed};
use crate::ring_view::socket;

/// What is shown of a node that is in no ring.
const UNKNOWN: &str = "Unknown";

impl Operations {
    pub(crate) fn handoff_now(&self) -> Answer<Handoff> {
        let settings = self.shard()?.handoff().settings();
        Ok(Handoff {
            is_enabled: settings.is_enabled,
            disabled_datacenters: settings.disabled_datacenters,
            window_millis: u64::try_from(settings.window.as_millis()).unwrap_or(u64::MAX),
        })
    }

    pub(crate) fn change_handoff(&self, change: HandoffChange) -> Answer<()> {
        let shard = self.shard()?;
        let mut settings = shard.handoff().settings();
        match change {
            HandoffChange::Enabled(is_enabled) => settings.is_enabled = is_enabled,
            HandoffChange::Center(center, is_enabled) => {
                settings.disabled_datacenters.retain(|known| *known != center);
                if !is_enabled {
                    settings.disabled_datacenters.push(center);
                }
            }
            HandoffChange::Throttle(bytes) => settings.throttle = Some(bytes),
            HandoffChange::Window(millis) => settings.window = Duration::from_millis(millis),
        }
        shard.handoff().set_settings(&settings);
        Ok(())
    }

    pub(crate) fn hints_that_wait(&self) -> Answer<Vec<PendingHints>> {
        let pending = self.shard()?.handoff().pending().into_iter();
        let shown = |hints: cluster::PendingHints| PendingHints {
            host_id: hints.host.to_string(),
            node: hints.node.map(|node| HintedNode {
                address: socket(node.address),
                data_center: node.data_center.to_string(),
                rack: node.rack.to_string(),
                is_up: node.is_up,
            }),
            files: hints.files as u64,
            newest_millis: hints.newest,
            oldest_millis: hints.oldest,
        };
        Ok(pending.map(shown).collect())
    }

    pub(crate) async fn throw_hints_away(&self, address: Option<&str>) -> Answer<()> {
        let shard = self.shard()?;
        let host = match address {
            None => None,
            Some(address) => Some(self.host_at(shard, address)?),
        };
        shard.handoff().truncate(host).await.map(drop).map_err(failed)
    }

    fn host_at(&self, shard: &Shard, text: &str) -> Answer<Uuid> {
        let unknown = || Refusal::BadUse(format!("Can't delete hints for unknown address {text}"));
        let port = self.identity()?.storage_port;
        let text_of = text.trim_start_matches('/');
        let address = match text_of.parse::<SocketAddr>() {
            Ok(address) => Address::new(address.ip(), address.port()),
            Err(_) => {
                let ip = text_of.parse::<std::net::IpAddr>().map_err(|_| unknown())?;
                Address::new(ip, port)
            }
        };
        let ring = shard.peers().ring().ok_or_else(unknown)?;
        let node = ring.find(address).ok_or_else(unknown)?;
        Ok(ring.node(node).host_id)
    }
}

/// What `system_views.pending_hints` shows; on the first shard.
pub(crate) fn shown(node: &Rc<Node>) -> Vec<Shown> {
    let pending = node.shard().handoff().pending();
    let row = |hints: cluster::PendingHints| {
        let node = hints.node.as_ref();
        let name = |of: Option<&std::sync::Arc<str>>| of.map_or(UNKNOWN, |name| &**name).to_owned();
        Shown {
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
