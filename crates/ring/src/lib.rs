//! Who owns what in a ring of several nodes, what a statement needs of them, and which of them to
//! ask first (`org.apache.cassandra.locator`). Pure: no clock, no I/O, no randomness of its own.
//!
//! A [`Ring`] is made of plain [`Node`]s whenever something about them changes, and never changes
//! itself. It holds a [`Placement`] for each replication setting: from tokens to replicas, by a
//! binary search. Plans say whom a request goes to and how many answers are enough; [`Acks`] counts
//! these.
//!
//! ```
//! use protocol::Consistency;
//! use ring::{Node, Ring, State, Verdict, WritePlan};
//! use schema::Replication;
//! use types::{Address, Token, Uuid};
//!
//! let node = |host: u8, token: i64| Node {
//!     address: Address::new([127, 0, 0, host], 7000),
//!     host_id: Uuid(host.into()),
//!     data_center: "dc1".into(),
//!     rack: "r1".into(),
//!     tokens: vec![Token(token)],
//!     state: State::Normal,
//!     is_up: true,
//!     is_local: host == 1,
//!     accepts_clients: true,
//! };
//! let replication = Replication::simple(2);
//! let ring = Ring::new(vec![node(1, 0), node(2, 100), node(3, 200)], [&replication.strategy])?;
//! let placement = ring.placement(&replication.strategy).unwrap();
//! let replicas = placement.at(Token(150));
//! let plan = WritePlan::new(&ring, placement, replicas, Consistency::Quorum)?;
//! let mut acks = plan.acks::<()>(&ring);
//! assert_eq!(acks.answered(plan.replicas()[0]), Verdict::Pending);
//! assert_eq!(acks.answered(plan.replicas()[1]), Verdict::Enough);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! That a node is up or down alone leaves the tables of a ring as they are. A [`NodeIndex`] is a
//! place in one ring: a request keeps the ring that it was planned under.
//!
//! `conformance/ring` prints what Cassandra's classes make of generated rings.
#![forbid(unsafe_code)]

mod acks;
mod allocation;
mod batch_log;
mod cloud;
mod counter;
mod dynamic;
mod fitness;
mod forecast;
mod layout;
mod node;
mod paxos;
mod pending;
mod placement;
mod proximity;
mod range_read;
mod ranges;
mod read;
mod ring;
mod short;
mod snitch;
mod unavailable;
mod walk;
mod write;

pub use acks::{Acks, Verdict};
pub use allocation::{
    AllocationError, Method, Newcomer, Weighed, allocate, fair_shares, random_tokens,
};
pub use batch_log::{BatchLogChoice, BatchLogPlan};
pub use cloud::{Cloud, MetadataRequest, MetadataService};
pub use counter::counter_leader;
pub use dynamic::{Dynamic, DynamicSettings, ScoreRow, Scores};
pub use fitness::fitness;
pub use forecast::{
    Chance, Chosen, FAILED_MAX, Failures, Loss, ResizeError, Resized, Unit, choose_tokens, resized,
};
pub use layout::CenterIndex;
pub use node::{Node, NodeIndex, State};
pub use paxos::PaxosPlan;
pub use placement::{Placement, Replicas};
pub use proximity::Proximity;
pub use range_read::{RangePlan, RangePlans};
pub use ranges::RangeRow;
pub use read::{ReadPlan, Speculation};
pub use ring::{Ring, RingError};
pub use short::Short;
pub use snitch::{RackDc, Snitch, SnitchError, Topology};
pub use types::TokenRange;
pub use unavailable::Unavailable;
pub use write::{Route, WritePlan};
