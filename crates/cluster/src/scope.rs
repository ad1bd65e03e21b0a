//! What a statement on a keyspace has to do with other nodes.

use std::net::SocketAddr;
use std::sync::Arc;

use internode::FailureReason;
use protocol::Consistency;
use ring::{Placement, Ring, Unavailable, WritePlan};
use types::{Address, Token};

/// Where the replicas of a keyspace are, in a ring of several nodes.
#[derive(Clone)]
pub(crate) struct Scope {
    pub ring: Arc<Ring>,
    pub placement: Arc<Placement>,
}

impl Scope {
    /// Whom a write goes to.
    pub fn write_plan(&self, token: Token, level: Consistency) -> Result<WritePlan, Unavailable> {
        WritePlan::new(&self.ring, &self.placement, self.placement.at(token), level)
    }
}

/// Failures as clients are told of them.
pub(crate) fn client_failures(
    failures: &[(Address, FailureReason)],
) -> Vec<(SocketAddr, protocol::FailureReason)> {
    let one = |(address, reason): &(Address, FailureReason)| {
        let reason = protocol::FailureReason::from_code(u16::from(reason.number()));
        (SocketAddr::new(address.ip, address.port), reason)
    };
    failures.iter().map(one).collect()
}
