//! How this node leaves its place: for good (`StorageService.decommission`), or for another token
//! (`move`).
//!
//! - `enough`: whether enough nodes are left.
//! - `give`: what it gives, and to whom.
//! - `transferred`: what it has given already.
//! - `error`: why it does not.
//!
//! A leaving node serves until all have heard that it has left, and what is written meanwhile goes
//! to whoever gains the range too. It gives up nothing before all of it is durable elsewhere. A
//! node that starts again before that is what it was: the operation is abandoned.

pub(super) mod enough;
mod error;
pub(super) mod give;
mod transferred;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use metrics::Level;
use schema::Keyspace;
use streaming::wire::Operation;
use streaming::{Give, Plan, Streaming};
use types::{Address, Token, TokenRange};

pub use error::RelocationError;

use super::available::Available;
use super::course::{Course, State};
use super::fetch::{Fetch, Source, Wanted, failures};
use super::join::Join;
use crate::hints::Handoff;
use crate::membership::{Life, Membership, Place, Stage};
use crate::peers::Peers;
use crate::ring_batch::RingBatches;
use crate::saved_place::{Bootstrap, SavedPlace};
use crate::scope::Scope;
use crate::shard_context::ShardContext;
use transferred::Transferred;

/// Where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// Nowhere.
    Out,
    /// To another token.
    To(Token),
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The others know that it gives up its ranges.
    Announce,
    /// What it has of them is elsewhere, and what it gains is here.
    Transfer,
    /// What it keeps for others is elsewhere.
    HandOver,
    /// Where it goes is saved.
    Record,
    /// It is there.
    Arrive,
}

const LEAVE: &[Step] =
    &[Step::Announce, Step::Transfer, Step::HandOver, Step::Record, Step::Arrive];
const MOVE: &[Step] = &[Step::Announce, Step::Transfer, Step::Record, Step::Arrive];

/// Streams of one round.
struct Round {
    /// By who gets them, and keyspace.
    gives: BTreeMap<Address, BTreeMap<String, Vec<TokenRange>>>,
    wanted: Wanted,
}

/// This node's way to another place; on the first shard.
pub struct Relocation {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    membership: Rc<Membership>,
    streaming: Rc<Streaming>,
    join: Rc<Join>,
    handoff: Rc<Handoff>,
    batches: Rc<RingBatches>,
    transferred: Transferred,
    available: Available,
    course: RefCell<Course<Step>>,
    goal: Cell<Option<Goal>>,
}

impl Relocation {
    pub(crate) fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        (membership, join): (&Rc<Membership>, &Rc<Join>),
        streaming: &Rc<Streaming>,
        handoff: &Rc<Handoff>,
        batches: &Rc<RingBatches>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            membership: Rc::clone(membership),
            streaming: Rc::clone(streaming),
            join: Rc::clone(join),
            handoff: Rc::clone(handoff),
            batches: Rc::clone(batches),
            transferred: Transferred::new(&shard.engine),
            available: Available::new(&shard.engine),
            course: RefCell::new(Course::idle()),
            goal: Cell::default(),
        })
    }

    /// In Cassandra's words (`StorageService.Mode`); none while the node keeps its place.
    pub fn mode(&self) -> Option<&'static str> {
        match (self.goal.get()?, self.course.borrow().state()) {
            (Goal::Out, State::Running) => Some("LEAVING"),
            (Goal::Out, State::Failed) => Some("DECOMMISSION_FAILED"),
            (Goal::Out, State::Done) => Some("DECOMMISSIONED"),
            (Goal::To(_), State::Running | State::Failed) => Some("MOVING"),
            (_, State::Idle) | (Goal::To(_), State::Done) => None,
        }
    }

    /// Gives all that it has to others, and leaves the ring. `forced`: even if a keyspace has fewer
    /// replicas then. False if it has left, or is about to.
    ///
    /// # Errors
    /// If it may not leave, or cannot give something: it can be tried again.
    pub async fn decommission(&self, forced: bool) -> Result<bool, RelocationError> {
        let mode = self.mode();
        if matches!(mode, Some("LEAVING" | "DECOMMISSIONED")) {
            return Ok(false);
        }
        if mode != Some("DECOMMISSION_FAILED") {
            self.check(forced).await?;
        }
        self.go(Goal::Out).await?;
        Ok(true)
    }

    /// Goes to another token (`nodetool move`).
    ///
    /// # Errors
    /// If it may not, or cannot give or fetch something: it can be tried again.
    pub async fn move_to(&self, token: Token) -> Result<(), RelocationError> {
        self.check_token(token)?;
        // one that failed may go elsewhere
        let has_failed = self.course.borrow().state() == State::Failed;
        if !(has_failed && matches!(self.goal.get(), Some(Goal::To(_)))) {
            self.check(true).await?;
        }
        self.go(Goal::To(token)).await
    }

    /// May it go to this token?
    pub(super) fn check_token(&self, token: Token) -> Result<(), RelocationError> {
        let ring = self.membership.ring().ok_or(RelocationError::NoMember)?;
        if ring.tokens().iter().any(|(owned, _)| *owned == token) {
            return Err(RelocationError::TokenTaken(token.0));
        }
        match self.membership.place().tokens.len() > 1 {
            true => Err(RelocationError::ManyTokens),
            false => Ok(()),
        }
    }

    /// May it give up its place?
    pub(super) async fn check(&self, forced: bool) -> Result<(), RelocationError> {
        if let Some(mode) = self.mode() {
            return Err(RelocationError::Busy(mode));
        }
        if self.membership.place().stage != Stage::Member {
            return Err(match self.join.mode() {
                "STARTING" => RelocationError::NoMember,
                mode => RelocationError::Busy(mode),
            });
        }
        let ring = self.membership.ring().ok_or(RelocationError::NoMember)?;
        if ring.members().len() < 2 {
            return Err(RelocationError::Alone);
        }
        let schema = self.shard.schema();
        for keyspace in schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual) {
            let Some(scope) = self.scope(keyspace)? else { continue };
            if !forced {
                enough::check(&scope.ring, keyspace, scope.ring.local())?;
            }
            if scope.placement.pending_ranges_of(scope.ring.local()).next().is_some() {
                return Err(RelocationError::Gaining);
            }
        }
        let moving = self.membership.moving();
        if !moving.is_empty() && self.shard.config.joining.is_consistent {
            return Err(RelocationError::OthersMove(moving));
        }
        Ok(())
    }

    fn scope(&self, keyspace: &Keyspace) -> Result<Option<Scope>, RelocationError> {
        let scope = self.peers.scope(keyspace);
        scope.map_err(|error| RelocationError::Streams(error.message))
    }

    #[track_caller]
    fn note(&self, level: Level, text: impl Into<String>) {
        self.peers.note(level, text.into());
    }

    async fn go(&self, goal: Goal) -> Result<(), RelocationError> {
        if self.course.borrow().state() == State::Running {
            return Err(RelocationError::Busy(self.mode().unwrap_or("NORMAL")));
        }
        let before = self.goal.replace(Some(goal));
        self.course.borrow_mut().begin(if goal == Goal::Out { LEAVE } else { MOVE });
        if before != Some(goal) {
            self.transferred.clear().await?;
            self.available.clear().await?;
        }
        loop {
            let next = self.course.borrow().next();
            let Some(step) = next else { return Ok(()) };
            let taken = self.take(step, goal).await;
            match taken {
                Ok(()) => self.course.borrow_mut().done(step),
                Err(error) => {
                    self.course.borrow_mut().failed();
                    if matches!(error, RelocationError::OthersMove(_)) {
                        // it kept its place
                        self.goal.set(None);
                    }
                    let text = match goal {
                        Goal::Out => format!(
                            "Error while decommissioning node: {error}. It is still in the ring: \
                             run nodetool decommission again to go on, or restart it to keep it"
                        ),
                        Goal::To(token) => format!(
                            "Error while moving to token {token}: {error}. Run nodetool move again \
                             to go on, or restart the node to keep it where it was"
                        ),
                    };
                    self.note(Level::Error, text);
                    return Err(error);
                }
            }
        }
    }

    async fn take(&self, step: Step, goal: Goal) -> Result<(), RelocationError> {
        let tokens = self.membership.place().tokens;
        match (step, goal) {
            (Step::Announce, _) => self.announce(goal, tokens).await,
            (Step::Transfer, _) => {
                self.shard.env.mark("ranges.moving");
                let transferred = self.transfer(goal).await;
                self.shard.env.mark("ranges.moved");
                transferred
            }
            (Step::HandOver, _) => self.hand_over().await,
            (Step::Record, Goal::Out) => {
                let bootstrap = Bootstrap::Decommissioned;
                Ok(self.join.save(SavedPlace { bootstrap, tokens }).await?)
            }
            (Step::Record, Goal::To(token)) => {
                let (bootstrap, tokens) = (Bootstrap::Completed, BTreeSet::from([token]));
                Ok(self.join.save(SavedPlace { bootstrap, tokens }).await?)
            }
            (Step::Arrive, Goal::Out) => {
                self.membership.withdraw();
                let unaware = self.membership.be_heard().await;
                if !unaware.is_empty() {
                    let text = RelocationError::Unheard(unaware).to_string();
                    self.note(Level::Warn, text);
                }
                // what was kept for others meanwhile: it has left, and no error brings it back
                if let Err(error) = self.hand_over().await {
                    let text = format!(
                        "{error}: what clients wrote here for nodes that were down, after this \
                         node had handed over its hints, is lost with it; repair those nodes"
                    );
                    self.note(Level::Warn, text);
                }
                self.note(Level::Info, "DECOMMISSIONED");
                Ok(self.transferred.clear().await?)
            }
            (Step::Arrive, Goal::To(token)) => {
                let tokens = BTreeSet::from([token]);
                self.membership.take_place(Place { stage: Stage::Member, tokens });
                self.available.clear().await?;
                Ok(self.transferred.clear().await?)
            }
        }
    }

    /// All others know who is to be written to before anything is given.
    async fn announce(&self, goal: Goal, tokens: BTreeSet<Token>) -> Result<(), RelocationError> {
        let stage = match goal {
            Goal::Out => Stage::Leaving,
            Goal::To(token) => Stage::Moving(token),
        };
        if self.shard.env.planted("leave_gives_unannounced") {
            return Ok(());
        }
        self.membership.take_place(Place { stage, tokens: tokens.clone() });
        let text = format!(
            "{}: waiting for all nodes to hear of it, at least for ring_delay ({:?})",
            self.mode().unwrap_or_default(),
            self.shard.config.ring_delay
        );
        self.note(Level::Info, text);
        let unaware = self.membership.be_heard().await;
        if let Some(rival) = self.rival().await {
            self.membership.take_place(Place { stage: Stage::Member, tokens });
            return Err(RelocationError::OthersMove(vec![rival]));
        }
        match unaware.is_empty() {
            true => Ok(()),
            false => Err(RelocationError::Unheard(unaware)),
        }
    }

    /// Another that was not seen moving when this began, and goes on: of two that leave or move the
    /// one of the lower address does. One that joins may have looked before it heard of this node;
    /// so may one that leaves or moves and that this one does not give way for: it is waited for.
    async fn rival(&self) -> Option<Address> {
        let (local, joining) = (self.membership.local(), &self.shard.config.joining);
        if !joining.is_consistent || self.shard.env.planted("leave_sees_no_rival") {
            return None;
        }
        let nodes = self.membership.nodes();
        let goes_on = |life: Life, address: Address| match life {
            Life::Normal => false,
            Life::Joining | Life::Replacing(_) => true,
            Life::Leaving | Life::Moving(_) => address < local,
        };
        let mut rivals = nodes.values().filter(|node| goes_on(node.life, node.address));
        let rival = rivals.next().map(|node| node.address);
        match rival {
            None => self.membership.until_none(|node| node.life != Life::Normal).await,
            rival => rival,
        }
    }

    /// Gives and fetches all; again, if meanwhile a node came back that may have written past who
    /// gains.
    async fn transfer(&self, goal: Goal) -> Result<(), RelocationError> {
        if self.shard.env.planted("leave_gives_nothing") {
            return Ok(());
        }
        loop {
            let aware = self.membership.aware();
            self.transfer_all(goal).await?;
            let late = self.membership.late(&aware);
            if late.is_empty() {
                return Ok(());
            }
            let names: Vec<_> = late.iter().map(|node| format!("/{node}")).collect();
            let text = format!(
                "{}: streaming again, as {} came back meanwhile and may have written past the \
                 nodes that gain ranges",
                self.mode().unwrap_or_default(),
                names.join(", ")
            );
            self.note(Level::Warn, text);
            self.transferred.clear().await?;
            self.available.clear().await?;
            let unaware = self.membership.be_heard().await;
            if !unaware.is_empty() {
                return Err(RelocationError::Unheard(unaware));
            }
        }
    }

    /// Gives and fetches until nothing is left: keyspaces may be made meanwhile.
    async fn transfer_all(&self, goal: Goal) -> Result<(), RelocationError> {
        loop {
            let round = self.round(goal)?;
            if round.gives.is_empty() && round.wanted.asks.is_empty() {
                return Ok(());
            }
            self.stream(round, goal).await?;
        }
    }

    fn round(&self, goal: Goal) -> Result<Round, RelocationError> {
        let mut round = Round { gives: BTreeMap::new(), wanted: Wanted::default() };
        let schema = self.shard.schema();
        let is_consistent = self.shard.config.joining.is_consistent;
        let from = if is_consistent { Source::Giver } else { Source::Anybody };
        for keyspace in schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual) {
            let Some(scope) = self.scope(keyspace)? else { continue };
            let given = |node| self.transferred.of(node, &keyspace.name);
            for (node, ranges) in give::gives(&scope.ring, keyspace, given)? {
                round.gives.entry(node).or_default().insert(keyspace.name.to_string(), ranges);
            }
            if goal != Goal::Out {
                let has = self.available.of(&keyspace.name);
                let of = (&*keyspace.name, &keyspace.replication.strategy);
                Fetch::new(&scope.ring, from).plan(of, &has, &mut round.wanted)?;
            }
        }
        Ok(round)
    }

    async fn stream(&self, round: Round, goal: Goal) -> Result<(), RelocationError> {
        let schema = self.shard.schema();
        let operation = match goal {
            Goal::Out => Operation::Unbootstrap,
            Goal::To(_) => Operation::Relocation,
        };
        let mut plan = Plan::new(operation);
        for (node, keyspaces) in &round.gives {
            let of = |(name, ranges): (&String, &Vec<TokenRange>)| {
                let tables = schema.keyspace(name).into_iter().flat_map(|of| of.tables.values());
                tables.map(|table| give(table, ranges)).collect::<Vec<_>>()
            };
            let gives: Vec<Give> = keyspaces.iter().flat_map(of).collect();
            if !gives.is_empty() {
                plan.gives.insert(*node, gives);
            }
        }
        let endpoint = self.membership.local();
        for (node, asks) in &round.wanted.asks {
            let requests = asks.iter().map(|ask| ask.request(endpoint));
            plan.requests.insert(*node, requests.collect());
        }
        let nodes: Vec<_> = plan.peers().iter().map(|node| format!("/{node}")).collect();
        if !nodes.is_empty() {
            let mode = self.mode().unwrap_or_default();
            self.note(Level::Info, format!("{mode}: streaming data with {}", nodes.join(", ")));
        }
        let failed = match plan.peers().is_empty() {
            true => Vec::new(),
            false => self.streaming.run(plan).await.err().unwrap_or_default(),
        };
        let counts_all = self.shard.env.planted("leave_counts_what_failed");
        let did = |node: &Address| counts_all || !failed.iter().any(|(other, _)| other == node);
        for (node, keyspaces) in round.gives.iter().filter(|(node, _)| did(node)) {
            for (keyspace, ranges) in keyspaces {
                self.transferred.add(*node, keyspace, ranges).await?;
            }
        }
        for (keyspace, ranges) in super::join::came(&round.wanted, did) {
            self.available.add(&keyspace, &ranges).await?;
        }
        if failed.is_empty() || counts_all {
            return Ok(());
        }
        Err(RelocationError::Streams(failures(&failed)))
    }

    /// Writes that others missed and batches that are kept here: for whom they are, or to the
    /// nearest node, which keeps them from then on.
    async fn hand_over(&self) -> Result<(), RelocationError> {
        self.batches.replay_late_batches().await?;
        if self.shard.env.planted("leave_drops_hints") {
            return Ok(());
        }
        let ring = self.membership.ring().ok_or(RelocationError::NoMember)?;
        let mut others: Vec<_> = ring.members().to_vec();
        others.retain(|node| *node != ring.local() && ring.is_up(*node));
        let proximity = ring::Proximity { by_place: true, scores: None };
        proximity.sort(&ring, &mut others);
        let nearest = others.first().map(|node| ring.node(*node).address);
        let nearest = nearest.ok_or(RelocationError::Alone)?;
        match self.handoff.hand_over(nearest).await {
            true => Ok(()),
            false => Err(RelocationError::Hints(nearest)),
        }
    }
}

fn give(table: &schema::Table, ranges: &[TokenRange]) -> Give {
    Give { table: table.id, ranges: TokenRange::normalize(ranges.iter().copied()) }
}
