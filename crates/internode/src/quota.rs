//! How much of what nodes send each other may lie in memory
//! (`internode_application_{send,receive}_queue_*`): a share of each connection's own, and reserves
//! of each peer and of the node for what goes beyond.

use thiserror::Error;

/// Default of a connection's own share, in bytes.
pub const CONNECTION_BYTES: u64 = 4 << 20;
/// Default of a peer's reserve, in bytes.
pub const ENDPOINT_BYTES: u64 = 128 << 20;
/// Default of the node's reserve, in bytes.
pub const GLOBAL_BYTES: u64 = 512 << 20;

/// A reserve that connections share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    limit: u64,
    used: u64,
}

impl Quota {
    /// Of so many bytes.
    pub fn new(limit: u64) -> Self {
        Self { limit, used: 0 }
    }

    /// Bytes that are taken.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn has(&self, bytes: u64) -> bool {
        self.used.saturating_add(bytes) <= self.limit
    }

    fn give_back(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
    }
}

/// Which reserve has too little left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Shortage {
    /// That of the peer.
    #[error("the budget of bytes for the peer is used up")]
    Endpoint,
    /// That of the node.
    #[error("the budget of bytes for all peers is used up")]
    Global,
}

/// What one connection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    capacity: u64,
    held: u64,
}

impl Lease {
    /// Of a connection whose own share is so large.
    pub fn new(capacity: u64) -> Self {
        Self { capacity, held: 0 }
    }

    /// Bytes that are held.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Takes bytes: what the own share has not left comes out of both reserves. Takes nothing where
    /// that fails.
    pub fn take(
        &mut self,
        bytes: u64,
        endpoint: &mut Quota,
        global: &mut Quota,
    ) -> Result<(), Shortage> {
        let held = self.held.saturating_add(bytes);
        let beyond = held.saturating_sub(self.capacity).min(bytes);
        if beyond > 0 {
            if !endpoint.has(beyond) {
                return Err(Shortage::Endpoint);
            }
            if !global.has(beyond) {
                return Err(Shortage::Global);
            }
            endpoint.used += beyond;
            global.used += beyond;
        }
        self.held = held;
        Ok(())
    }

    /// Gives bytes back that were taken: first to the reserves.
    pub fn give_back(&mut self, bytes: u64, endpoint: &mut Quota, global: &mut Quota) {
        let bytes = bytes.min(self.held);
        let beyond = self.held.saturating_sub(self.capacity).min(bytes);
        endpoint.give_back(beyond);
        global.give_back(beyond);
        self.held -= bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn at_the_limits() {
        let (mut endpoint, mut global) = (Quota::new(10), Quota::new(15));
        let (mut one, mut two) = (Lease::new(4), Lease::new(4));
        assert_eq!(one.take(4, &mut endpoint, &mut global), Ok(()));
        assert_eq!((endpoint.used(), global.used()), (0, 0));
        assert_eq!(one.take(11, &mut endpoint, &mut global), Err(Shortage::Endpoint));
        assert_eq!(one.take(10, &mut endpoint, &mut global), Ok(()));
        let mut other_peer = Quota::new(10);
        assert_eq!(two.take(10, &mut other_peer, &mut global), Err(Shortage::Global));
        assert_eq!(two.take(9, &mut other_peer, &mut global), Ok(()));
        assert_eq!((endpoint.used(), other_peer.used(), global.used()), (10, 5, 15));
        // what was taken last of all is given back first
        one.give_back(3, &mut endpoint, &mut global);
        assert_eq!((one.held(), endpoint.used(), global.used()), (11, 7, 12));
        one.give_back(11, &mut endpoint, &mut global);
        assert_eq!((one.held(), endpoint.used(), global.used()), (0, 0, 5));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made(steps in prop::collection::vec((0usize..3, 0u64..40), 1..60)) {
            let (mut endpoint, mut global) = (Quota::new(50), Quota::new(80));
            let mut leases = [Lease::new(10); 3];
            let mut taken: Vec<(usize, u64)> = Vec::new();
            for (at, bytes) in steps {
                if leases[at].take(bytes, &mut endpoint, &mut global).is_ok() {
                    taken.push((at, bytes));
                } else if let Some((at, bytes)) = taken.pop() {
                    leases[at].give_back(bytes, &mut endpoint, &mut global);
                }
                let beyond: u64 = leases.iter().map(|lease| lease.held().saturating_sub(10)).sum();
                prop_assert_eq!((endpoint.used(), global.used()), (beyond, beyond));
                prop_assert!(beyond <= 50);
            }
        }
    }
}
