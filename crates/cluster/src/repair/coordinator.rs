//! Repairs that this node coordinates (`RepairCoordinator`, `AbstractRepairTask`): what `nodetool
//! repair` starts.
//!
//! Ranges that the same nodes have are a session. A session has a job for each table. As many jobs
//! as `--job-threads` says go on at a time; Cassandra begins all of them at once.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use env::Class;
use env::sync::Semaphore;
use internode::Verb;
use metrics::Level;
use repair::wire::{Cleanup, FailSession, Prepare, PreviewKind, SessionState};
use repair::{NodeSettings, RepairOptions};
use ring::Ring;
use schema::{Keyspace, Strategy, Table};
use types::{Address, TokenRange, Uuid};

use super::asks::Asks;
use super::command::{EventKind, RepairCommand, Step};
use super::consistent::{Coordinated, LocalSession};
use super::history::History;
use super::job::{JobDone, Jobs, Session};
use super::neighbors::{Among, CommonRange, Neighborhood, all_shown, common};
use super::participant::Participant;
use super::preview;
use crate::peers::Peers;
use crate::scope::Scope;
use crate::shard_context::ShardContext;

/// Commands that are still shown when they are over.
const SHOWN_MAX: usize = 100;

/// Coordinates repairs; on the first shard.
pub struct RepairCoordinator {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
    participant: Rc<Participant>,
    coordinated: Rc<Coordinated>,
    jobs: Rc<Jobs>,
    asks: Rc<Asks>,
    history: Rc<History>,
    commands: RefCell<BTreeMap<u32, Rc<RepairCommand>>>,
    last: Cell<u32>,
}

/// A repair under way.
struct Running {
    command: Rc<RepairCommand>,
    options: RepairOptions,
    tables: Vec<String>,
    sessions: Vec<CommonRange>,
    nodes: BTreeSet<Address>,
}

impl Running {
    fn is_incremental(&self) -> bool {
        self.options.is_incremental && !self.options.preview.is_preview()
    }

    /// When what is repaired counts as that, in milliseconds since 1970; 0 for never: not all
    /// replicas take part (`ActiveRepairService.getRepairedAt`).
    fn repaired_at(&self, now: i64) -> i64 {
        let is_everybody = self.options.is_global() && self.sessions.iter().all(|it| !it.skips);
        if self.options.is_incremental && is_everybody { now } else { 0 }
    }
}

impl RepairCoordinator {
    pub(super) fn new(
        (shard, peers): (&Rc<ShardContext>, &Rc<Peers>),
        (participant, coordinated): (&Rc<Participant>, &Rc<Coordinated>),
        jobs: &Rc<Jobs>,
        asks: &Rc<Asks>,
        history: &Rc<History>,
    ) -> Rc<Self> {
        Rc::new(Self {
            shard: Rc::clone(shard),
            peers: Rc::clone(peers),
            participant: Rc::clone(participant),
            coordinated: Rc::clone(coordinated),
            jobs: Rc::clone(jobs),
            asks: Rc::clone(asks),
            history: Rc::clone(history),
            commands: RefCell::default(),
            last: Cell::default(),
        })
    }

    /// Starts a repair of a keyspace; none where there is nothing to repair.
    ///
    /// # Errors
    /// In Cassandra's words, if the options make no sense.
    pub fn start(
        self: &Rc<Self>,
        keyspace: &str,
        options: &BTreeMap<String, String>,
    ) -> Result<Option<Rc<RepairCommand>>, String> {
        let of = self.shard.config.repair;
        let settings = NodeSettings {
            data_center: self.shard.identity.data_center.clone(),
            optimises_incremental: of.optimises_incremental,
            optimises_full: of.optimises_full,
            optimises_preview: of.optimises_preview,
        };
        let options = RepairOptions::parse(options, settings);
        let mut options = options.map_err(|error| error.to_string())?;
        let schema = self.shard.schema();
        let unknown = || format!("Keyspace [{keyspace}] does not exist.");
        let found = schema.keyspace(keyspace).ok_or_else(unknown)?;
        self.check_centers(&options)?;
        let scope = self.scope(found)?;
        let Some(scope) = scope.filter(|scope| scope.placement.replication_factor() > 1) else {
            return Ok(None);
        };
        let of = Neighborhood { ring: &scope.ring, placement: &scope.placement };
        if options.ranges.is_empty() {
            let ranges = match options.is_primary_range {
                true => of.primary_ranges(options.is_of_local_data_center()),
                false => of.local_ranges(),
            };
            options.ranges = ranges.into_iter().collect();
        }
        if options.ranges.is_empty() {
            return Ok(None);
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        let id = Uuid::from_bytes(self.shard.time_uuid());
        let command = Rc::new(RepairCommand::new(number, id, keyspace.to_owned()));
        self.show(&command);
        let (this, running) = (Rc::clone(self), Rc::clone(&command));
        self.shard.env.spawn(Class::Streaming, async move { this.run(running, options).await });
        Ok(Some(command))
    }

    /// A repair, by its number.
    pub fn command(&self, number: u32) -> Option<Rc<RepairCommand>> {
        self.commands.borrow().get(&number).cloned()
    }

    fn show(&self, command: &Rc<RepairCommand>) {
        let mut commands = self.commands.borrow_mut();
        commands.insert(command.number, Rc::clone(command));
        while commands.len() > SHOWN_MAX {
            let over = commands.iter().find(|(_, command)| command.is_over()).map(|(at, _)| *at);
            let Some(over) = over else { break };
            commands.remove(&over);
        }
    }

    fn scope(&self, keyspace: &Keyspace) -> Result<Option<Scope>, String> {
        if keyspace.replication.strategy == Strategy::Local {
            return Ok(None);
        }
        let scope = self.peers.scope(keyspace).map_err(|error| error.message)?;
        // who is alone in its ring has replicas to miss
        let alone = || {
            let ring = self.peers.ring()?;
            let placement = ring.placement(&keyspace.replication.strategy).cloned()?;
            Some(Scope { ring, placement })
        };
        Ok(scope.or_else(alone))
    }

    fn check_centers(&self, options: &RepairOptions) -> Result<(), String> {
        let own = &self.shard.identity.data_center;
        let asked = &options.data_centers;
        let list = |names: Vec<&String>| {
            let names: Vec<_> = names.into_iter().map(String::as_str).collect();
            format!("[{}]", names.join(", "))
        };
        if !asked.is_empty() && !asked.contains(own) {
            return Err(format!(
                "the local data center must be part of the repair; requested {} but DC is {own}",
                list(asked.iter().collect())
            ));
        }
        let ring = self.peers.ring();
        let of = |ring: &Ring| -> BTreeSet<String> {
            ring.members().iter().map(|node| ring.node(*node).data_center.to_string()).collect()
        };
        let known = ring.map(|ring| of(&ring)).unwrap_or_default();
        let missing: Vec<_> = asked.iter().filter(|center| !known.contains(*center)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(format!("data center(s) {} not found", list(missing))),
        }
    }

    fn tell(&self, command: &RepairCommand, kind: EventKind, message: String) {
        command.tell(&self.shard.env, kind, message);
    }

    async fn run(self: Rc<Self>, command: Rc<RepairCommand>, options: RepairOptions) {
        let started = self.shard.env.now();
        let is_preview = options.preview.is_preview();
        let ended = self.repair(&command, options).await;
        let number = command.number;
        match ended {
            Ok(message) => {
                self.tell(&command, EventKind::Success, message.clone());
                command.reach(Step::Over);
                let took = words(self.shard.env.now().since(started).as_secs());
                let text = format!("Repair command #{number} finished in {took}");
                self.peers.note(Level::Info, format!("[repair #{}] {text}", command.id));
                self.tell(&command, EventKind::Complete, text);
                command.end(false, vec![message]);
            }
            Err(why) => {
                let reason = match &why {
                    Some(why) => why.clone(),
                    None => command.first_error().unwrap_or_else(|| "Some repair failed".into()),
                };
                if let Some(why) = why {
                    let text = format!("Repair command #{number} failed with error {why}");
                    self.peers.note(Level::Error, format!("[repair #{}] {text}", command.id));
                    self.tell(&command, EventKind::Error, text);
                    if !is_preview {
                        self.history.failed(command.id, &why).await;
                    }
                }
                command.reach(Step::Over);
                let text = format!("Repair command #{number} finished with error");
                self.peers.note(Level::Error, format!("[repair #{}] {text}", command.id));
                self.tell(&command, EventKind::Complete, text.clone());
                command.end(true, vec![reason, text]);
            }
        }
        self.participant.end(command.id);
    }

    /// The message of its success.
    ///
    /// # Errors
    /// Why it failed; none, if its operator was told already.
    async fn repair(
        self: &Rc<Self>,
        command: &Rc<RepairCommand>,
        options: RepairOptions,
    ) -> Result<String, Option<String>> {
        let running = match self.plan(command, options)? {
            Ok(running) => running,
            // nothing to repair is no failure
            Err(skipped) => {
                let text = format!("Repair {} skipped: {skipped}", command.id);
                self.tell(command, EventKind::Notification, text);
                return Ok(skipped);
            }
        };
        command.reach(Step::Start);
        let is_preview = running.options.preview.is_preview();
        if !is_preview {
            let of = (command.keyspace.as_str(), running.tables.as_slice());
            let ranges: Vec<_> = running.options.ranges.iter().copied().collect();
            let mut options = running.options.to_map();
            // as Cassandra, which has columns for them
            options.retain(|name, _| !matches!(name.as_str(), "ranges" | "columnFamilies"));
            self.history.begun(command.id, of, &ranges, &options).await;
        }
        command.reach(Step::Preparing);
        let prepared = self.prepare(&running).await;
        if let Err(why) = prepared {
            self.give_up(&running).await;
            return Err(Some(why));
        }
        let is_incremental = running.is_incremental();
        if is_incremental && let Err(why) = self.set_apart(&running).await {
            self.give_up(&running).await;
            return Err(Some(why));
        }
        command.reach(Step::Repairing);
        let (done, failed) = self.sessions(&running).await;
        if is_incremental
            && !failed
            && let Err(why) = self.finalize(&running).await
        {
            self.give_up(&running).await;
            return Err(Some(why));
        }
        command.reach(Step::Repaired);
        if !is_preview {
            let ranges: Vec<TokenRange> =
                done.iter().flat_map(|(session, _)| session.ranges.iter().copied()).collect();
            self.history.succeeded(command.id, &ranges).await;
        }
        if failed {
            self.give_up(&running).await;
            return Err(None);
        }
        self.clean_up(&running);
        let done: Vec<JobDone> = done.into_iter().flat_map(|(_, jobs)| jobs).collect();
        Ok(match is_preview {
            true => {
                let text =
                    preview::text(running.options.preview, &command.keyspace, &done, |table| {
                        let schema = self.shard.schema();
                        schema
                            .table(&command.keyspace, table)
                            .is_some_and(|table| table.is_counter())
                    });
                self.tell(command, EventKind::Notification, text.clone());
                format!("Repair preview completed successfully; {text}")
            }
            false => "Repair completed successfully".to_owned(),
        })
    }

    /// What is to be done; why there is nothing to do.
    fn plan(
        &self,
        command: &Rc<RepairCommand>,
        options: RepairOptions,
    ) -> Result<Result<Running, String>, Option<String>> {
        let (keyspace, id) = (&command.keyspace, command.id);
        let tables = self.tables(keyspace, &options.tables).map_err(Some)?;
        if tables.is_empty() {
            return Ok(Err(format!("{id} Empty keyspace, skipping repair: {keyspace}")));
        }
        let text = format!(
            "Starting repair command #{} ({id}), repairing keyspace {keyspace} with {options}",
            command.number
        );
        self.peers.note(Level::Info, text.clone());
        self.tell(command, EventKind::Start, text);
        if options.is_paxos_only {
            return Err(Some(
                "paxos_variant v1 has nothing to repair: --paxos-only is for v2".to_owned(),
            ));
        }
        let schema = self.shard.schema();
        let gone = || Some(format!("Keyspace [{keyspace}] does not exist."));
        let found = schema.keyspace(keyspace).ok_or_else(gone)?;
        let scope = self.scope(found).map_err(Some)?;
        let scope = scope.ok_or_else(|| Some("this node is in no ring".to_owned()))?;
        let ranges = match self.neighbors(keyspace, &scope, &options)? {
            ranges if ranges.is_empty() => {
                return Ok(Err(format!(
                    "Nothing to repair for {} in {keyspace} - unreplicated keyspace is ignored \
                     since repair was called with --ignore-unreplicated-keyspaces",
                    all_shown(&options.ranges.iter().copied().collect::<Vec<_>>())
                )));
            }
            ranges => ranges,
        };
        let is_up = |node: &Address| scope.ring.find(*node).is_some_and(|at| scope.ring.is_up(at));
        let mut sessions = common(ranges);
        if options.is_forced {
            for session in &mut sessions {
                let before = session.nodes.len();
                session.nodes.retain(is_up);
                session.skips = session.nodes.len() < before;
            }
            // ranges that nobody else is left of are not repaired, and count as that no more than
            // the others do
            let skips = sessions.iter().any(|session| session.skips);
            sessions.retain(|session| !session.nodes.is_empty());
            sessions.iter_mut().for_each(|session| session.skips = skips);
            if sessions.is_empty() {
                return Err(Some("Not enough live endpoints for a repair".to_owned()));
            }
        }
        let nodes: BTreeSet<_> =
            sessions.iter().flat_map(|session| session.nodes.iter().copied()).collect();
        if let Some(down) = nodes.iter().find(|node| !is_up(node)) {
            return Err(Some(format!("Endpoint not alive: /{down}")));
        }
        Ok(Ok(Running { command: Rc::clone(command), options, tables, sessions, nodes }))
    }

    /// Ranges, and who else has each of them.
    fn neighbors(
        &self,
        keyspace: &str,
        scope: &Scope,
        options: &RepairOptions,
    ) -> Result<Vec<(TokenRange, BTreeSet<Address>)>, Option<String>> {
        let of = Neighborhood { ring: &scope.ring, placement: &scope.placement };
        let among = Among { centers: &options.data_centers, hosts: &options.hosts };
        let mut ranges = Vec::new();
        for range in &options.ranges {
            let neighbors = of.neighbors(keyspace, *range, among).map_err(Some)?;
            if !neighbors.is_empty() {
                ranges.push((*range, neighbors));
            } else if !options.ignores_unreplicated {
                let range = super::neighbors::shown(*range);
                let text = format!("Nothing to repair for {range} in {keyspace} - aborting");
                return Err(Some(text));
            }
        }
        Ok(ranges)
    }

    /// The tables that are asked for, in order.
    fn tables(&self, keyspace: &str, asked: &BTreeSet<String>) -> Result<Vec<String>, String> {
        let schema = self.shard.schema();
        let unknown = || format!("Keyspace [{keyspace}] does not exist.");
        let found = schema.keyspace(keyspace).ok_or_else(unknown)?;
        if asked.is_empty() {
            return Ok(found.tables.keys().map(ToString::to_string).collect());
        }
        let named = |name: &String| match found.tables.contains_key(name.as_str()) {
            true => Ok(name.clone()),
            false => Err(format!("Unknown keyspace/cf pair ({keyspace}.{name})")),
        };
        asked.iter().map(named).collect()
    }

    async fn prepare(&self, of: &Running) -> Result<(), String> {
        let schema = self.shard.schema();
        let table = |name: &String| -> Result<schema::TableId, String> {
            let table: Option<&std::sync::Arc<Table>> = schema.table(&of.command.keyspace, name);
            let gone = || format!("Table {}.{name} was dropped", of.command.keyspace);
            table.map(|table| table.id).ok_or_else(gone)
        };
        let message = Prepare {
            tables: of.tables.iter().map(table).collect::<Result<_, _>>()?,
            parent: of.command.id,
            ranges: of.options.ranges.iter().copied().collect(),
            is_incremental: of.options.is_incremental,
            repaired_at: of.repaired_at(self.shard.unix_millis()),
            is_global: of.options.is_global(),
            preview: of.options.preview,
        };
        let local = self.local()?;
        self.participant.prepare(local, &message)?;
        let mut payload = Vec::new();
        message.write(&mut payload).map_err(|error| error.to_string())?;
        let failed = self.to_all(&of.nodes, Verb::PrepareMsg, &payload).await;
        match failed.is_empty() {
            true => Ok(()),
            false => {
                let failed: Vec<_> = failed.iter().map(|node| format!("/{node}")).collect();
                Err(format!("Got negative replies from endpoints [{}]", failed.join(", ")))
            }
        }
    }

    fn local(&self) -> Result<Address, String> {
        let messenger = self.peers.messenger();
        messenger.map(|it| it.settings().local).ok_or_else(|| "this node is in no ring".to_owned())
    }

    /// Sends a message to nodes; those that did not take it come back.
    async fn to_all(&self, nodes: &BTreeSet<Address>, verb: Verb, payload: &[u8]) -> Vec<Address> {
        let mut asked = Vec::new();
        for node in nodes.iter().copied() {
            let (asks, payload) = (Rc::clone(&self.asks), payload.to_vec());
            let task = self
                .shard
                .env
                .spawn_task(Class::Streaming, async move { asks.ask(node, verb, payload).await });
            asked.push((node, task));
        }
        let mut failed = Vec::new();
        for (node, task) in asked {
            if let Err(why) = task.await {
                self.peers.note(Level::Warn, format!("a repair cannot go on with /{node}: {why}"));
                failed.push(node);
            }
        }
        failed
    }

    /// Does all sessions; those that came to their end, and whether one did not.
    async fn sessions(self: &Rc<Self>, of: &Running) -> (Vec<(CommonRange, Vec<JobDone>)>, bool) {
        let slots =
            Rc::new(Semaphore::new(u64::from(of.options.job_threads.max(1).cast_unsigned())));
        let mut tasks = Vec::new();
        for common in &of.sessions {
            let session = Rc::new(Session {
                id: Uuid::from_bytes(self.shard.time_uuid()),
                parent: of.command.id,
                keyspace: of.command.keyspace.clone(),
                common: common.clone(),
                parallelism: of.options.parallelism,
                only_pulls: of.options.is_pull,
                optimises: of.options.optimises_streams(),
                is_incremental: of.is_incremental(),
                preview: of.options.preview,
            });
            let (this, command) = (Rc::clone(self), Rc::clone(&of.command));
            let (tables, slots) = (of.tables.clone(), Rc::clone(&slots));
            let common = common.clone();
            let task = self.shard.env.spawn_task(Class::Streaming, async move {
                this.session(&command, session, &tables, &slots).await
            });
            tasks.push((common, task));
        }
        let (mut done, mut has_failed) = (Vec::new(), false);
        for (common, task) in tasks {
            match task.await {
                Ok(jobs) => done.push((common, jobs)),
                Err(()) => has_failed = true,
            }
        }
        (done, has_failed)
    }

    /// Does a session; its operator is told of its end.
    async fn session(
        &self,
        command: &RepairCommand,
        session: Rc<Session>,
        tables: &[String],
        slots: &Rc<Semaphore>,
    ) -> Result<Vec<JobDone>, ()> {
        let mut tasks = Vec::new();
        for table in tables {
            let slot = slots.acquire(1).await;
            let (jobs, session, table) =
                (Rc::clone(&self.jobs), Rc::clone(&session), table.clone());
            tasks.push(self.shard.env.spawn_task(Class::Streaming, async move {
                let done = jobs.run(&session, &table).await;
                drop(slot);
                done
            }));
        }
        let (mut done, mut failed) = (Vec::new(), None);
        for task in tasks {
            match task.await {
                Ok(job) => done.push(job),
                Err(why) => failed = failed.or(Some(why)),
            }
        }
        let (id, ranges) = (session.id, all_shown(&session.common.ranges));
        let Some(why) = failed else {
            let text = format!("Repair session {id} for range {ranges} finished");
            self.peers.note(Level::Info, text.clone());
            self.tell(command, EventKind::Progress, text);
            return Ok(done);
        };
        let text = format!("Repair session {id} for range {ranges} failed with error {why}");
        self.peers.note(Level::Error, format!("Repair {} failed: {text}", command.id));
        let number = command.number;
        let text = format!("Repair command #{number} failed with error {text}");
        if session.preview == PreviewKind::None {
            self.history.failed(command.id, &text).await;
        }
        self.tell(command, EventKind::Error, text);
        Err(())
    }

    /// Has all nodes set apart what is to be repaired.
    async fn set_apart(&self, of: &Running) -> Result<(), String> {
        let (id, local) = (of.command.id, self.local()?);
        let parent = self.participant.parent(id).ok_or("the repair was ended")?;
        let now = self.shard.unix_millis() / 1000;
        let session = LocalSession {
            id,
            state: SessionState::Preparing,
            coordinator: local,
            tables: parent.tables,
            repaired_at: parent.repaired_at,
            ranges: parent.ranges.into_iter().collect(),
            participants: of.nodes.iter().copied().chain([local]).collect(),
            started: now,
            updated: now,
        };
        self.coordinated.prepare(session, &of.nodes).await
    }

    /// Has all nodes count it as repaired.
    async fn finalize(&self, of: &Running) -> Result<(), String> {
        self.coordinated.finalize(of.command.id, &of.nodes).await
    }

    /// Who does not hear that it is over forgets it by itself.
    fn clean_up(&self, of: &Running) {
        let mut payload = Vec::new();
        Cleanup { parent: of.command.id }.write(&mut payload);
        self.tell_all(&of.nodes, Verb::CleanupMsg, &payload);
    }

    async fn give_up(&self, of: &Running) {
        if of.is_incremental() && !self.coordinated.fail(of.command.id, &of.nodes).await {
            return self.clean_up(of);
        }
        let mut payload = Vec::new();
        FailSession { session: of.command.id }.write(&mut payload);
        self.tell_all(&of.nodes, Verb::FailedSessionMsg, &payload);
    }

    /// Sends a message to nodes, and waits for none of them.
    fn tell_all(&self, nodes: &BTreeSet<Address>, verb: Verb, payload: &[u8]) {
        for node in nodes.iter().copied() {
            let (asks, payload) = (Rc::clone(&self.asks), payload.to_vec());
            self.shard.env.spawn(Class::Streaming, async move {
                let _ = asks.ask(node, verb, payload).await;
            });
        }
    }
}

/// Seconds as words (`DurationFormatUtils.formatDurationWords`).
fn words(seconds: u64) -> String {
    let parts = [("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)];
    let (mut left, mut said) = (seconds, Vec::new());
    for (name, length) in parts {
        said.push((left / length, name));
        left %= length;
    }
    // zeros are left out before the first unit that counts and behind the last
    let first = said.iter().position(|(count, _)| *count > 0).unwrap_or(said.len() - 1);
    let last = said.iter().rposition(|(count, _)| *count > 0).unwrap_or(said.len() - 1);
    let counted = |(count, name): &(u64, &str)| {
        format!("{count} {name}{}", if *count == 1 { "" } else { "s" })
    };
    let counted: Vec<_> = said.get(first..=last).unwrap_or_default().iter().map(counted).collect();
    counted.join(" ")
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn durations_are_said_in_words() {
        for (seconds, said) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (60, "1 minute"),
            (61, "1 minute 1 second"),
            (3_601, "1 hour 0 minutes 1 second"),
            (86_400, "1 day"),
            (180_000, "2 days 2 hours"),
        ] {
            assert_eq!(words(seconds), said);
        }
    }
}
