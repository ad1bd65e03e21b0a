//! Connections that are open, by address: nobody has too many.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Connections of one address that a shard has open.
pub(crate) const PER_IP_MAX: usize = 256;

/// Connections that are open, by address.
#[derive(Debug, Default)]
pub(crate) struct Open(RefCell<BTreeMap<IpAddr, usize>>);

impl Open {
    pub fn enter(&self, ip: IpAddr) -> bool {
        let mut open = self.0.borrow_mut();
        let count = open.entry(ip).or_default();
        let has_room = *count < PER_IP_MAX;
        *count += usize::from(has_room);
        has_room
    }

    pub fn leave(&self, ip: IpAddr) {
        let mut open = self.0.borrow_mut();
        if let Some(count) = open.get_mut(&ip) {
            *count -= 1;
            if *count == 0 {
                open.remove(&ip);
            }
        }
    }
}
