//! The state of replicas in `system.paxos`, as Cassandra lays it out
//! (`SystemKeyspace.savePaxosProposal` and its kin, `PaxosRows`).

use std::rc::Rc;
use std::sync::Arc;

use rows::codec::{MutationDecoder, MutationEncoder};
use rows::{
    CellKind, CellRef, Clustering, Mutation, PartitionUpdate, RowBuilder, RowRef, UpdateBuilder,
};
use schema::Table;
use storage::commitlog::Ticket;
use storage::{Engine, PartitionKey, StorageError, Trace};
use types::Reader;

use crate::local_writes::read_rows;
use crate::paxos::acceptor::{Acceptor, Proposal};
use crate::paxos::ballot::Ballot;

/// The version of internode messaging that updates are written in (`MessagingService.VERSION_40`).
const VERSION: i32 = 12;
/// State is kept at least so long, in seconds (`SystemKeyspace.legacyPaxosTtlSec`).
const TTL_MIN: i64 = 3 * 3600;

/// A partition that rounds are about.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Its table.
    pub table: Arc<Table>,
    /// Its key.
    pub key: PartitionKey,
    /// Where what happens to it is noted.
    pub trace: Trace,
}

fn broken(what: impl Into<String>) -> StorageError {
    StorageError::Encode(format!("system.paxos: {}", what.into()))
}

fn paxos(engine: &Engine) -> Result<Arc<Table>, StorageError> {
    engine.schema().table("system", "paxos").cloned().ok_or_else(|| broken("the table is missing"))
}

/// What is known of a partition. State that had expired by the second of the ballot is gone,
/// whatever the clock says now: all replicas that hear the ballot must agree on it.
///
/// # Errors
/// If it cannot be read.
pub async fn load(
    engine: &Rc<Engine>,
    subject: &Subject,
    ballot: Ballot,
) -> Result<Acceptor, StorageError> {
    // a replica that hears old ballots, and a coordinator that gives them
    if engine.env().planted("ballot_goes_back") {
        return Ok(Acceptor::new());
    }
    let paxos = paxos(engine)?;
    let row = Clustering::new([Some(&subject.table.id.0[..])]);
    let (_, rows) = read_rows(Rc::clone(engine), paxos.id, subject.key.clone(), vec![row]).await?;
    match rows.first() {
        None => Ok(Acceptor::new()),
        Some(row) => decode(&paxos, RowRef::from_packed(row), subject, ballot.seconds()),
    }
}

fn decode(
    paxos: &Table,
    row: RowRef<'_>,
    subject: &Subject,
    now: i64,
) -> Result<Acceptor, StorageError> {
    let cell = |name: &str| {
        let column = paxos.column(name)?.index;
        row.cell(column).filter(|cell| cell.kind != CellKind::Tombstone)
    };
    let ballot = |cell: CellRef<'_>| {
        Ballot::from_value(cell.value).ok_or_else(|| broken("a ballot is not a UUID"))
    };
    let proposal = |at: &str, update: &str, version: &str| {
        let Some(at) = cell(at).filter(|cell| cell.is_live(now)) else { return Ok(None) };
        let version = cell(version).map_or(Some(VERSION), |cell| {
            cell.value.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
        });
        if version != Some(VERSION) {
            return Err(broken(format!(
                "an update has version {version:?}, which is not supported"
            )));
        }
        let update = cell(update).ok_or_else(|| broken("a ballot has no update"))?;
        let layout =
            |id: &[u8; 16]| (*id == subject.table.id.0).then(|| Arc::clone(&subject.table.layout));
        let update = MutationDecoder::new().update(&mut Reader::new(update.value), &layout);
        let update = update.map_err(|error| broken(error.to_string()))?;
        let proposal = Proposal { ballot: ballot(at)?, update };
        match proposal.is_of(&subject.table.id.0, &subject.key.bytes) {
            true => Ok(Some(proposal)),
            false => Err(broken("an update belongs to another partition")),
        }
    };
    let mut promised = Ballot::none();
    for name in ["in_progress_ballot", "in_progress_read_ballot"] {
        if let Some(cell) = cell(name) {
            let other = ballot(cell)?;
            promised = if other.is_after(promised) { other } else { promised };
        }
    }
    let committed =
        proposal("most_recent_commit_at", "most_recent_commit", "most_recent_commit_version")?;
    let accepted = proposal("proposal_ballot", "proposal", "proposal_version")?;
    let accepted = accepted.filter(|accepted| {
        committed.as_ref().is_none_or(|known| accepted.ballot.is_after(known.ballot))
    });
    Ok(Acceptor { promised, accepted, committed })
}

/// A row of `system.paxos` in the making.
struct Row<'a> {
    engine: &'a Rc<Engine>,
    subject: &'a Subject,
    paxos: Arc<Table>,
    row: RowBuilder,
    timestamp: i64,
    now: i64,
    ttl: i32,
}

impl<'a> Row<'a> {
    fn new(
        engine: &'a Rc<Engine>,
        subject: &'a Subject,
        ballot: Ballot,
    ) -> Result<Self, StorageError> {
        let mut row = RowBuilder::new();
        row.start_row(Clustering::new([Some(&subject.table.id.0[..])]).as_ref());
        let ttl = i64::from(subject.table.params.gc_grace_seconds).max(TTL_MIN);
        Ok(Self {
            engine,
            subject,
            paxos: paxos(engine)?,
            row,
            timestamp: ballot.unix_micros(),
            now: engine.env().unix_micros() / 1_000_000,
            ttl: i32::try_from(ttl).unwrap_or(i32::MAX),
        })
    }

    fn set(&mut self, name: &str, value: &[u8]) {
        let expires = self
            .now
            .saturating_add(self.ttl.into())
            .min(cql::Limits::MAX_DELETION_TIME_CASSANDRA_4);
        let index = self.index(name);
        self.row.cell(CellRef::expiring(index, None, self.timestamp, self.ttl, expires, value));
    }

    /// What is not saved is promised or accepted all the same, and forgotten.
    fn index(&self, name: &str) -> u16 {
        self.paxos.column(name).expect("system.paxos has a column for each part of the state").index
    }

    fn clear(&mut self, name: &str) {
        self.row.cell(CellRef::tombstone(self.index(name), None, self.timestamp, self.now));
    }

    fn set_update(
        &mut self,
        name: &str,
        version: &str,
        update: &PartitionUpdate,
    ) -> Result<(), StorageError> {
        let mut bytes = Vec::new();
        let encoded = MutationEncoder::new().update(update, &mut bytes);
        encoded.map_err(|error| broken(error.to_string()))?;
        self.set(name, &bytes);
        self.set(version, &VERSION.to_be_bytes());
        Ok(())
    }

    /// Logged and applied; it may be answered for when the ticket says so.
    async fn save(mut self) -> Result<Ticket, StorageError> {
        let table = &self.paxos;
        let is_of_ballot = self.timestamp;
        let mut update =
            UpdateBuilder::new(table.id.0, Arc::clone(&table.layout), &self.subject.key.bytes);
        update.add(self.row.finish_row(&table.layout), &mut RowBuilder::new());
        let update = update.finish(&mut RowBuilder::new());
        let saved_at = update.max_timestamp();
        assert_eq!(saved_at, is_of_ballot, "state is saved at the time of its ballot");
        let mutation = Mutation::new(update);
        self.engine.apply(&mutation, true).await
    }
}

/// Saves a promise.
///
/// # Errors
/// If it cannot be logged.
pub async fn save_promise(
    engine: &Rc<Engine>,
    subject: &Subject,
    ballot: Ballot,
) -> Result<Ticket, StorageError> {
    let mut row = Row::new(engine, subject, ballot)?;
    row.set("in_progress_ballot", &ballot.to_bytes());
    row.save().await
}

/// Saves an accepted proposal.
///
/// # Errors
/// If it cannot be logged.
pub async fn save_proposal(
    engine: &Rc<Engine>,
    subject: &Subject,
    proposal: &Proposal,
) -> Result<Ticket, StorageError> {
    let is_of = proposal.is_of(&subject.table.id.0, &subject.key.bytes);
    assert!(is_of, "a replica accepts proposals of the partition that it was asked about");
    let mut row = Row::new(engine, subject, proposal.ballot)?;
    row.set("proposal_ballot", &proposal.ballot.to_bytes());
    row.set_update("proposal", "proposal_version", &proposal.update)?;
    row.save().await
}

/// Saves what was decided, in place of what was accepted before.
///
/// # Errors
/// If it cannot be logged.
pub async fn save_commit(
    engine: &Rc<Engine>,
    subject: &Subject,
    proposal: &Proposal,
) -> Result<Ticket, StorageError> {
    let is_of = proposal.is_of(&subject.table.id.0, &subject.key.bytes);
    assert!(is_of, "a replica learns decisions of the partition that it was asked about");
    let mut row = Row::new(engine, subject, proposal.ballot)?;
    for name in ["proposal_ballot", "proposal", "proposal_version"] {
        row.clear(name);
    }
    row.set("most_recent_commit_at", &proposal.ballot.to_bytes());
    row.set_update("most_recent_commit", "most_recent_commit_version", &proposal.update)?;
    row.save().await
}
