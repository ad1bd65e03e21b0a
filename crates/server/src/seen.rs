//! Which clients came of late, by version of the protocol (`transport.ProtocolVersionTracker`).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses that are remembered of a version; the ones not seen for longest go.
const ADDRESSES_MAX: usize = 100;

/// When a client was seen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenClient {
    /// Version of the protocol.
    pub version: u8,
    /// Its address.
    pub address: IpAddr,
    /// When it began its last connection, since 1970.
    pub at_unix_micros: i64,
}

/// Those of a shard.
#[derive(Debug, Default)]
pub(crate) struct SeenClients(RefCell<BTreeMap<u8, BTreeMap<IpAddr, i64>>>);

impl SeenClients {
    /// A client begins a connection.
    pub fn see(&self, version: u8, address: IpAddr, at_unix_micros: i64) {
        let mut all = self.0.borrow_mut();
        let of_version = all.entry(version).or_default();
        if of_version.len() >= ADDRESSES_MAX && !of_version.contains_key(&address) {
            let oldest = of_version.iter().min_by_key(|(_, at)| **at).map(|(ip, _)| *ip);
            oldest.map(|oldest| of_version.remove(&oldest));
        }
        of_version.insert(address, at_unix_micros);
    }

    /// All of them, by version and address.
    pub fn all(&self) -> Vec<SeenClient> {
        let all = self.0.borrow();
        let of_version = |(version, seen): (&u8, &BTreeMap<IpAddr, i64>)| {
            let version = *version;
            let client = move |(address, at): (&IpAddr, &i64)| SeenClient {
                version,
                address: *address,
                at_unix_micros: *at,
            };
            seen.iter().map(client).collect::<Vec<_>>()
        };
        all.iter().flat_map(of_version).collect()
    }

    /// Forgets them.
    pub fn forget(&self) {
        self.0.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_not_seen_for_longest_go() {
        let seen = SeenClients::default();
        for n in 0..ADDRESSES_MAX as i64 + 1 {
            seen.see(5, IpAddr::V4((n as u32).into()), n);
        }
        seen.see(4, IpAddr::V4(7.into()), 1);
        let all = seen.all();
        assert_eq!((all.len(), all[0].version, all[1].at_unix_micros), (ADDRESSES_MAX + 1, 4, 1));
        seen.forget();
        assert!(seen.all().is_empty());
    }
}
