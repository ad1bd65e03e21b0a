//! How the node becomes a part of the ring.

use std::net::{IpAddr, SocketAddr};

use super::Get;
use crate::error::Result;
use crate::section::{Joining, Replaces, TokenAllocation, TokenMethod};

/// The key that may stay set once the node has its data, and the one that may not.
const REPLACE: &str = "replace_address";
const REPLACE_FIRST: &str = "replace_address_first_boot";

impl Get<'_> {
    pub fn joining(&self) -> Result<Joining> {
        let of = |key| -> Result<_> { Ok(self.replaced(key)?.map(|address| (address, key))) };
        let replaced = of(REPLACE_FIRST)?.map_or_else(|| of(REPLACE), |first| Ok(Some(first)))?;
        Ok(Joining {
            bootstraps: self.bool("auto_bootstrap"),
            tokens: self.token_allocation()?,
            at_start: self.bool("join_ring"),
            surveys_writes: self.bool("write_survey"),
            is_consistent: self.bool("consistent_rangemovement"),
            replaces: replaced.map(|(address, key)| Replaces {
                address,
                at_first_start_only: key == REPLACE_FIRST,
            }),
        })
    }

    fn token_allocation(&self) -> Result<TokenAllocation> {
        let name = "allocate_tokens_for_local_replication_factor";
        let local_replicas = self.some_count(name)?;
        if local_replicas == Some(0) {
            return self.refuse(name, "a keyspace has one replica at least");
        }
        Ok(TokenAllocation {
            method: match self.text("token_allocation").as_str() {
                "cassandra" => TokenMethod::Cassandra,
                "random" => TokenMethod::Random,
                _ => TokenMethod::Even,
            },
            keyspace: self.some_text("allocate_tokens_for_keyspace"),
            local_replicas,
        })
    }

    /// The address of a node, at `storage_port` where it says no port.
    fn replaced(&self, key: &str) -> Result<Option<SocketAddr>> {
        let Some(text) = self.some_text(key) else { return Ok(None) };
        let of_ip = |ip: IpAddr| SocketAddr::new(ip, self.port("storage_port"));
        let address = text.parse().or_else(|_| text.parse::<IpAddr>().map(of_ip));
        match address {
            Ok(address) => Ok(Some(address)),
            Err(_) => self.refuse(key, "it is not an IP address, with or without a port"),
        }
    }
}
