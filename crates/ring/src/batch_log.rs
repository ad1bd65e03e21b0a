//! Who keeps a logged batch until it is applied (`ReplicaPlans.forBatchlogWrite`).

use std::collections::BTreeMap;

use protocol::Consistency;

use crate::acks::Acks;
use crate::node::NodeIndex;
use crate::proximity::Proximity;
use crate::ring::Ring;
use crate::short::Short;
use crate::unavailable::Unavailable;

/// Nodes that keep a batch, where there are so many.
const COPIES: usize = 2;

/// `batchlog_endpoint_strategy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchLogChoice {
    /// By chance, of two racks, not this one's if others have enough.
    #[default]
    RandomRemote,
    /// By chance, one of this rack.
    PreferLocal,
    /// The nearest of two racks, not this one's if others have enough.
    DynamicRemote,
    /// The nearest of two racks.
    Dynamic,
}

/// Who keeps a batch, all of whom have to have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchLogPlan {
    nodes: Short<NodeIndex>,
}

type Racks = BTreeMap<u16, Vec<NodeIndex>>;

impl BatchLogPlan {
    /// Nodes of this data centre that are up, this one only where there are no others. `random`
    /// gives a number below its argument. Who keeps the batches of level ANY may be this node
    /// alone.
    ///
    /// # Errors
    /// If there is nobody.
    pub fn new(
        ring: &Ring,
        is_any: bool,
        choice: BatchLogChoice,
        proximity: Proximity<'_>,
        random: &mut dyn FnMut(usize) -> usize,
    ) -> Result<Self, Unavailable> {
        // without scores, the nearest are as good as any
        let is_scored = proximity.scores.is_some();
        let is_nearest =
            is_scored && matches!(choice, BatchLogChoice::DynamicRemote | BatchLogChoice::Dynamic);
        let keeps_own_rack =
            matches!(choice, BatchLogChoice::PreferLocal | BatchLogChoice::Dynamic);
        let racks = eligible(ring, keeps_own_rack);
        let count: usize = racks.values().map(Vec::len).sum();
        let nodes: Short<NodeIndex> = if count <= COPIES {
            racks.into_values().flatten().collect()
        } else if is_nearest {
            nearest(ring, &racks, proximity)
        } else {
            by_chance(ring, racks, keeps_own_rack, random)
        };
        match nodes.is_empty() {
            false => Ok(Self { nodes }),
            true if is_any => Ok(Self { nodes: [ring.local()].into_iter().collect() }),
            true => Err(nobody()),
        }
    }

    /// Who keeps it.
    pub fn nodes(&self) -> &[NodeIndex] {
        &self.nodes
    }

    /// The level of that write.
    pub fn level(&self) -> Consistency {
        if self.nodes.len() == 1 { Consistency::One } else { Consistency::Two }
    }

    /// To count acknowledgements with.
    pub fn acks<R>(&self, ring: &Ring) -> Acks<R> {
        let required = if self.nodes.len() == 1 { 1 } else { COPIES as u32 };
        Acks::new(ring, &self.nodes, required, false)
    }
}

fn nobody() -> Unavailable {
    let (consistency, required, alive) = (Consistency::Two, COPIES as u32, 0);
    let message = format!(
        "Cannot achieve consistency level {consistency} for batchlog in local DC, required:{required}, available:{alive}"
    );
    Unavailable { message, consistency, required, alive }
}

/// Who may keep one, by rack. Where there are no more than two nodes, those are it, this one and
/// who is down among them.
fn eligible(ring: &Ring, keeps_own_rack: bool) -> Racks {
    let here = || ring.members().iter().copied().filter(|node| ring.is_near(*node));
    let is_few = here().count() <= COPIES;
    let mut racks = Racks::new();
    let may = |node: &NodeIndex| is_few || (*node != ring.local() && ring.is_up(*node));
    for node in here().filter(may) {
        racks.entry(ring.rack_of(node)).or_default().push(node);
    }
    let count: usize = racks.values().map(Vec::len).sum();
    let own = ring.rack_of(ring.local());
    let in_own = racks.get(&own).map_or(0, Vec::len);
    if count > COPIES && !keeps_own_rack && count - in_own >= COPIES {
        racks.remove(&own);
    }
    racks
}

fn by_chance(
    ring: &Ring,
    mut racks: Racks,
    prefers_own: bool,
    random: &mut dyn FnMut(usize) -> usize,
) -> Short<NodeIndex> {
    let mut nodes = Short::default();
    let mut take = |list: &mut Vec<NodeIndex>, random: &mut dyn FnMut(usize) -> usize| {
        if !list.is_empty() {
            nodes.push(list.swap_remove(below(list.len(), random)));
        }
    };
    if racks.len() == 1 {
        for list in racks.values_mut() {
            (0..COPIES).for_each(|_| take(list, random));
        }
        return nodes;
    }
    let mut left = COPIES;
    if prefers_own && let Some(mut own) = racks.remove(&ring.rack_of(ring.local())) {
        take(&mut own, random);
        left -= 1;
    }
    let mut others: Vec<Vec<NodeIndex>> = racks.into_values().collect();
    for _ in 0..left.min(others.len()) {
        let mut rack = others.swap_remove(below(others.len(), random));
        take(&mut rack, random);
    }
    nodes
}

/// A place in a list that is not empty, whatever comes in.
fn below(length: usize, random: &mut dyn FnMut(usize) -> usize) -> usize {
    random(length).min(length.saturating_sub(1))
}

/// The nearest node, and the nearest one of another rack if there is one.
fn nearest(ring: &Ring, racks: &Racks, proximity: Proximity<'_>) -> Short<NodeIndex> {
    let mut all: Vec<NodeIndex> = racks.values().flatten().copied().collect();
    proximity.sort(ring, &mut all);
    let mut nodes = Short::default();
    let Some((&first, others)) = all.split_first() else { return nodes };
    nodes.push(first);
    let is_elsewhere = |node: &&NodeIndex| ring.rack_of(**node) != ring.rack_of(first);
    let second = others.iter().find(is_elsewhere).or(others.first());
    second.into_iter().for_each(|node| nodes.push(*node));
    nodes
}
