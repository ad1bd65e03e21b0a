//! Who is about to be a replica, and who was one until just now. The latter still get what is
//! written: whoever has not heard of the change reads from them, and a quorum of the old replicas
//! must meet one of the new. Cassandra leaves that out, and such reads may be stale.
//!
//! Who is about to be a replica (`TokenMetadata.calculatePendingRanges`): writes go there too, so
//! that it lacks nothing once it is one. Where several things are under way, each node gets the
//! most that it could end with: of each thing alone, as in Cassandra, and of all together, which
//! Cassandra leaves out.

use schema::Strategy;
use types::Token;

use crate::layout::{Former, Layout, Owners};
use crate::node::NodeIndex;
use crate::walk::{Rule, Walk};

/// Ends of ranges within which nobody's replicas change, whatever of what is under way has
/// happened.
pub(crate) fn ends(layout: &Layout) -> Vec<Token> {
    let owned = layout.owners.tokens.iter().map(|(token, _)| *token);
    let joining = layout.joining.iter().flat_map(|(_, tokens)| tokens.iter().copied());
    let moving = layout.moving.iter().map(|(_, token)| *token);
    let former = layout.former.iter().flat_map(|former| &former.layout.owners.tokens);
    let former = former.map(|(token, _)| *token);
    let mut ends: Vec<Token> = owned.chain(joining).chain(moving).chain(former).collect();
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// Finds the nodes that are about to be replicas.
pub(crate) struct Pending<'a> {
    layout: &'a Layout,
    rule: &'a Rule,
    /// The ring once all that leave have left.
    all_left: Owners,
    /// That ring with one that joins.
    joined: Vec<(NodeIndex, Owners)>,
    /// That ring without the others that move and with one where it moves to; who gains by that.
    moved: Vec<(Owners, Vec<NodeIndex>)>,
    /// The ring once all is done, if that is more than one thing.
    settled: Option<Owners>,
    /// What was before, and the rule in its terms.
    formers: Vec<(&'a Former, Rule)>,
}

impl<'a> Pending<'a> {
    /// Nothing if nothing is under way.
    pub fn new(
        layout: &'a Layout,
        (strategy, rule): (&Strategy, &'a Rule),
        ends: &[Token],
    ) -> Option<Self> {
        let is_under_way =
            !(layout.joining.is_empty() && layout.leaving.is_empty() && layout.moving.is_empty());
        if !is_under_way && layout.former.is_empty() {
            return None;
        }
        let all_left = layout.owners.without(|node| layout.leaving.contains(&node));
        let joined = layout.joining.iter();
        let joined = joined.map(|(node, tokens)| (*node, all_left.with(*node, tokens))).collect();
        let moves = |node| layout.moving.iter().any(|(other, _)| *other == node);
        let still = all_left.without(moves);
        let moved = layout.moving.iter().map(|(node, to)| {
            let after = still.with(*node, &[*to]);
            let gaining = gaining(layout, rule, ends, &all_left, &after, *node);
            (after, gaining)
        });
        let moved = moved.collect();
        let changes = layout.joining.len() + layout.leaving.len() + layout.moving.len();
        let settled = (changes > 1).then(|| settled(layout, &all_left));
        let former = layout.former.iter();
        let formers = former.filter_map(|of| Some((of, Rule::of(strategy, &of.layout)?))).collect();
        Some(Self { layout, rule, all_left, joined, moved, settled, formers })
    }

    /// Calls `each` with each end of [`ends`] and the natural, pending and former replicas of its
    /// range.
    pub fn each(
        &'a self,
        ends: &[Token],
        mut each: impl FnMut(Token, &[NodeIndex], &[NodeIndex], &[NodeIndex]),
    ) {
        let mut now = Walk::new(self.layout, &self.layout.owners, self.rule);
        let mut left = Walk::new(self.layout, &self.all_left, self.rule);
        let mut joined: Vec<_> = self
            .joined
            .iter()
            .map(|(node, owners)| (*node, Walk::new(self.layout, owners, self.rule)))
            .collect();
        let mut moved: Vec<_> = self
            .moved
            .iter()
            .map(|(owners, gaining)| (Walk::new(self.layout, owners, self.rule), gaining))
            .collect();
        let mut settled = self.settled.as_ref().map(|o| Walk::new(self.layout, o, self.rule));
        let walk = |(of, rule): &'a (&'a Former, Rule)| {
            (of, Walk::new(&of.layout, &of.layout.owners, rule))
        };
        let mut formers: Vec<_> = self.formers.iter().map(walk).collect();
        let (mut natural, mut pending, mut later) = (Vec::new(), Vec::new(), Vec::new());
        let mut former = Vec::new();
        for &end in ends {
            natural.clear();
            pending.clear();
            now.replicas(end, &mut natural);
            let mut add = |node: NodeIndex| {
                if !natural.contains(&node) && !pending.contains(&node) {
                    pending.push(node);
                }
            };
            if natural.iter().any(|node| self.layout.leaving.contains(node)) {
                later.clear();
                left.replicas(end, &mut later);
                later.iter().copied().for_each(&mut add);
            }
            for (node, walk) in &mut joined {
                later.clear();
                walk.replicas(end, &mut later);
                if later.contains(node) {
                    add(*node);
                }
            }
            for (walk, gaining) in &mut moved {
                later.clear();
                walk.replicas(end, &mut later);
                later.iter().copied().filter(|node| gaining.contains(node)).for_each(&mut add);
            }
            if let Some(walk) = &mut settled {
                later.clear();
                walk.replicas(end, &mut later);
                later.iter().copied().for_each(&mut add);
            }
            former.clear();
            for (of, walk) in &mut formers {
                later.clear();
                walk.replicas(end, &mut later);
                for node in later.iter().filter_map(|node| of.here[node.at()]) {
                    let known = [&natural, &pending, &former];
                    if !known.iter().any(|known| known.contains(&node)) {
                        former.push(node);
                    }
                }
            }
            each(end, &natural, &pending, &former);
        }
    }
}

/// The ring once all have joined, left and moved; who was replaced is gone.
fn settled(layout: &Layout, all_left: &Owners) -> Owners {
    let joining = layout.joining.iter().map(|(node, tokens)| (*node, tokens.clone()));
    let moving = layout.moving.iter().map(|(node, to)| (*node, vec![*to]));
    let all = joining.chain(moving);
    let settled = all.fold(all_left.clone(), |ring, (node, tokens)| ring.with(node, &tokens));
    let owns = |node| settled.tokens.iter().any(|(_, owner)| *owner == node);
    settled.without(|node| !owns(node))
}

/// Who becomes a replica of a range that the moving node has or will have: these get all that they
/// gain, wherever it is.
fn gaining(
    layout: &Layout,
    rule: &Rule,
    ends: &[Token],
    before: &Owners,
    after: &Owners,
    moving: NodeIndex,
) -> Vec<NodeIndex> {
    let mut now = Walk::new(layout, &layout.owners, rule);
    let (mut before, mut after) = (Walk::new(layout, before, rule), Walk::new(layout, after, rule));
    let mut gaining = Vec::new();
    for &end in ends {
        let then = after.of(end);
        if !then.contains(&moving) && !before.of(end).contains(&moving) {
            continue;
        }
        let present = now.of(end);
        for node in then {
            if !present.contains(&node) && !gaining.contains(&node) {
                gaining.push(node);
            }
        }
    }
    gaining
}
