//! What incremental repair knows of an SSTable. SSTables of different states are never inputs of
//! one compaction: what is not repaired would count as repaired, or the other way round.

use types::Uuid;

/// The state of an SSTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepairStatus {
    /// It was repaired at this time, in milliseconds since 1970.
    Repaired(i64),
    /// No incremental repair has seen it.
    Unrepaired,
    /// It is part of a session that has not ended.
    Pending(Uuid),
}

impl RepairStatus {
    /// As an SSTable's metadata say it (`repairedAt`, `pendingRepair`).
    pub fn of(repaired_at: i64, pending_repair: Option<[u8; 16]>) -> Self {
        match (pending_repair, repaired_at) {
            (Some(session), _) => Self::Pending(Uuid::from_bytes(session)),
            (None, 0) => Self::Unrepaired,
            (None, at) => Self::Repaired(at),
        }
    }

    /// `repairedAt` of the metadata.
    pub fn repaired_at(self) -> i64 {
        if let Self::Repaired(at) = self { at } else { 0 }
    }

    /// `pendingRepair` of the metadata.
    pub fn session(self) -> Option<Uuid> {
        if let Self::Pending(session) = self { Some(session) } else { None }
    }

    /// Is it repaired?
    pub fn is_repaired(self) -> bool {
        matches!(self, Self::Repaired(_))
    }

    /// The group of which all may be compacted together: the same for all that are repaired.
    pub fn group(self) -> Self {
        if let Self::Repaired(_) = self { Self::Repaired(0) } else { self }
    }

    /// What comes of a compaction of these: repaired when the first of them was. None if they must
    /// not meet.
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut all = all.into_iter();
        let first = all.next()?;
        let merge = |one: Self, other: Self| match one.group() == other.group() {
            true => Some(one.min(other)),
            false => None,
        };
        all.try_fold(first, merge)
    }
}

/// Which SSTables a validation reads or a stream sends (`PreviewKind.predicate`,
/// `CassandraStreamManager.createOutgoingStreams`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RepairedState {
    /// All: a stream that is part of no incremental repair.
    #[default]
    All,
    /// All that are not repaired, pending ones too (`PreviewKind.UNREPAIRED`).
    Unrepaired,
    /// Those that are repaired (`PreviewKind.REPAIRED`). A pending one is not: whoever previews
    /// releases sessions that ended before, and refuses where one has not.
    Repaired,
    /// Those of a session: its own validations and streams.
    Pending(Uuid),
}

impl RepairedState {
    /// Is an SSTable of this state among them?
    pub fn takes(self, status: RepairStatus) -> bool {
        match self {
            Self::All => true,
            Self::Unrepaired => !status.is_repaired(),
            Self::Repaired => status.is_repaired(),
            Self::Pending(session) => status == RepairStatus::Pending(session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RepairStatus::{Pending, Repaired, Unrepaired};
    use super::*;

    const ONE: Uuid = Uuid(1);
    const OTHER: Uuid = Uuid(2);

    #[test]
    fn states_meet_only_their_own() {
        let all = [Unrepaired, Pending(ONE), Pending(OTHER), Repaired(7)];
        for (place, one) in all.iter().enumerate() {
            for (other_place, other) in all.iter().enumerate() {
                let merged = RepairStatus::of_all([*one, *other]);
                assert_eq!(merged, (place == other_place).then_some(*one));
            }
            assert_eq!(
                RepairStatus::of(one.repaired_at(), one.session().map(Uuid::to_bytes)),
                *one
            );
        }
        assert_eq!(RepairStatus::of_all([Repaired(7), Repaired(5)]), Some(Repaired(5)));
        assert_eq!(RepairStatus::of(7, Some(ONE.to_bytes())), Pending(ONE));
    }

    #[test]
    fn kinds_of_previews_and_sessions_take_what_cassandras_do() {
        let all = [Unrepaired, Pending(ONE), Pending(OTHER), Repaired(7)];
        let taken = |state: RepairedState| all.map(|status| state.takes(status));
        assert_eq!(taken(RepairedState::All), [true; 4]);
        assert_eq!(taken(RepairedState::Unrepaired), [true, true, true, false]);
        assert_eq!(taken(RepairedState::Repaired), [false, false, false, true]);
        assert_eq!(taken(RepairedState::Pending(ONE)), [false, true, false, false]);
    }
}
