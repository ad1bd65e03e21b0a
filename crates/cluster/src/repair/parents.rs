//! Repairs that this node takes part in (`ActiveRepairService.ParentRepairSession`,
//! `ParticipateState`). Pure.
//!
//! A coordinator says PREPARE, then asks for snapshots, validations and syncs of tables, and says
//! CLEANUP. It may ask for anything twice, when an answer is late: what was begun is not begun
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use env::Instant;
use repair::wire::{JobDescription, Prepare, PreviewKind};
use schema::TableId;

use types::{Address, TokenRange, Uuid};

/// Repairs that a node takes part in at a time. A coordinator has one for each `nodetool repair`.
const PARENTS_MAX: usize = 4_096;
/// Tables and ranges of a repair that it is asked about.
const JOBS_MAX: usize = 1 << 16;
/// What a coordinator never ended is forgotten after so long (`repair_state_expires`).
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3 * 24 * 3_600);

/// A repair, as its coordinator described it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub coordinator: Address,
    pub tables: BTreeSet<TableId>,
    pub ranges: Vec<TokenRange>,
    pub is_incremental: bool,
    pub repaired_at: i64,
    pub is_global: bool,
    pub preview: PreviewKind,
    began: Instant,
    jobs: BTreeMap<JobDescription, Job>,
    snapshots: BTreeSet<JobDescription>,
}

/// A table in ranges of a repair.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Job {
    validation: Option<Step>,
    /// By who is asked to give, and to whom.
    syncs: BTreeMap<(Address, Address), Step>,
}

/// Something that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Accepted,
    Failed,
}

/// What is to be done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// It is new: do it.
    New,
    /// It was asked for before, and is done or under way.
    Again,
    /// It was asked for before and failed, or comes too late.
    Refused,
}

/// Why a repair is not taken part in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoPart {
    #[error("takes part in {PARENTS_MAX} repairs already")]
    TooMany,
    #[error("the repair is known from another coordinator")]
    Stranger,
    #[error("there is no such repair: it is over, or was never begun")]
    Unknown,
    #[error("the repair is not about this table or these ranges")]
    Foreign,
    #[error("the repair asks for more than {JOBS_MAX} tables and ranges")]
    TooMuch,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Parents(BTreeMap<Uuid, Parent>);

impl Parents {
    /// A coordinator begins one; again, where an answer was late.
    pub fn prepare(&mut self, from: Address, of: &Prepare, now: Instant) -> Result<(), NoPart> {
        self.0.retain(|_, parent| now.since(parent.began) < FORGOTTEN_AFTER);
        if let Some(known) = self.0.get(&of.parent) {
            return if known.coordinator == from { Ok(()) } else { Err(NoPart::Stranger) };
        }
        if self.0.len() >= PARENTS_MAX {
            return Err(NoPart::TooMany);
        }
        let parent = Parent {
            coordinator: from,
            tables: of.tables.iter().copied().collect(),
            ranges: TokenRange::normalize(of.ranges.iter().copied()),
            is_incremental: of.is_incremental,
            repaired_at: of.repaired_at,
            is_global: of.is_global,
            preview: of.preview,
            began: now,
            jobs: BTreeMap::new(),
            snapshots: BTreeSet::new(),
        };
        self.0.insert(of.parent, parent);
        Ok(())
    }

    pub fn get(&self, id: Uuid) -> Option<&Parent> {
        self.0.get(&id)
    }

    /// The repair of a job, if who asks coordinates it and it is about this table and these ranges.
    fn of(
        &mut self,
        from: Address,
        job: &JobDescription,
        table: TableId,
    ) -> Result<&mut Parent, NoPart> {
        let parent = job.parent.and_then(|parent| self.0.get_mut(&parent));
        let parent = parent.ok_or(NoPart::Unknown)?;
        if parent.coordinator != from {
            return Err(NoPart::Stranger);
        }
        let asked = TokenRange::normalize(job.ranges.iter().copied());
        let is_within = |range: &TokenRange| range.without(&parent.ranges).is_empty();
        if !parent.tables.contains(&table) || !asked.iter().all(is_within) {
            return Err(NoPart::Foreign);
        }
        let known = parent.jobs.contains_key(job);
        match !known && parent.jobs.len() >= JOBS_MAX {
            true => Err(NoPart::TooMuch),
            false => Ok(parent),
        }
    }

    /// It is to hold what the table has, until it is validated.
    pub fn snapshot(
        &mut self,
        from: Address,
        job: &JobDescription,
        table: TableId,
    ) -> Result<Asked, NoPart> {
        let parent = self.of(from, job, table)?;
        let is_begun = parent.jobs.get(job).is_some_and(|job| job.validation.is_some());
        if is_begun {
            return Ok(Asked::Refused);
        }
        parent.jobs.entry(job.clone()).or_default();
        let is_new = parent.snapshots.insert(job.clone());
        Ok(if is_new { Asked::New } else { Asked::Again })
    }

    /// It is to say what it has.
    pub fn validation(
        &mut self,
        from: Address,
        job: &JobDescription,
        table: TableId,
    ) -> Result<Asked, NoPart> {
        let parent = self.of(from, job, table)?;
        let known = parent.jobs.entry(job.clone()).or_default();
        Ok(match known.validation {
            None if known.syncs.is_empty() => {
                known.validation = Some(Step::Accepted);
                Asked::New
            }
            Some(Step::Accepted) => Asked::Again,
            None | Some(Step::Failed) => Asked::Refused,
        })
    }

    /// It is to exchange what differs with another.
    pub fn sync(
        &mut self,
        from: Address,
        job: &JobDescription,
        table: TableId,
        nodes: (Address, Address),
    ) -> Result<Asked, NoPart> {
        let parent = self.of(from, job, table)?;
        let known = parent.jobs.entry(job.clone()).or_default();
        Ok(match known.syncs.get(&nodes) {
            None => {
                known.syncs.insert(nodes, Step::Accepted);
                Asked::New
            }
            Some(Step::Accepted) => Asked::Again,
            Some(Step::Failed) => Asked::Refused,
        })
    }

    /// A validation came to nothing: asked for again it is refused.
    pub fn validation_failed(&mut self, job: &JobDescription) {
        let parent = job.parent.and_then(|parent| self.0.get_mut(&parent));
        if let Some(known) = parent.and_then(|parent| parent.jobs.get_mut(job)) {
            known.validation = Some(Step::Failed);
        }
    }

    /// The same of a sync.
    pub fn sync_failed(&mut self, job: &JobDescription, nodes: (Address, Address)) {
        let parent = job.parent.and_then(|parent| self.0.get_mut(&parent));
        if let Some(known) = parent.and_then(|parent| parent.jobs.get_mut(job)) {
            known.syncs.insert(nodes, Step::Failed);
        }
    }

    /// It is over.
    pub fn end(&mut self, id: Uuid) -> Option<Parent> {
        self.0.remove(&id)
    }

    /// Coordinators of those under way.
    pub fn coordinators(&self) -> BTreeSet<Address> {
        self.0.values().map(|parent| parent.coordinator).collect()
    }

    /// Those of a coordinator.
    pub fn of_coordinator(&self, node: Address) -> Vec<Uuid> {
        let its = self.0.iter().filter(|(_, parent)| parent.coordinator == node);
        its.map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Token;

    const NOW: Instant = Instant::ZERO;

    fn node(last: u8) -> Address {
        Address::new([10, 0, 0, last], 7000)
    }

    fn range(left: i64, right: i64) -> TokenRange {
        TokenRange { left: Token(left), right: Token(right) }
    }

    fn prepare(parent: u128) -> Prepare {
        Prepare {
            tables: vec![TableId([1; 16])],
            parent: Uuid(parent),
            ranges: vec![range(0, 100)],
            is_incremental: false,
            repaired_at: 0,
            is_global: true,
            preview: PreviewKind::None,
        }
    }

    fn job(parent: u128, right: i64) -> JobDescription {
        JobDescription {
            parent: Some(Uuid(parent)),
            session: Uuid(7),
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            ranges: vec![range(0, right)],
        }
    }

    #[test]
    fn what_was_begun_is_not_begun_again() {
        let mut parents = Parents::default();
        let (from, table) = (node(1), TableId([1; 16]));
        for _ in 0..2 {
            parents.prepare(from, &prepare(1), NOW).expect("a part");
        }
        let job = job(1, 100);
        assert_eq!(parents.snapshot(from, &job, table), Ok(Asked::New));
        assert_eq!(parents.snapshot(from, &job, table), Ok(Asked::Again));
        assert_eq!(parents.validation(from, &job, table), Ok(Asked::New));
        assert_eq!(parents.validation(from, &job, table), Ok(Asked::Again));
        assert_eq!(parents.snapshot(from, &job, table), Ok(Asked::Refused));
        let nodes = (node(2), node(3));
        assert_eq!(parents.sync(from, &job, table, nodes), Ok(Asked::New));
        assert_eq!(parents.sync(from, &job, table, nodes), Ok(Asked::Again));
        parents.sync_failed(&job, nodes);
        assert_eq!(parents.sync(from, &job, table, nodes), Ok(Asked::Refused));
        parents.validation_failed(&job);
        assert_eq!(parents.validation(from, &job, table), Ok(Asked::Refused));
        assert!(parents.end(Uuid(1)).is_some());
        assert_eq!(parents.validation(from, &job, table), Err(NoPart::Unknown));
    }

    #[test]
    fn strangers_and_what_is_foreign_are_refused() {
        let mut parents = Parents::default();
        let (from, table) = (node(1), TableId([1; 16]));
        parents.prepare(from, &prepare(1), NOW).expect("a part");
        assert_eq!(parents.prepare(node(2), &prepare(1), NOW), Err(NoPart::Stranger));
        assert_eq!(parents.validation(node(2), &job(1, 100), table), Err(NoPart::Stranger));
        assert_eq!(parents.validation(from, &job(1, 101), table), Err(NoPart::Foreign));
        let other = TableId([2; 16]);
        assert_eq!(parents.validation(from, &job(1, 100), other), Err(NoPart::Foreign));
        assert_eq!(parents.of_coordinator(from), [Uuid(1)]);
        assert_eq!(parents.of_coordinator(node(2)), []);
    }

    #[test]
    fn there_is_an_end_to_them() {
        let mut parents = Parents::default();
        for id in 0..PARENTS_MAX as u128 {
            parents.prepare(node(1), &prepare(id), NOW).expect("a part");
        }
        let one_more = prepare(PARENTS_MAX as u128);
        assert_eq!(parents.prepare(node(1), &one_more, NOW), Err(NoPart::TooMany));
        // what nobody ended is forgotten
        parents.prepare(node(1), &one_more, NOW + FORGOTTEN_AFTER).expect("a part");
        assert!(parents.get(Uuid(1)).is_none());
    }
}
