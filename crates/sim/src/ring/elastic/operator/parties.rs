//! The machines of a ring that changes: what each is to the ring, and what the nodes see of it.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

use env::sim::World;
use ring::{Node, Ring, State};

use super::Operator;
use crate::ring::member::{Member, address};

/// What a machine is to the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// None: it can be the next that joins.
    Spare,
    /// It is coming in.
    Entering,
    /// It is a member.
    Member,
    /// It was a member, or was about to be one, and does not come back.
    Dead,
}

/// What a node knows another by.
pub fn of(node: usize) -> IpAddr {
    address(node)
}

impl Operator {
    /// The machines that have a part.
    pub(super) fn all(&self, part: Part) -> Vec<usize> {
        (0..self.parts.len()).filter(|node| self.parts[*node] == part).collect()
    }

    /// The ring's members, when all is over.
    pub fn ring(&self) -> Vec<Rc<Member>> {
        self.all(Part::Member).into_iter().map(|node| Rc::clone(&self.members[node])).collect()
    }

    /// What those see that serve clients.
    pub(super) fn views(&self) -> Vec<Arc<Ring>> {
        let doors = self.members.iter().filter_map(|member| member.door());
        doors.filter_map(|door| door.shard.peers().ring()).collect()
    }

    /// Is something so of a node in the view of all?
    pub(super) fn all_see(&self, node: usize, holds: impl Fn(Option<&Node>) -> bool) -> bool {
        let views = self.views();
        let ip = of(node);
        let seen = |ring: &Arc<Ring>| holds(ring.nodes().iter().find(|node| node.address.ip == ip));
        !views.is_empty() && views.iter().all(seen)
    }

    /// Does no node know it any more?
    pub(super) fn is_forgotten(&self, node: usize) -> bool {
        let member_of = |member: &Rc<Member>| self.parts[member.number] == Part::Member;
        let serves = |member: &Rc<Member>| member.door().is_some();
        let all = self.members.iter().filter(|member| member_of(member)).all(serves);
        all && self.all_see(node, |seen| seen.is_none())
    }

    /// Is it up and about to own other tokens than it does, in the view of all? One that is down
    /// is remembered as it was.
    pub(super) fn is_seen_moving(&self, node: usize) -> bool {
        self.all_see(node, |seen| {
            seen.is_some_and(|node| node.is_up && node.state != State::Normal)
        })
    }

    /// Do all that are to serve serve, and see each other up?
    pub(super) fn are_all_up(&self, world: &World) -> bool {
        let all = self.all(Part::Member);
        let sees = |of: &usize| self.all_see(*of, |seen| seen.is_some_and(|node| node.is_up));
        let serves = |node: &usize| {
            world.is_up(self.members[*node].id) && self.members[*node].door().is_some()
        };
        all.iter().all(serves) && all.iter().all(sees)
    }

    /// A node's host id, as others know it.
    pub(super) fn host(&self, node: usize) -> Option<String> {
        let ip = of(node);
        let of_view = |ring: &Arc<Ring>| {
            let found = ring.nodes().iter().find(|node| node.address.ip == ip);
            found.map(|node| node.host_id.to_string())
        };
        self.views().iter().find_map(of_view)
    }

    /// The token that a node moves to: any that is nobody's.
    pub(super) fn free_token(&self) -> i64 {
        self.rng.next().cast_signed()
    }
}
