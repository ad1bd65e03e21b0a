//! Where the node listens, and by which addresses others know it.

use std::net::{IpAddr, Ipv4Addr};

use super::Get;
use crate::error::Result;
use crate::section::Host;

impl Get<'_> {
    pub fn some_host(&self, name: &str) -> Result<Option<Host>> {
        let Some(text) = self.some_text(name) else { return Ok(None) };
        if text.is_empty() || text.contains(char::is_whitespace) {
            return self.refuse(name, "it is not an address or a host name");
        }
        let host = match text.parse() {
            Ok(ip) => Host::Ip(ip),
            Err(_) if text == "localhost" => Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Err(_) => Host::Name(text),
        };
        let may_be_any = matches!(name, "rpc_address" | "metrics_address" | "admin_address");
        if is_any(&host) && !may_be_any {
            return self.refuse(name, "it cannot be a wildcard address");
        }
        Ok(Some(host))
    }

    pub fn host(&self, name: &str) -> Result<Host> {
        Ok(self.some_host(name)?.unwrap_or(Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST))))
    }

    pub fn broadcast(&self, listen: &Host) -> Result<Host> {
        Ok(self.some_host("broadcast_address")?.unwrap_or_else(|| listen.clone()))
    }

    pub fn broadcast_rpc(&self, rpc: &Host) -> Result<Host> {
        match self.some_host("broadcast_rpc_address")? {
            Some(host) => Ok(host),
            None if is_any(rpc) => self.refuse(
                "rpc_address",
                "with a wildcard address, set broadcast_rpc_address to an address that clients \
                 reach",
            ),
            None => Ok(rpc.clone()),
        }
    }

    /// `listen_address` and `rpc_address`, or the interfaces that stand in their place.
    pub fn own_hosts(&self) -> Result<[Host; 2]> {
        Ok([self.own_host("listen")?, self.own_host("rpc")?])
    }

    fn own_host(&self, of: &str) -> Result<Host> {
        let (address, interface) = (format!("{of}_address"), format!("{of}_interface"));
        let Some(name) = self.some_text(&interface) else { return self.host(&address) };
        if self.some_text(&address).is_some() {
            let why = format!("Set {address} OR {interface}, not both");
            return self.refuse(&interface, why);
        }
        let prefers_ipv6 = self.bool(&format!("{interface}_prefer_ipv6"));
        Ok(Host::Interface { name, prefers_ipv6 })
    }
}

fn is_any(host: &Host) -> bool {
    matches!(host, Host::Ip(ip) if ip.is_unspecified())
}
