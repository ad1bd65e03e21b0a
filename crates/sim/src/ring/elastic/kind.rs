//! The operations that change a ring, what goes wrong in them, and under which names both are
//! counted.

use crate::ring::harm::Harm;

/// What an operator does to a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A new node joins.
    Join,
    /// The same, with a write survey before.
    Survey,
    /// `nodetool decommission`.
    Decommission,
    /// `nodetool removenode` of a node that is dead.
    Remove,
    /// A new node takes the place of one that is dead.
    Replace,
    /// The same, at the address of the dead one.
    ReplaceInPlace,
    /// `nodetool move`.
    Move,
    /// `nodetool cleanup`.
    Cleanup,
    /// `nodetool rebuild`.
    Rebuild,
    /// `nodetool assassinate` of a node that is dead.
    Assassinate,
}

/// By [`Kind`]: an operation that came to its end, and what of [`Harm`] befell one of its parties.
const NAMES: [[&str; 5]; 10] = [
    ["elastic.join", "join.killed", "join.power_cut", "join.cut_off", "join.full"],
    ["elastic.survey", "survey.killed", "survey.power_cut", "survey.cut_off", "survey.full"],
    [
        "elastic.decommission",
        "decommission.killed",
        "decommission.power_cut",
        "decommission.cut_off",
        "decommission.full",
    ],
    ["elastic.remove", "remove.killed", "remove.power_cut", "remove.cut_off", "remove.full"],
    ["elastic.replace", "replace.killed", "replace.power_cut", "replace.cut_off", "replace.full"],
    [
        "elastic.replace_in_place",
        "in_place.killed",
        "in_place.power_cut",
        "in_place.cut_off",
        "in_place.full",
    ],
    ["elastic.move", "move.killed", "move.power_cut", "move.cut_off", "move.full"],
    ["elastic.cleanup", "cleanup.killed", "cleanup.power_cut", "cleanup.cut_off", "cleanup.full"],
    ["elastic.rebuild", "rebuild.killed", "rebuild.power_cut", "rebuild.cut_off", "rebuild.full"],
    [
        "elastic.assassinate",
        "assassinate.killed",
        "assassinate.power_cut",
        "assassinate.cut_off",
        "assassinate.full",
    ],
];

impl Kind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Join,
        Self::Survey,
        Self::Decommission,
        Self::Remove,
        Self::Replace,
        Self::ReplaceInPlace,
        Self::Move,
        Self::Cleanup,
        Self::Rebuild,
        Self::Assassinate,
    ];

    /// One that came to its end.
    pub fn name(self) -> &'static str {
        NAMES[self as usize][0]
    }

    /// Something befell one of its parties.
    pub fn harmed(self, harm: Harm) -> &'static str {
        NAMES[self as usize][1 + harm as usize]
    }

    /// Does a node come into the ring?
    pub fn enters(self) -> bool {
        matches!(self, Self::Join | Self::Survey | Self::Replace | Self::ReplaceInPlace)
    }

    /// Does it begin with a node that dies for good?
    pub fn takes_a_dead_one(self) -> bool {
        matches!(self, Self::Remove | Self::Replace | Self::ReplaceInPlace | Self::Assassinate)
    }

    /// Is it one that begins beside another? Those of dead nodes are not: what two of them lose
    /// together nobody has.
    pub fn may_be_second(self) -> bool {
        !self.takes_a_dead_one()
    }
}
