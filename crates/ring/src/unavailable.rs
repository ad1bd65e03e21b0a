//! Too few replicas are up (`exceptions.UnavailableException`,
//! `ReplicaPlans.assureSufficientLiveReplicas`).

use protocol::{Consistency, ErrorDetail, ErrorResponse};

use crate::layout::CenterIndex;
use crate::node::NodeIndex;
use crate::placement::{Placement, quorum};
use crate::ring::Ring;

/// Too few replicas are up for a request to be tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Unavailable {
    /// What it says.
    pub message: String,
    /// The level that cannot be had.
    pub consistency: Consistency,
    /// Replicas that it needs.
    pub required: u32,
    /// Those that are up.
    pub alive: u32,
}

impl From<Unavailable> for ErrorResponse {
    fn from(lack: Unavailable) -> Self {
        let Unavailable { message, consistency, required, alive } = lack;
        let (required, alive) = (required as i32, alive as i32);
        Self { message, detail: ErrorDetail::Unavailable { consistency, required, alive } }
    }
}

impl Unavailable {
    /// Where enough seem to be up by these figures, full ones are what is lacking, says Cassandra.
    pub(crate) fn new(consistency: Consistency, required: u32, alive: u32) -> Self {
        let message = match required > alive {
            true => format!("Cannot achieve consistency level {consistency}"),
            false => "Insufficient full replicas".to_owned(),
        };
        Self { message, consistency, required, alive }
    }

    /// The figure of those alive is none, for Cassandra confuses it with that of full replicas that
    /// are required.
    fn in_center(consistency: Consistency, required: u32, center: &str) -> Self {
        let message = format!("Cannot achieve consistency level {consistency} in DC {center}");
        Self { message, consistency, required, alive: 0 }
    }
}

/// What a request needs to be up.
pub(crate) struct Needs<'a> {
    pub ring: &'a Ring,
    pub placement: &'a Placement,
    pub level: Consistency,
    /// How many replicas.
    pub block_for: u32,
    /// Of them, those that have all data: one for a read, none for a write.
    pub full: u32,
}

impl Needs<'_> {
    /// Are enough of the replicas up that are? Of several data centres, the first one by name is
    /// blamed; Cassandra blames any.
    pub fn check(&self, alive: &[NodeIndex]) -> Result<(), Unavailable> {
        let count = |center: CenterIndex| {
            alive.iter().filter(|node| self.ring.center_of(**node) == center).count() as u32
        };
        let here = || count(self.ring.center_of(self.ring.local()));
        let lacks = |alive: u32| alive < self.block_for || alive < self.full;
        let (required, alive) = match (self.level, &self.placement.centers) {
            (Consistency::Any, _) => return Ok(()),
            // the figure is that of a time without pending replicas
            (Consistency::LocalOne, _) if lacks(here()) => (1, here()),
            (Consistency::LocalQuorum, _) if lacks(here()) => (self.block_for, here()),
            (Consistency::LocalOne | Consistency::LocalQuorum, _) => return Ok(()),
            (Consistency::EachQuorum, Some(centers)) => {
                for center in centers {
                    let required = quorum(center.replicas);
                    if center.index.map_or(0, count) < required {
                        return Err(Unavailable::in_center(self.level, required, &center.name));
                    }
                }
                if self.full == 0 || !alive.is_empty() {
                    return Ok(());
                }
                (self.block_for, self.full)
            }
            _ if lacks(alive.len() as u32) => (self.block_for, alive.len() as u32),
            _ => return Ok(()),
        };
        Err(Unavailable::new(self.level, required, alive))
    }
}
