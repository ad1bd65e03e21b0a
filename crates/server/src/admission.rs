//! Who may come in: connections of the node, bytes of requests in flight of the shard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use protocol::Version;

use crate::rate::NextPermit;
use crate::settings::Settings;

/// Counts the node's connections, and its requests where their rate is limited. One for all shards:
/// it is asked when a connection opens or closes, and by a request only under such a limit.
#[derive(Clone, Debug, Default)]
pub struct ConnectionLimits {
    counts: Arc<Mutex<Counts>>,
    /// Of the limit of requests a second.
    pub(crate) next_permit: NextPermit,
}

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    by_ip: BTreeMap<IpAddr, u64>,
}

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Node,
    Ip,
}

impl ConnectionLimits {
    /// No connections yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Connections open on the node.
    pub fn open(&self) -> u64 {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).all
    }

    pub(crate) fn admit(&self, ip: IpAddr, settings: &Settings) -> Result<Permit, Refused> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if settings.max_connections.is_some_and(|limit| counts.all >= limit) {
            return Err(Refused::Node);
        }
        let of_ip = counts.by_ip.get(&ip).copied().unwrap_or(0);
        if settings.max_connections_per_ip.is_some_and(|limit| limit > 0 && of_ip >= limit) {
            return Err(Refused::Ip);
        }
        counts.all += 1;
        counts.by_ip.insert(ip, of_ip + 1);
        drop(counts);
        Ok(Permit { limits: self.clone(), ip })
    }
}

/// A connection's place; dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Permit {
    limits: ConnectionLimits,
    ip: IpAddr,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.limits.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all = counts.all.saturating_sub(1);
        if let Some(n) = counts.by_ip.get_mut(&self.ip) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                counts.by_ip.remove(&self.ip);
            }
        }
    }
}

/// Bytes of requests in flight on this shard: its share of the node's limits.
#[derive(Debug)]
pub(crate) struct InFlight {
    limit: u64,
    limit_per_ip: u64,
    all: Cell<u64>,
    by_ip: RefCell<BTreeMap<IpAddr, Rc<Cell<u64>>>>,
}

/// One client address's part of [`InFlight`], shared by its connections.
pub(crate) type OfIp = Rc<Cell<u64>>;

impl InFlight {
    pub fn new(settings: &Settings, shards: usize) -> Self {
        // A share must at least let one message of the largest size in.
        let least = u64::from(settings.max_frame_size.max(settings.max_message_size));
        let share = |bytes: u64| (bytes / shards.max(1) as u64).max(least.min(bytes));
        Self {
            limit: share(settings.max_in_flight),
            limit_per_ip: share(settings.max_in_flight_per_ip),
            all: Cell::new(0),
            by_ip: RefCell::default(),
        }
    }

    /// The account of an address.
    pub fn of(&self, ip: IpAddr) -> OfIp {
        Rc::clone(self.by_ip.borrow_mut().entry(ip).or_default())
    }

    /// A connection of the address has closed: forgets the account if that was the last.
    pub fn forget(&self, ip: IpAddr, account: OfIp) {
        drop(account);
        let mut by_ip = self.by_ip.borrow_mut();
        if by_ip.get(&ip).is_some_and(|it| Rc::strong_count(it) == 1) {
            by_ip.remove(&ip);
        }
    }

    pub fn all(&self) -> u64 {
        self.all.get()
    }

    /// Is there room for so many bytes more?
    pub fn fits(&self, account: &OfIp, bytes: u64) -> bool {
        self.all.get().saturating_add(bytes) <= self.limit
            && account.get().saturating_add(bytes) <= self.limit_per_ip
    }

    pub fn take(&self, account: &OfIp, bytes: u64) {
        self.all.set(self.all.get().saturating_add(bytes));
        account.set(account.get().saturating_add(bytes));
    }

    pub fn give_back(&self, account: &OfIp, bytes: u64) {
        self.all.set(self.all.get().saturating_sub(bytes));
        account.set(account.get().saturating_sub(bytes));
    }

    /// What an OVERLOADED error says, in Cassandra's words of before and after version 5.
    pub fn overloaded(&self, account: &OfIp, version: Version) -> String {
        let (ip, ip_limit) = (account.get(), self.limit_per_ip);
        let (all, limit) = (self.all.get(), self.limit);
        let usage = if version.is_segmented() {
            format!("Endpoint: {ip}/{ip_limit} bytes, Global: {all}/{limit} bytes.")
        } else {
            format!(
                "Using {ip}/{ip_limit} bytes of endpoint limit and {all}/{limit} bytes of global limit."
            )
        };
        format!(
            "Request breached limit on bytes in flight. ({usage})Server is currently in an \
             overloaded state and cannot accept more requests."
        )
    }

    /// The warning of a request that was let in above the limits.
    pub fn warning(&self) -> String {
        format!(
            "Request breached limit(s) on bytes in flight (Endpoint: {}, Global: {}) and triggered \
             backpressure.",
            self.limit_per_ip, self.limit
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        Settings::new("127.0.0.1:0".parse().unwrap())
    }

    #[test]
    fn connections_are_counted_per_node_and_address() {
        let settings =
            Settings { max_connections: Some(3), max_connections_per_ip: Some(2), ..settings() };
        let limits = ConnectionLimits::new();
        let (a, b): (IpAddr, IpAddr) = ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap());
        let first = limits.admit(a, &settings).unwrap();
        let _second = limits.admit(a, &settings).unwrap();
        assert_eq!(limits.admit(a, &settings).unwrap_err(), Refused::Ip);
        let third = limits.admit(b, &settings).unwrap();
        assert_eq!(limits.admit(b, &settings).unwrap_err(), Refused::Node);
        drop(first);
        drop(third);
        assert_eq!(limits.open(), 1);
        assert!(limits.admit(a, &settings).is_ok());
    }

    #[test]
    fn a_share_lets_the_largest_message_in() {
        let settings =
            Settings { max_in_flight: 100 << 20, max_in_flight_per_ip: 20 << 20, ..settings() };
        let in_flight = InFlight::new(&settings, 8);
        let account = in_flight.of("10.0.0.1".parse().unwrap());
        assert!(in_flight.fits(&account, 16 << 20));
        in_flight.take(&account, 16 << 20);
        assert!(!in_flight.fits(&account, 1));
        in_flight.give_back(&account, 16 << 20);
        assert_eq!(in_flight.all(), 0);
    }
}
