//! What is not believed of what nodes say, and why (`gms.GossipDigestSynVerbHandler`,
//! `gms.Gossiper`): the operator is told.

use std::fmt;

use types::Address;

use crate::config::Config;
use crate::message::Syn;

/// Characters of a name that are shown: who says it may be anybody.
const SHOWN: usize = 48;

/// Why something that a node said is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is of another cluster.
    Cluster {
        /// Its name.
        theirs: String,
        /// That of this node's.
        ours: String,
    },
    /// It has another partitioner.
    Partitioner {
        /// Its class.
        theirs: String,
        /// That of this node's.
        ours: String,
    },
    /// It says that a node started long after now.
    Generation {
        /// The node.
        node: Address,
        /// When it is said to have started, in seconds since 1970.
        generation: i32,
    },
    /// It tells more of nodes than there is room for.
    TooMuch {
        /// Of so many nodes nothing new was heard.
        nodes: usize,
    },
}

impl Refusal {
    /// Of the beginning of a round that is none of this ring's.
    pub(crate) fn of_another_ring(syn: &Syn, config: &Config) -> Option<Self> {
        let differs = |theirs: &str, ours: &str| {
            let short = theirs.chars().take(SHOWN).collect();
            (theirs != ours).then(|| (short, ours.to_owned()))
        };
        let cluster = differs(&syn.cluster, &config.cluster);
        let cluster = cluster.map(|(theirs, ours)| Self::Cluster { theirs, ours });
        cluster.or_else(|| {
            let (theirs, ours) = differs(&syn.partitioner, &config.partitioner)?;
            Some(Self::Partitioner { theirs, ours })
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster { theirs, ours } => {
                write!(f, "its cluster is {theirs:?}, this node's is {ours:?}")
            }
            Self::Partitioner { theirs, ours } => {
                write!(f, "its partitioner is {theirs:?}, this node's is {ours:?}")
            }
            Self::Generation { node, generation } => write!(
                f,
                "it gives /{node} the generation {generation}, more than a year from now; check \
                 the clock of /{node}"
            ),
            Self::TooMuch { nodes } => {
                write!(
                    f,
                    "with the states of {nodes} nodes in it, gossip would exceed its limit of \
                     memory"
                )
            }
        }
    }
}
