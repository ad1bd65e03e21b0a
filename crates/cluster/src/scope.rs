//! What a statement on a keyspace has to do with other nodes.

use std::net::SocketAddr;
use std::sync::Arc;

use internode::FailureReason;
use protocol::{Consistency, ErrorResponse};
use ring::{Placement, Ring, Unavailable, WritePlan};
use schema::Keyspace;
use types::{Address, Token};

use crate::coordinator::Coordinator;

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

impl Coordinator {
    /// Where the replicas of a keyspace are; none if this node is all there is, or has it for itself alone.
    ///
    /// # Errors
    /// If nobody here knows how its strategy places replicas.
    pub(crate) fn scope(&self, keyspace: &Keyspace) -> Result<Option<Scope>, ErrorResponse> {
        let Some(ring) = self.ring_of_several() else { return Ok(None) };
        let strategy = &keyspace.replication.strategy;
        if *strategy == schema::Strategy::Local {
            return Ok(None);
        }
        let known = ring.placement(strategy).cloned();
        let (ring, placement) = match known {
            Some(placement) => (ring, placement),
            None => self.placed(&ring, keyspace)?,
        };
        Ok(Some(Scope { ring, placement }))
    }

    /// A ring that knows of a keyspace that is newer than it.
    fn placed(
        &self,
        ring: &Ring,
        keyspace: &Keyspace,
    ) -> Result<(Arc<Ring>, Arc<Placement>), ErrorResponse> {
        let schema = self.schema();
        let own = &keyspace.replication.strategy;
        let all = schema.keyspaces().values().map(|keyspace| &keyspace.replication.strategy);
        let ring = Arc::new(ring.with_strategies(all.chain([own])));
        let Some(placement) = ring.placement(own).cloned() else {
            let name = &keyspace.name;
            let message = format!("The replication strategy of keyspace {name} is not served");
            let detail = protocol::ErrorDetail::ServerError;
            return Err(ErrorResponse { message, detail });
        };
        self.know_ring_here(&ring);
        Ok((ring, placement))
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
