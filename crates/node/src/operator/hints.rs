//! Hints.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use admin::{Answer, Handoff, HandoffChange, HintedNode, HintsOperator, PendingHints, Refusal};
use types::{Address, Uuid};

use super::{Operations, failed};
use crate::addresses::socket;

impl Operations {
    /// The host ID of a node of the ring.
    fn host_at(&self, text: &str) -> Answer<Uuid> {
        let port = self.shard.identity().storage_port;
        let text_of = text.trim_start_matches('/');
        let is_ip = text_of.parse::<IpAddr>().is_ok();
        let unknown = || match is_ip {
            true => {
                let ip = SocketAddr::new(text_of.parse().unwrap_or(IpAddr::from([0; 4])), port);
                Refusal::BadUse(format!("Can't delete hints for unknown address /{ip}"))
            }
            false => Refusal::BadUse(format!("Can't delete hints for unknown address {text}")),
        };
        let address = match text_of.parse::<SocketAddr>() {
            Ok(address) => Address::new(address.ip(), address.port()),
            Err(_) => {
                let ip = text_of.parse::<IpAddr>().map_err(|_| unknown())?;
                Address::new(ip, port)
            }
        };
        let ring = self.shard.peers().ring().ok_or_else(unknown)?;
        let node = ring.find(address).ok_or_else(unknown)?;
        Ok(ring.node(node).host_id)
    }
}

impl HintsOperator for Operations {
    async fn handoff(&self) -> Answer<Handoff> {
        let settings = self.shard.handoff().settings();
        Ok(Handoff {
            is_enabled: settings.is_enabled,
            disabled_datacenters: settings.disabled_datacenters,
            window_millis: u64::try_from(settings.window.as_millis()).unwrap_or(u64::MAX),
        })
    }

    async fn set_handoff(&self, change: HandoffChange) -> Answer<()> {
        let mut settings = self.shard.handoff().settings();
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
        self.shard.handoff().set_settings(&settings);
        Ok(())
    }

    async fn pause_handoff(&self, is_paused: bool) -> Answer<()> {
        self.shard.handoff().pause(is_paused);
        Ok(())
    }

    async fn pending_hints(&self) -> Answer<Vec<PendingHints>> {
        let pending = self.shard.handoff().pending().into_iter();
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

    async fn truncate_hints(&self, address: Option<&str>) -> Answer<()> {
        let host = match address {
            None => None,
            Some(address) => Some(self.host_at(address)?),
        };
        self.shard.handoff().truncate(host).await.map(drop).map_err(failed)
    }
}
