//! The steps of repairs, and under which names it is counted what went wrong in each.

use crate::ring::harm::Harm;

/// What an operator asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `nodetool repair -full`.
    Full,
    /// `nodetool repair`.
    Incremental,
    /// The same with `-prv` or `-vd`.
    Preview,
}

/// A step of a repair: the mark that the code passes there, and by [`Harm`] the names of what
/// befalls a node that has part in it.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The mark.
    pub mark: &'static str,
    names: Option<usize>,
}

const fn step(mark: &'static str, names: usize) -> Step {
    Step { mark, names: Some(names) }
}

const FULL: [Step; 4] = [
    step("repair.prepare", 0),
    step("repair.validate", 1),
    step("repair.stream", 2),
    step("repair.clean_up", 3),
];
const INCREMENTAL: [Step; 6] = [
    step("repair.prepare", 4),
    step("repair.set_apart", 5),
    step("repair.validate", 6),
    step("repair.stream", 7),
    step("repair.promise", 8),
    step("repair.commit", 9),
];
const PREVIEW: [Step; 1] = [Step { mark: "repair.validate", names: None }];

/// Four for each step.
pub const HARMED: &[&str] = &[
    "full.prepare.killed",
    "full.prepare.power_cut",
    "full.prepare.cut_off",
    "full.prepare.full",
    "full.validate.killed",
    "full.validate.power_cut",
    "full.validate.cut_off",
    "full.validate.full",
    "full.stream.killed",
    "full.stream.power_cut",
    "full.stream.cut_off",
    "full.stream.full",
    "full.end.killed",
    "full.end.power_cut",
    "full.end.cut_off",
    "full.end.full",
    "incremental.prepare.killed",
    "incremental.prepare.power_cut",
    "incremental.prepare.cut_off",
    "incremental.prepare.full",
    "incremental.set_apart.killed",
    "incremental.set_apart.power_cut",
    "incremental.set_apart.cut_off",
    "incremental.set_apart.full",
    "incremental.validate.killed",
    "incremental.validate.power_cut",
    "incremental.validate.cut_off",
    "incremental.validate.full",
    "incremental.stream.killed",
    "incremental.stream.power_cut",
    "incremental.stream.cut_off",
    "incremental.stream.full",
    "incremental.promise.killed",
    "incremental.promise.power_cut",
    "incremental.promise.cut_off",
    "incremental.promise.full",
    "incremental.commit.killed",
    "incremental.commit.power_cut",
    "incremental.commit.cut_off",
    "incremental.commit.full",
];

impl Kind {
    /// Its steps.
    pub fn steps(self) -> &'static [Step] {
        match self {
            Self::Full => &FULL,
            Self::Incremental => &INCREMENTAL,
            Self::Preview => &PREVIEW,
        }
    }

    /// One that succeeded.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "repair.full",
            Self::Incremental => "repair.incremental",
            Self::Preview => "repair.preview",
        }
    }
}

impl Step {
    /// Something befell a node at it.
    pub fn harmed(self, harm: Harm) -> Option<&'static str> {
        let at = self.names? * Harm::ALL.len() + harm as usize;
        HARMED.get(at).copied()
    }
}
