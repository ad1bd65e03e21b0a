//! How likely it is that replicas are missing when nodes or racks fail.
//!
//! What counts is which nodes share ranges. A set of replicas is a group; it is short once so many
//! of its members have failed that the rest is not enough. The chance is the part of all choices of
//! `k` nodes, or racks, in which a group is short. It is counted, where that can be done:
//!
//! - nobody is short of fewer members than it takes;
//! - of just as many, each group names the choices that make it short;
//! - else all choices are tried, up to [`SUBSETS_MAX`].
//!
//! Beyond that choices are drawn: [`SAMPLES`] of them, the same ones each time.

use std::collections::BTreeSet;

use super::dice::Dice;
use crate::layout::CenterIndex;
use crate::node::NodeIndex;
use crate::placement::{Placement, quorum};
use crate::ring::Ring;

/// Nodes or racks that fail at the same time, at most.
pub const FAILED_MAX: usize = 8;
/// Choices that are tried one by one at most.
const SUBSETS_MAX: u128 = 50_000;
/// Choices that are drawn where there are more: what comes of them is right within half a percent.
const SAMPLES: usize = 50_000;

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Single nodes.
    Nodes,
    /// Racks, with all nodes in them.
    Racks,
}

/// What is missing then of some range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// A quorum of all replicas.
    Quorum,
    /// A quorum of the replicas of a data centre.
    LocalQuorum(CenterIndex),
    /// All replicas.
    Everything,
}

/// How likely it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// From 0 to 1.
    pub share: f64,
    /// Was it counted? If not, choices were drawn.
    pub is_exact: bool,
}

impl Chance {
    fn exact(bad: u128, all: u128) -> Self {
        Self { share: bad as f64 / all as f64, is_exact: true }
    }
}

/// What a placement withstands.
#[derive(Clone, Debug)]
pub struct Failures {
    /// Replicas that ranges have together.
    sets: BTreeSet<Vec<NodeIndex>>,
    quorum: u32,
    /// Of each data centre that has replicas.
    local_quorums: Vec<(CenterIndex, u32)>,
    centers: Vec<CenterIndex>,
    nodes: Units,
    racks: Units,
}

/// What may fail: which unit each node of the ring belongs to.
#[derive(Clone, Debug)]
struct Units {
    of: Vec<Option<u16>>,
    count: usize,
}

impl Units {
    fn new(ring: &Ring, of: impl Fn(NodeIndex) -> u16) -> Self {
        let names: BTreeSet<u16> = ring.members().iter().map(|node| of(*node)).collect();
        let place = |name: u16| names.iter().position(|known| *known == name);
        let mut units = vec![None; ring.nodes().len()];
        for node in ring.members() {
            units[node.at()] = place(of(*node)).map(|place| place as u16);
        }
        Self { of: units, count: names.len() }
    }
}

impl Failures {
    /// Of a placement in its ring.
    pub fn new(ring: &Ring, placement: &Placement) -> Self {
        let mut sets = BTreeSet::new();
        for row in placement.ranges() {
            let mut replicas = row.replicas.to_vec();
            replicas.sort_unstable();
            sets.insert(replicas);
        }
        let named = placement.centers.iter().flatten();
        let local = named.filter(|center| center.replicas > 0);
        let local = local.filter_map(|center| Some((center.index?, quorum(center.replicas))));
        Self {
            sets,
            quorum: quorum(placement.replication_factor()),
            local_quorums: local.collect(),
            centers: ring.indexes().map(|node| ring.center_of(node)).collect(),
            nodes: Units::new(ring, |node| node.0),
            racks: Units::new(ring, |node| ring.rack_of(node)),
        }
    }

    /// Data centres that have a quorum of their own.
    pub fn centers(&self) -> impl Iterator<Item = CenterIndex> + '_ {
        self.local_quorums.iter().map(|(center, _)| *center)
    }

    /// Units that may fail.
    pub fn count(&self, unit: Unit) -> usize {
        self.units(unit).count
    }

    fn units(&self, unit: Unit) -> &Units {
        match unit {
            Unit::Nodes => &self.nodes,
            Unit::Racks => &self.racks,
        }
    }

    /// The chance that a range suffers this loss when so many units fail at the same time. None if
    /// there are not so many, or the loss cannot be.
    pub fn chance(&self, loss: Loss, unit: Unit, failed: usize) -> Option<Chance> {
        let units = self.units(unit);
        if failed == 0 || failed > units.count.min(FAILED_MAX) {
            return None;
        }
        let needed = match loss {
            Loss::Quorum => self.quorum,
            Loss::Everything => 1,
            Loss::LocalQuorum(center) => {
                self.local_quorums.iter().find(|(known, _)| *known == center)?.1
            }
        };
        let counts = |node: &NodeIndex| match loss {
            Loss::LocalQuorum(center) => self.centers[node.at()] == center,
            Loss::Quorum | Loss::Everything => true,
        };
        let mut groups = BTreeSet::new();
        for set in &self.sets {
            let here: Vec<u16> =
                set.iter().filter(|n| counts(n)).filter_map(|n| units.of[n.at()]).collect();
            groups.insert(Group::new(here, needed as usize));
        }
        Some(Groups::new(units.count, groups).chance(failed))
    }
}

/// Replicas of a range, by the units that they are in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    /// Each with its number of replicas.
    members: Vec<(u16, u16)>,
    /// It is short when so many replicas are gone.
    short_at: u16,
}

impl Group {
    fn new(mut replicas: Vec<u16>, needed: usize) -> Self {
        replicas.sort_unstable();
        let short_at = (replicas.len() + 1).saturating_sub(needed) as u16;
        let mut members: Vec<(u16, u16)> = Vec::new();
        for unit in replicas {
            match members.last_mut() {
                Some((last, count)) if *last == unit => *count += 1,
                _ => members.push((unit, 1)),
            }
        }
        Self { members, short_at }
    }
}

/// All groups, and how many of each have failed.
struct Groups {
    groups: Vec<Group>,
    /// By unit: its groups, and its replicas in each.
    of: Vec<Vec<(u32, u16)>>,
    gone: Vec<u16>,
    /// Groups that are short.
    short: usize,
}

impl Groups {
    fn new(units: usize, groups: BTreeSet<Group>) -> Self {
        let groups: Vec<Group> = groups.into_iter().collect();
        let mut of = vec![Vec::new(); units];
        for (place, group) in groups.iter().enumerate() {
            for (unit, count) in &group.members {
                of[usize::from(*unit)].push((place as u32, *count));
            }
        }
        let short = groups.iter().filter(|group| group.short_at == 0).count();
        Self { gone: vec![0; groups.len()], groups, of, short }
    }

    fn chance(mut self, failed: usize) -> Chance {
        let all = choices(self.of.len(), failed);
        if self.short > 0 {
            return Chance::exact(1, 1);
        }
        let are_single = self.groups.iter().all(|group| group.members.iter().all(|m| m.1 == 1));
        let least = self.groups.iter().map(|group| usize::from(group.short_at)).min();
        let named = |group: &Group| choices(group.members.len(), failed);
        match least {
            None => Chance::exact(0, 1),
            Some(least) if are_single && failed < least => Chance::exact(0, all),
            Some(least)
                if are_single
                    && failed == least
                    && self.groups.iter().map(named).sum::<u128>() <= SUBSETS_MAX =>
            {
                Chance::exact(self.named(failed), all)
            }
            Some(_) if all <= SUBSETS_MAX => Chance::exact(self.tried(0, failed), all),
            Some(_) => self.drawn(failed),
        }
    }

    /// Choices of just as many as make a group short.
    fn named(&self, failed: usize) -> u128 {
        let mut bad: BTreeSet<Vec<u16>> = BTreeSet::new();
        for group in self.groups.iter().filter(|group| usize::from(group.short_at) == failed) {
            let mut chosen = Vec::with_capacity(failed);
            subsets(&group.members, failed, &mut chosen, &mut bad);
        }
        bad.len() as u128
    }

    /// Choices of so many units from this one on that make a group short, beside those that have
    /// failed.
    fn tried(&mut self, from: usize, left: usize) -> u128 {
        let mut bad = 0;
        for unit in from..=self.of.len() - left {
            self.fail(unit);
            if self.short > 0 {
                bad += choices(self.of.len() - unit - 1, left - 1);
            } else if left > 1 {
                bad += self.tried(unit + 1, left - 1);
            }
            self.recover(unit);
        }
        bad
    }

    fn drawn(&mut self, failed: usize) -> Chance {
        let (mut dice, mut bad) = (Dice::new(), 0);
        let mut chosen: Vec<usize> = Vec::with_capacity(failed);
        for _ in 0..SAMPLES {
            chosen.clear();
            while chosen.len() < failed && self.short == 0 {
                let unit = dice.below(self.of.len());
                if !chosen.contains(&unit) {
                    chosen.push(unit);
                    self.fail(unit);
                }
            }
            bad += usize::from(self.short > 0);
            chosen.iter().for_each(|unit| self.recover(*unit));
        }
        Chance { share: bad as f64 / SAMPLES as f64, is_exact: false }
    }

    fn fail(&mut self, unit: usize) {
        for (group, count) in &self.of[unit] {
            let (gone, of) = (&mut self.gone[*group as usize], &self.groups[*group as usize]);
            let was_short = *gone >= of.short_at;
            *gone += count;
            self.short += usize::from(!was_short && *gone >= of.short_at);
        }
    }

    fn recover(&mut self, unit: usize) {
        for (group, count) in &self.of[unit] {
            let (gone, of) = (&mut self.gone[*group as usize], &self.groups[*group as usize]);
            let was_short = *gone >= of.short_at;
            *gone -= count;
            self.short -= usize::from(was_short && *gone < of.short_at);
        }
    }
}

/// Adds the choices of so many members.
fn subsets(
    members: &[(u16, u16)],
    left: usize,
    chosen: &mut Vec<u16>,
    all: &mut BTreeSet<Vec<u16>>,
) {
    if left == 0 {
        all.insert(chosen.clone());
        return;
    }
    for (place, (unit, _)) in members.iter().enumerate() {
        chosen.push(*unit);
        subsets(&members[place + 1..], left - 1, chosen, all);
        chosen.pop();
    }
}

/// How many choices there are of so many of these.
fn choices(of: usize, count: usize) -> u128 {
    if count > of {
        return 0;
    }
    (0..count).fold(1, |all, taken| all * (of - taken) as u128 / (taken + 1) as u128)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn choices_are_counted() {
        assert_eq!([choices(5, 0), choices(5, 2), choices(5, 5), choices(2, 3)], [1, 10, 1, 0]);
        assert_eq!(choices(300, 3), 4_455_100);
        assert_eq!(choices(65_535, 8), 8_434_907_923_787_814_212_086_392_197_586_945);
    }

    fn groups(units: usize, sets: &[Vec<u16>], needed: usize) -> Groups {
        let of = sets.iter().map(|set| Group::new(set.clone(), needed)).collect();
        Groups::new(units, of)
    }

    proptest! {
        /// All ways of counting count the same, and what is drawn is near it.
        #[test]
        fn ways_agree(
            units in 4..14_usize,
            sets in prop::collection::vec(prop::collection::btree_set(0..4_u16, 1..4), 1..5),
            shift in prop::collection::vec(0..10_u16, 5),
            needed in 1..3_usize,
            failed in 1..4_usize,
        ) {
            let sets: Vec<Vec<u16>> = sets
                .into_iter()
                .zip(shift)
                .map(|(set, by)| set.iter().map(|unit| (unit + by) % units as u16).collect())
                .collect();
            let all = choices(units, failed);
            let is_short = |chosen: u32| {
                let is_left = |unit: &&u16| chosen >> **unit & 1 == 0;
                sets.iter().any(|set| set.iter().filter(is_left).count() < needed)
            };
            let is_chosen = |chosen: &u32| chosen.count_ones() as usize == failed;
            let chosen = (0..1_u32 << units).filter(is_chosen);
            let bad = chosen.filter(|chosen| is_short(*chosen)).count() as u128;
            let exact = Chance::exact(bad, all);
            prop_assert_eq!(groups(units, &sets, needed).chance(failed), exact);
            if groups(units, &sets, needed).short == 0 {
                prop_assert_eq!(groups(units, &sets, needed).tried(0, failed), bad);
                let drawn = groups(units, &sets, needed).drawn(failed);
                prop_assert!((drawn.share - exact.share).abs() < 0.015, "{drawn:?} {exact:?}");
            }
        }
    }
}
