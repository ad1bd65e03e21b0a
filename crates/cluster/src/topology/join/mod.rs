//! How this node becomes a part of the ring (`StorageService.joinTokenRing`): as a member that
//! returns, as a new one that fetches the data of its tokens, in the place of a node that is dead,
//! or, by the operator's word, without data.
//!
//! - `intent`: which of these it is.
//! - `steps`: the steps of it, in their order.
//! - `tokens`: which tokens a new node takes.
//! - `error`: why it does not join.
//!
//! Each step that must outlive a crash is saved before the next one begins. A node that starts
//! again begins anew with the tokens that it had.

mod error;
mod intent;
mod steps;
mod tokens;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use gossip::States;
use metrics::Level;
use storage::StorageError;
use streaming::wire::Operation;
use streaming::{Plan, Streaming};
use types::{Address, Token, TokenRange};

pub use error::JoinError;
pub(super) use error::list;
pub use steps::Standing;

use super::available::Available;
use super::fetch::{Ask, Fetch, Source, Wanted, failures};
use crate::membership::{Asked, Aware, Life, Membership, NodeInfo, Nodes, Place, Stage};
use crate::peers::Peers;
use crate::saved_place::{Bootstrap, SavedPlace, set_host_id, take_host_id};
use crate::shard_context::ShardContext;
use intent::{Intent, Situation};
use steps::{Kind, Step, Steps};
use tokens::Choice;
pub(super) use tokens::{allocation, most_replicas};

/// How long a new node waits until the ring says what its nodes are.
const TOLD_AFTER: Duration = Duration::from_secs(30);
/// After what time it asks again.
const ASKED_AGAIN: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// Other nodes of the ring.
    pub others: usize,
    /// Those that are down.
    pub down: Vec<Address>,
}

/// This node's way into the ring; on the first shard.
pub struct Join {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    membership: Rc<Membership>,
    streaming: Rc<Streaming>,
    available: Available,
    saved: RefCell<SavedPlace>,
    steps: RefCell<Steps>,
    /// Who knew that this node is to be written to when the first of what is here was fetched.
    aware: RefCell<Option<Aware>>,
    /// How it joins, once that is known.
    intent: RefCell<Option<Intent>>,
}

impl Join {
    pub(crate) fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        membership: &Rc<Membership>,
        streaming: &Rc<Streaming>,
        saved: SavedPlace,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            membership: Rc::clone(membership),
            streaming: Rc::clone(streaming),
            available: Available::new(&shard.engine),
            saved: RefCell::new(saved),
            steps: RefCell::new(Steps::apart()),
            aware: RefCell::default(),
            intent: RefCell::default(),
        })
    }

    /// Where the node stands.
    pub fn standing(&self) -> Standing {
        self.steps.borrow().standing()
    }

    /// How far it is with its data.
    pub fn bootstrap(&self) -> Bootstrap {
        self.saved.borrow().bootstrap
    }

    /// In Cassandra's words (`StorageService.Mode`).
    pub fn mode(&self) -> &'static str {
        match self.standing() {
            Standing::Apart => "STARTING",
            Standing::Joining | Standing::Surveying => "JOINING",
            Standing::Broken => "JOINING_FAILED",
            Standing::Member => "NORMAL",
        }
    }

    /// Takes part in gossip and, unless the operator wants to say when, joins. A node whose data
    /// could not be fetched stays: it can go on later.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub(crate) async fn start(&self) -> Result<Joined, JoinError> {
        if self.bootstrap() != Bootstrap::Completed {
            self.available.clear().await?;
        }
        let asked = self.ask_ring().await?;
        let intent = self.situation((&asked.states, &asked.others), |now| now.intent());
        if !self.shard.config.joining.at_start {
            match intent {
                // it does not move yet
                Ok(_) | Err(JoinError::OthersMove(_)) => {}
                Err(error) => return Err(error),
            }
            let tokens = self.saved.borrow().tokens.clone();
            let stage = if tokens.is_empty() { Stage::Apart } else { Stage::Hibernating };
            self.enter(asked, Place { stage, tokens }, (Kind::Return, None)).await?;
            let text = "Not joining ring as requested. Use nodetool join to initiate ring joining";
            self.note(Level::Info, text);
            return Ok(self.joined());
        }
        let intent = intent?;
        let stage = match (intent.kind, &intent.replaces) {
            (Kind::Return, _) => Stage::Member,
            (_, Some(replaced)) if replaced.host_id.is_some() => Stage::Hibernating,
            _ => Stage::Apart,
        };
        if let Some(host_id) = intent.replaces.as_ref().and_then(|replaced| replaced.host_id) {
            self.note(
                Level::Warn,
                "Writes will not be forwarded to this node during replacement because it has the \
                 same address as the node to be replaced. If that node was down for longer than \
                 max_hint_window, run a repair afterwards",
            );
            set_host_id(&self.shard.engine, host_id).await?;
        }
        let tokens = if stage == Stage::Apart { BTreeSet::new() } else { intent.tokens.clone() };
        let dead = intent.replaces.as_ref().map(|replaced| replaced.address);
        self.enter(asked, Place { stage, tokens }, (intent.kind, dead)).await?;
        let intent = self.of_seed(intent)?;
        self.begin(intent);
        self.run().await?;
        Ok(self.joined())
    }

    /// Asks the ring what it knows, until it says of all that own tokens what they are. A node that
    /// started a moment ago knows of the others only what it saved: who asks that one finds a ring
    /// without members, and would join it without data.
    async fn ask_ring(&self) -> Result<Asked, JoinError> {
        let env = &self.shard.env;
        let limit = env.now() + TOLD_AFTER;
        loop {
            let asked = self.membership.ask_ring().await?;
            let asked = asked.ok_or_else(|| JoinError::NoPeers(self.membership.silent_seeds()))?;
            let untold = self.situation((&asked.states, &asked.others), |now| now.untold());
            match untold.is_empty() {
                true => return Ok(asked),
                false if env.now() >= limit => return Err(JoinError::Unknown(untold)),
                false => env.sleep(ASKED_AGAIN).await,
            }
        }
    }

    /// A seed of a ring without data joins at once, so that the seeds of a new ring can start
    /// together. In Cassandra it does so with data, too, and lacks it.
    fn of_seed(&self, intent: Intent) -> Result<Intent, JoinError> {
        let is_new = intent.kind == Kind::Fetch && intent.replaces.is_none();
        if !is_new || !self.membership.is_seed() {
            return Ok(intent);
        }
        let schema = self.shard.schema();
        let mut keyspaces = schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual);
        if keyspaces.all(|keyspace| cql::is_system_keyspace(&keyspace.name)) {
            let text =
                "This node will not auto bootstrap because it is configured to be a seed node.";
            self.note(Level::Info, text);
            return Ok(Intent { kind: Kind::Settle, ..intent });
        }
        self.situation_now(|now| now.check_moving())?;
        Ok(intent)
    }

    /// Fetches what could not be fetched, and joins then.
    ///
    /// # Errors
    /// If there is nothing to go on with, or it fails again.
    pub async fn resume(&self) -> Result<(), JoinError> {
        if !self.steps.borrow_mut().resume() {
            return Err(JoinError::NotBroken);
        }
        self.note(Level::Info, "Resuming bootstrap...");
        self.run().await?;
        match self.standing() {
            Standing::Broken => Err(JoinError::Incomplete),
            _ => Ok(()),
        }
    }

    /// Joins by the operator's word, where the node waits for it.
    ///
    /// # Errors
    /// If it does not wait for it, or cannot join.
    pub async fn join(&self) -> Result<(), JoinError> {
        match self.standing() {
            Standing::Member => return Err(JoinError::Joined),
            Standing::Joining | Standing::Broken => return Err(JoinError::Incomplete),
            Standing::Surveying => {
                self.note(
                    Level::Info,
                    "Leaving write survey mode and joining ring at operator request",
                );
                self.steps.borrow_mut().end_survey();
            }
            Standing::Apart => {
                self.note(Level::Info, "Joining ring by operator request");
                let intent = self.situation_now(|now| now.intent())?;
                let intent = self.of_seed(intent)?;
                self.begin(intent);
            }
        }
        self.run().await?;
        match self.standing() {
            Standing::Broken => Err(JoinError::Incomplete),
            _ => Ok(()),
        }
    }

    /// Asks about this node and what it heard at the start.
    fn situation<T>(
        &self,
        (states, others): (&States, &Nodes),
        ask: impl FnOnce(&Situation<'_>) -> T,
    ) -> T {
        ask(&Situation {
            config: &self.shard.config,
            local: self.membership.local(),
            host_id: self.shard.engine.host_id(),
            saved: &self.saved.borrow(),
            is_seed: self.membership.is_seed(),
            states,
            others,
        })
    }

    /// Asks about this node and what it hears now.
    fn situation_now<T>(&self, ask: impl FnOnce(&Situation<'_>) -> T) -> T {
        let all = self.membership.endpoints().into_iter();
        let states = all.map(|endpoint| (endpoint.address, endpoint.state)).collect();
        self.situation((&states, &self.membership.nodes()), ask)
    }

    fn begin(&self, intent: Intent) {
        let surveys = self.shard.config.joining.surveys_writes;
        self.steps.borrow_mut().begin(intent.kind, surveys);
        self.intent.replace(Some(intent));
    }

    fn joined(&self) -> Joined {
        let (others, down) = self.membership.census();
        Joined { others, down }
    }

    #[track_caller]
    fn note(&self, level: Level, text: impl Into<String>) {
        self.peers.note(level, text.into());
    }

    /// Takes part in gossip; `dead`: whose place it takes.
    async fn enter(
        &self,
        asked: Asked,
        place: Place,
        (kind, dead): (Kind, Option<Address>),
    ) -> Result<(), JoinError> {
        let told = asked.others.clone();
        let behind = self.membership.take_part(asked, place, dead).await;
        if kind == Kind::Fetch {
            // what is not known of cannot be fetched from
            let unknown = self.membership.unheard_of(&told);
            if !unknown.is_empty() {
                return Err(JoinError::Unknown(unknown));
            }
            if !behind.is_empty() {
                return Err(JoinError::NoSchema(behind));
            }
        }
        if !behind.is_empty() {
            let names: Vec<_> = behind.iter().map(|node| format!("/{node}")).collect();
            let text = format!(
                "did not receive the schema of {} in time: joining without it, and still asking \
                 for it",
                names.join(", ")
            );
            self.note(Level::Warn, text);
        }
        let unserved = schema::unserved(&self.shard.schema());
        if !told.is_empty() && !unserved.is_empty() {
            let names: Vec<_> = unserved.iter().map(ToString::to_string).collect();
            return Err(JoinError::Unserved(names.join("; ")));
        }
        Ok(())
    }

    /// Takes the steps that can be taken now.
    async fn run(&self) -> Result<(), JoinError> {
        loop {
            let next = self.steps.borrow().next();
            let Some(step) = next else { return Ok(()) };
            let taken = self.take(step).await;
            match taken {
                Ok(()) => self.steps.borrow_mut().done(step),
                Err(error) => {
                    self.steps.borrow_mut().failed(step);
                    if !matches!(step, Step::Fetch | Step::Confirm) {
                        return Err(error);
                    }
                    let text = format!(
                        "bootstrap failed, this node is not in the ring yet: {error}. Run nodetool \
                         bootstrap resume --force to go on, or start the node again"
                    );
                    self.note(Level::Error, text);
                    return Ok(());
                }
            }
            if self.standing() == Standing::Surveying {
                self.note(
                    Level::Info,
                    "Startup complete, but write survey mode is active, not becoming an active \
                     ring member. Use nodetool join to finalize ring joining",
                );
            }
        }
    }

    async fn take(&self, step: Step) -> Result<(), JoinError> {
        let intent = self.intent.borrow().clone().expect("a node that joins knows how");
        match step {
            Step::Check => self.check(intent).await,
            Step::Record => {
                if let Some(host_id) = intent.replaces.and_then(|replaced| replaced.host_id) {
                    take_host_id(&self.shard.engine, host_id).await?;
                }
                let before = self.bootstrap();
                let fetches = intent.kind == Kind::Fetch;
                let bootstrap = if fetches { Bootstrap::InProgress } else { before };
                Ok(self.save(SavedPlace { bootstrap, tokens: intent.tokens }).await?)
            }
            Step::Announce => self.announce(&intent).await,
            Step::Fetch => self.fetch(&intent).await,
            Step::Confirm => self.confirm(&intent).await,
            Step::Complete => {
                if intent.kind == Kind::Fetch {
                    self.check_tokens(&intent)?;
                }
                let tokens = intent.tokens;
                self.save(SavedPlace { bootstrap: Bootstrap::Completed, tokens }).await?;
                if intent.kind == Kind::Fetch {
                    self.available.clear().await?;
                }
                Ok(())
            }
            Step::Serve => {
                self.membership.take_place(Place { stage: Stage::Member, tokens: intent.tokens });
                Ok(())
            }
        }
    }

    /// Saves this node's place, for good.
    pub(super) async fn save(&self, place: SavedPlace) -> Result<(), StorageError> {
        place.save(&self.shard.engine).await?;
        self.saved.replace(place);
        Ok(())
    }

    /// Tokens are chosen, and who is replaced is dead.
    async fn check(&self, mut intent: Intent) -> Result<(), JoinError> {
        if let Some(replaced) = &intent.replaces
            && replaced.host_id.is_none()
            && !self.membership.is_silent(replaced.address).await
        {
            return Err(JoinError::ReplaceLive(replaced.address));
        }
        if intent.tokens.is_empty() {
            let ring = self.membership.ring();
            let nodes = ring.iter().flat_map(|ring| ring.nodes());
            let choice = Choice {
                env: &self.shard.env,
                config: &self.shard.config,
                schema: &self.shard.schema(),
                identity: &self.shard.identity,
                local: self.membership.local(),
                nodes: nodes.filter(|node| !node.is_local).cloned().collect(),
                taken: self.situation_now(|now| now.taken()),
            };
            intent.tokens = choice.tokens()?;
            self.intent.replace(Some(intent));
        }
        Ok(())
    }

    /// All others know that this node is to be written to before anything is fetched.
    async fn announce(&self, intent: &Intent) -> Result<(), JoinError> {
        let stage = match &intent.replaces {
            // nobody writes to it before it serves: it takes its own place again
            Some(replaced) if replaced.host_id.is_some() => return Ok(()),
            Some(replaced) => Stage::Replacing(replaced.address),
            None => Stage::Joining,
        };
        if self.shard.env.planted("join_fetches_unannounced") {
            return Ok(());
        }
        self.membership.be_seen().await;
        self.membership.take_place(Place { stage, tokens: intent.tokens.clone() });
        let text = format!(
            "JOINING: waiting for all nodes to hear of it, at least for ring_delay \
             ({:?})",
            self.shard.config.ring_delay
        );
        self.note(Level::Info, text);
        let unaware = self.membership.be_heard().await;
        if let Some(rival) = self.rival(intent).await {
            self.membership.withdraw();
            return Err(JoinError::OthersMove(vec![rival]));
        }
        self.check_tokens(intent)?;
        if unaware.is_empty() {
            return Ok(());
        }
        if self.shard.config.joining.is_consistent {
            self.membership.withdraw();
            return Err(JoinError::Unheard(unaware));
        }
        let text = JoinError::Unheard(unaware).to_string();
        self.note(Level::Warn, text);
        Ok(())
    }

    /// Another node for which this one gives way. One that this one does not give way for may have
    /// looked before it heard of this node: it goes on then, and is waited for.
    async fn rival(&self, intent: &Intent) -> Option<Address> {
        let now = || self.situation_now(|now| now.rival(intent));
        if now().is_some() || !self.shard.config.joining.is_consistent {
            return now();
        }
        let joins = |node: &NodeInfo| matches!(node.life, Life::Joining | Life::Replacing(_));
        match self.membership.until_none(joins).await {
            None => now(),
            other => other,
        }
    }

    /// No member may have taken one of the tokens since they were chosen: two nodes that start
    /// together may choose the same ones. This one withdraws then.
    fn check_tokens(&self, intent: &Intent) -> Result<(), JoinError> {
        if intent.replaces.is_some() || self.shard.env.planted("join_shares_tokens") {
            return Ok(());
        }
        let others = self.membership.nodes();
        let members = others.values().filter(|node| node.life.is_member());
        let mut taken = members.flat_map(|node| node.tokens.iter().map(move |of| (*of, node)));
        match taken.find(|(token, _)| intent.tokens.contains(token)) {
            Some((Token(token), owner)) => {
                self.membership.withdraw();
                Err(JoinError::TokenTaken { token, owner: owner.address })
            }
            None => Ok(()),
        }
    }

    async fn fetch(&self, intent: &Intent) -> Result<(), JoinError> {
        self.shard.env.mark("ranges.moving");
        let fetched = self.fetch_until_sure(intent).await;
        self.shard.env.mark("ranges.moved");
        fetched
    }

    /// Fetches all; again, if meanwhile a node came back that may have written past this one.
    async fn fetch_until_sure(&self, intent: &Intent) -> Result<(), JoinError> {
        if self.shard.env.planted("join_serves_empty") {
            return Ok(());
        }
        if self.membership.place().stage == Stage::Hibernating {
            // nobody writes to it, whether he has heard of it or not
            return self.fetch_all(intent).await;
        }
        loop {
            // an earlier attempt may have left ranges that are here
            let aware = self.aware.take().unwrap_or_else(|| self.membership.aware());
            self.aware.replace(Some(aware.clone()));
            self.fetch_all(intent).await?;
            let late = self.membership.late(&aware);
            if late.is_empty() {
                return Ok(());
            }
            self.begin_again(&late).await?;
        }
    }

    /// What was fetched is fetched again, once all have heard of this node.
    async fn begin_again(&self, late: &[Address]) -> Result<(), JoinError> {
        let text = format!(
            "JOINING: fetching again, as {} lost sight of this node meanwhile and may have written \
             past it",
            list(late)
        );
        self.note(Level::Warn, text);
        self.aware.take();
        self.available.clear().await?;
        let unaware = self.membership.be_heard().await;
        match unaware.is_empty() {
            true => Ok(()),
            false => Err(JoinError::Unheard(unaware)),
        }
    }

    /// A node that was cut off since it fetched may have been forgotten by the others: they write
    /// past it. It fetches again then, and serves nobody before it reaches them.
    async fn confirm(&self, intent: &Intent) -> Result<(), JoinError> {
        let is_written_to = self.membership.place().stage != Stage::Hibernating;
        if !self.shard.config.joining.is_consistent
            || !is_written_to
            || self.shard.env.planted("join_serves_forgotten")
        {
            return Ok(());
        }
        loop {
            let missing = self.membership.be_confirmed().await;
            if !missing.is_empty() {
                return Err(JoinError::CutOff(missing));
            }
            let aware = self.aware.borrow().clone().unwrap_or_default();
            let late = self.membership.late(&aware);
            if late.is_empty() {
                return Ok(());
            }
            self.begin_again(&late).await?;
            self.fetch(intent).await?;
        }
    }

    /// Fetches until nothing is missing: keyspaces may be made meanwhile.
    async fn fetch_all(&self, intent: &Intent) -> Result<(), JoinError> {
        loop {
            let wanted = self.wanted(intent)?;
            for Ask { keyspace, ranges } in &wanted.lost {
                let text = format!(
                    "Unable to find sufficient sources for streaming {} ranges in keyspace \
                     {keyspace} with RF=1: their data is lost with the node that had it",
                    ranges.len()
                );
                self.note(Level::Warn, text);
                self.available.add(keyspace, ranges).await?;
            }
            if wanted.asks.is_empty() {
                return Ok(());
            }
            if !wanted.absent.is_empty() {
                let names: Vec<_> = wanted.absent.iter().map(|node| format!("/{node}")).collect();
                let text = format!(
                    "{} are down: what they alone have in common with the node that is replaced \
                     does not come; repair this node once they are up",
                    names.join(", ")
                );
                self.note(Level::Warn, text);
            }
            self.stream(wanted).await?;
        }
    }

    fn wanted(&self, intent: &Intent) -> Result<Wanted, JoinError> {
        let schema = self.shard.schema();
        let from = match (self.shard.config.joining.is_consistent, &intent.replaces) {
            _ if self.shard.env.planted("join_fetches_from_anybody") => Source::Anybody,
            (false, _) => Source::Anybody,
            (true, Some(_)) => Source::Survivors,
            (true, None) => Source::Giver,
        };
        let mut wanted = Wanted::default();
        for keyspace in schema.keyspaces().values().filter(|keyspace| !keyspace.is_virtual) {
            let scope = self.peers.scope(keyspace);
            let scope = scope.map_err(|error| JoinError::Streams(error.message))?;
            let Some(scope) = scope else { continue };
            let has = self.available.of(&keyspace.name);
            let of = (&*keyspace.name, &keyspace.replication.strategy);
            Fetch::new(&scope.ring, from).plan(of, &has, &mut wanted)?;
        }
        Ok(wanted)
    }

    async fn stream(&self, wanted: Wanted) -> Result<(), JoinError> {
        let endpoint = self.membership.local();
        let mut plan = Plan::new(Operation::Bootstrap);
        let request = |ask: &Ask| ask.request(endpoint);
        for (node, asks) in &wanted.asks {
            plan.requests.insert(*node, asks.iter().map(request).collect());
        }
        let nodes: Vec<_> = wanted.asks.keys().map(|node| format!("/{node}")).collect();
        self.note(Level::Info, format!("JOINING: fetching data from {}", nodes.join(", ")));
        let ran = self.streaming.run(plan).await;
        let failed = ran.err().unwrap_or_default();
        let has_failed = |node: &Address| failed.iter().any(|(other, _)| other == node);
        let counts_all = self.shard.env.planted("join_counts_what_failed");
        for (keyspace, ranges) in came(&wanted, |node| !has_failed(node) || counts_all) {
            self.available.add(&keyspace, &ranges).await?;
        }
        if failed.is_empty() {
            return Ok(());
        }
        Err(JoinError::Streams(failures(&failed)))
    }
}

/// Ranges by keyspace that came from all who were asked for them.
pub(super) fn came(
    wanted: &Wanted,
    did_come: impl Fn(&Address) -> bool,
) -> Vec<(String, Vec<TokenRange>)> {
    let (mut came, mut missing) = (Vec::new(), BTreeSet::new());
    for (node, asks) in &wanted.asks {
        for Ask { keyspace, ranges } in asks {
            match did_come(node) {
                true => came.push((keyspace.clone(), ranges.clone())),
                false => missing.extend(ranges.iter().map(|range| (keyspace.clone(), *range))),
            }
        }
    }
    for (keyspace, ranges) in &mut came {
        ranges.retain(|range| !missing.contains(&(keyspace.clone(), *range)));
    }
    came
}
