//! The sessions of a node, on its first shard: what happens to them, and what is done about it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use env::sync::{OneshotReceiver, OneshotSender, oneshot};
use env::{Class, Env, Instant};
use metrics::Level;
use schema::TableId;
use sstable::descriptor::Component;
use storage::shards::Remote;
use storage::{Arrivals, Engine, Place, Stamp, StorageError};
use types::{Address, TokenRange, Uuid};

use crate::channels::{Channels, ControlAt};
use crate::chooser::{Chooser, OutFile};
use crate::host::Host;
use crate::ledger::Ledger;
use crate::only::{Announced, Only};
use crate::plan::{Give, Plan};
use crate::progress::{Direction, FileKey, FileView, Progress, SessionView, TableView};
use crate::said::{SlowEvents, mebibytes, summary};
use crate::sender::Sender;
use crate::session::{Effect, Event, Outgoing, Role, Session, SessionId, State};
use crate::settings::Settings;
use crate::watch::{FileNumber, Watch};
use crate::wire::{FileHeader, Init, Message, Preview, Request};

/// Sessions that are over and are still shown.
const SHOWN_MAX: usize = 128;

/// Who waits for a session's end.
type Done = OneshotSender<Result<Announced, String>>;

/// A session under way.
struct Running {
    session: RefCell<Session>,
    control: ControlAt,
    arrivals: RefCell<BTreeMap<TableId, Rc<Arrivals>>>,
    gives: RefCell<BTreeMap<(TableId, i32), OutFile>>,
    /// Files that began to come, of each table: no more than were announced.
    begun: RefCell<BTreeMap<TableId, u32>>,
    /// Files that are being received.
    in_flight: Cell<usize>,
    is_ended: Cell<bool>,
    progress: Rc<Progress>,
    announced: RefCell<Announced>,
    done: RefCell<Option<Done>>,
    watch: Rc<Watch>,
}

/// Those of the node, on its first shard.
pub(crate) struct Sessions {
    env: Env,
    engine: Rc<Engine>,
    host: Rc<dyn Host>,
    settings: Settings,
    slow: SlowEvents,
    chooser: Chooser,
    ledger: Rc<Ledger>,
    channels: Rc<Channels>,
    others: OtherShards,
    running: RefCell<BTreeMap<SessionId, Rc<Running>>>,
    /// Sessions that are over while files of them still come.
    ending: RefCell<BTreeMap<SessionId, Rc<Running>>>,
    over: RefCell<Vec<SessionView>>,
}

/// What other shards have of sessions.
pub(crate) struct OtherShards {
    pub channels: Remote<Channels>,
    pub senders: Remote<Sender>,
}

/// Where a file that comes goes.
#[derive(Debug)]
pub(crate) struct Slot {
    pub place: Place,
    /// Where its keys may be.
    pub owned: Arc<[TokenRange]>,
}

impl Sessions {
    pub fn new(
        (engine, host): (&Rc<Engine>, &Rc<dyn Host>),
        settings: &Settings,
        ledger: &Rc<Ledger>,
        channels: &Rc<Channels>,
        others: OtherShards,
    ) -> Rc<Self> {
        Rc::new(Self {
            env: engine.env().clone(),
            engine: Rc::clone(engine),
            host: Rc::clone(host),
            settings: *settings,
            slow: SlowEvents::new(settings.slow_event),
            chooser: Chooser::new(engine, host, settings.whole_files),
            ledger: Rc::clone(ledger),
            channels: Rc::clone(channels),
            others,
            running: RefCell::default(),
            ending: RefCell::default(),
            over: RefCell::default(),
        })
    }

    fn find(&self, id: SessionId) -> Option<Rc<Running>> {
        self.running.borrow().get(&id).cloned()
    }

    /// What is shown of all.
    pub fn views(&self) -> Vec<SessionView> {
        let running = self.running.borrow();
        let now = self.env.now();
        let running = running.values().map(|running| running.view(now));
        running.chain(self.over.borrow().iter().cloned()).collect()
    }
}

impl Running {
    fn view(&self, now: Instant) -> SessionView {
        let session = self.session.borrow();
        SessionView {
            id: session.id(),
            operation: session.operation(),
            role: session.role(),
            state: session.state().clone(),
            receiving: self.progress.sum(Direction::In),
            sending: self.progress.sum(Direction::Out),
            speed: self.progress.speed(now),
            files: self.progress.files(),
        }
    }
}

impl Sessions {
    /// Carries a plan out: one session with each node, all at the same time.
    ///
    /// # Errors
    /// Of each session that failed: why. What the others brought stays.
    pub async fn run(
        self: &Rc<Self>,
        plan: Plan,
    ) -> Result<Vec<(Address, Announced)>, Vec<(Address, String)>> {
        assert_eq!(self.env.shard(), 0, "plans are carried out on the first shard");
        let micros = self.env.unique_micros();
        // the highest bits say that it is a UUID of RFC 4122
        let node = self.env.random_u64() & (u64::MAX >> 2) | 1 << 63;
        let id = Uuid::from_unix_micros(micros, node);
        let mut waiting = Vec::new();
        let (mut announced, mut failed) = (Vec::new(), Vec::new());
        self.ledger.begin_plan(id, plan.operation, false);
        for (id, requests, gives) in plan.sessions(id, self.settings.connections) {
            let (done, end) = oneshot();
            let this = Rc::clone(self);
            let (operation, only) = (plan.operation, plan.only);
            self.env.spawn(Class::Streaming, async move {
                let init = |from| Init {
                    from,
                    session: id.session,
                    plan: id.plan,
                    operation,
                    pending_repair: only.pending_repair,
                    preview: only.preview,
                };
                if let Err((done, why)) = this.begin(id, init, (requests, gives), done).await {
                    let _ = done.send(Err(why));
                }
            });
            waiting.push((id.peer, end));
        }
        for (peer, end) in waiting {
            match ended(end).await {
                Ok(of) => announced.push((peer, of)),
                Err(why) => failed.push((peer, why)),
            }
        }
        self.ledger.end_plan(id, &failed);
        if failed.is_empty() { Ok(announced) } else { Err(failed) }
    }

    /// Begins a session with another node.
    async fn begin(
        self: &Rc<Self>,
        id: SessionId,
        init: impl Fn(Address) -> Init,
        (requests, gives): (Vec<Request>, Vec<Give>),
        done: Done,
    ) -> Result<(), (Done, String)> {
        let Some(messenger) = self.host.messenger() else {
            return Err((done, "this node is in no ring".to_owned()));
        };
        let local = messenger.settings().local;
        let init = init(local);
        let only = Only { pending_repair: init.pending_repair, preview: init.preview };
        let mut files = Vec::new();
        for Give { table, ranges } in gives {
            match self.chooser.choose_of(table, &ranges, only).await {
                Ok(chosen) => files.push((table, chosen)),
                Err(error) => return Err((done, error.to_string())),
            }
        }
        let socket = match messenger.open_stream(id.peer).await {
            Ok(socket) => socket,
            Err(why) => return Err((done, format!("cannot connect: {why}"))),
        };
        let (session, effects) = Session::initiate(id, init, requests, outgoing(&files));
        let control = self.channels.open(socket, Some(id));
        let running = self.keep(session, control, Some(done));
        running.give(files);
        self.perform(&running, effects);
        Ok(())
    }

    fn keep(
        self: &Rc<Self>,
        session: Session,
        control: ControlAt,
        done: Option<Done>,
    ) -> Rc<Running> {
        let id = session.id();
        let announced = Announced { receiving: Vec::new(), sending: session.summaries() };
        let (progress, watch) = self.ledger.begin(id, session.operation());
        let running = Rc::new(Running {
            session: RefCell::new(session),
            control,
            arrivals: RefCell::default(),
            gives: RefCell::default(),
            begun: RefCell::default(),
            in_flight: Cell::new(0),
            is_ended: Cell::new(false),
            progress,
            announced: RefCell::new(announced),
            done: RefCell::new(done),
            watch,
        });
        self.running.borrow_mut().insert(id, Rc::clone(&running));
        self.env.spawn(Class::Streaming, Rc::clone(self).watch(Rc::clone(&running)));
        running
    }

    async fn watch(self: Rc<Self>, running: Rc<Running>) {
        let id = running.session.borrow().id();
        let is_due = |file: &FileNumber| running.gives.borrow().contains_key(file);
        let of = (id, &*running.progress);
        if running.watch.run(&self.env, &*self.host, of, is_due).await {
            let limit = self.settings.transfer_timeout;
            let why = format!(
                "Session timed out: a file was not acknowledged within {limit:?} \
                 (stream_transfer_task_timeout)"
            );
            self.event(id, Event::Broken(why));
        }
    }

    /// Another node begins a session.
    ///
    /// # Errors
    /// If there is one of that name already.
    pub(crate) fn follow(
        self: &Rc<Self>,
        init: &Init,
        control: ControlAt,
    ) -> Result<SessionId, String> {
        let id = SessionId { plan: init.plan, peer: init.from, session: init.session };
        if self.find(id).is_some() {
            return Err(format!(
                "session {} of stream {} is under way already",
                id.session, id.plan
            ));
        }
        let repair = init.pending_repair.filter(|_| init.preview == Preview::None);
        if let Some(repair) = repair.filter(|repair| !self.host.is_repairing(*repair)) {
            return Err(format!("this node has no part in incremental repair {repair}"));
        }
        self.host.note(
            Level::Info,
            format!(
                "[Stream #{} ID#{}] Creating new streaming plan for {} from /{}",
                id.plan, id.session, init.operation, id.peer
            ),
        );
        self.ledger.begin_plan(id.plan, init.operation, true);
        self.keep(Session::follow(id, init), control, None);
        Ok(id)
    }

    /// Something happened to a session.
    pub(crate) fn event(self: &Rc<Self>, id: SessionId, event: Event) {
        let Some(running) = self.find(id) else {
            // the initiator of a session that is complete has closed its connection
            if matches!(event, Event::Closed(_)) {
                self.end_sending(id);
            }
            return;
        };
        let began = self.env.now();
        // a follower to which nothing is acknowledged goes no further before all is there
        let is_chosen = matches!(event, Event::Chosen(_));
        let announced = match &event {
            Event::Message(
                Message::PrepareSyn { summaries, .. } | Message::PrepareSynAck { summaries },
            ) => summaries.clone(),
            _ => Vec::new(),
        };
        let before = running.session.borrow().state().clone();
        let effects = running.session.borrow_mut().step(event);
        let after = running.session.borrow().state().clone();
        if !announced.is_empty() && !after.is_final() {
            running.progress.expect(Direction::In, &announced);
            running.announced.borrow_mut().receiving = announced;
            if self.settings.checks_space {
                self.env.spawn(Class::Streaming, Rc::clone(self).check_space(id));
            }
        }
        let role = running.session.borrow().role();
        let is_begun = before != after && after == State::Streaming;
        if is_chosen || (is_begun && role == Role::Initiator) {
            self.ledger.prepared(id);
            self.note_prepared(&running);
        }
        self.perform(&running, effects);
        let now = self.env.now();
        if let Some(slow) = self.slow.look(now.since(began), now) {
            self.host.note(Level::Warn, slow);
        }
    }

    fn note_prepared(&self, running: &Running) {
        let id = running.session.borrow().id();
        let sum = |direction| running.progress.sum(direction);
        let (coming, going) = (sum(Direction::In), sum(Direction::Out));
        self.host.note(
            Level::Info,
            format!(
                "[Stream #{} ID#{}] Prepare completed. Receiving {} files({}), sending {} \
                 files({}) with /{}",
                id.plan,
                id.session,
                coming.files,
                mebibytes(coming.bytes),
                going.files,
                mebibytes(going.bytes),
                id.peer
            ),
        );
    }

    fn perform(self: &Rc<Self>, running: &Rc<Running>, effects: Vec<Effect>) {
        let id = running.session.borrow().id();
        for effect in effects {
            match effect {
                // the other node waits for it longer than it is to
                Effect::Send(Message::Received { .. })
                    if self.env.planted("stream_acknowledges_nothing") => {}
                Effect::Send(message) => self.send(running, &message),
                Effect::Choose(requests) => {
                    let (this, running) = (Rc::clone(self), Rc::clone(running));
                    let only = running.session.borrow().only();
                    self.env.spawn(Class::Streaming, async move {
                        let event = match this.chooser.choose(&requests, only).await {
                            Ok(files) => {
                                let chosen = outgoing(&files);
                                running.give(files);
                                Event::Chosen(chosen)
                            }
                            Err(why) => Event::Broken(why),
                        };
                        this.event(id, event);
                    });
                }
                Effect::SendFiles => self.send_files(running),
                Effect::Release { table, sequence } => {
                    let gone = running.gives.borrow_mut().remove(&(table, sequence));
                    if let Some(file) = gone {
                        let operation = running.session.borrow().operation();
                        self.ledger.metrics().sent(operation, file.files);
                    }
                }
                Effect::Adopt(table) => {
                    let (this, running) = (Rc::clone(self), Rc::clone(running));
                    self.env.spawn(Class::Streaming, async move {
                        let event = this.adopt(&running, table).await;
                        this.event(id, event);
                    });
                }
                Effect::End => self.end(running),
            }
        }
    }

    fn send(&self, running: &Running, message: &Message) {
        let mut bytes = Vec::new();
        // what cannot be written has a name that no schema has
        if message.write(&mut bytes).is_err() {
            return self
                .host
                .note(Level::Error, format!("cannot send {} to a node", message.kind()));
        }
        let ControlAt { shard, channel } = running.control;
        self.others.channels.send(shard, move |there| there.send(channel, &bytes));
    }

    fn send_files(self: &Rc<Self>, running: &Rc<Running>) {
        let id = running.session.borrow().id();
        let files: Vec<_> =
            running.gives.borrow().iter().map(|(key, file)| (*key, file.clone())).collect();
        if files.is_empty() {
            return;
        }
        let is_follower = running.session.borrow().role() == Role::Follower;
        let (this, shard) = (Rc::clone(self), self.sender_of(id));
        let running = Rc::clone(running);
        self.env.spawn(Class::Streaming, async move {
            // its end comes to the sender behind its beginning, or there is no beginning
            if running.is_ended.get() {
                return;
            }
            let sent = this
                .others
                .senders
                .call_async(shard, Class::Streaming, move |there: Rc<Sender>| async move {
                    there.send_all(id, is_follower, files).await
                })
                .await;
            let why = match sent {
                Ok(Ok(())) => return,
                Ok(Err(why)) => why,
                Err(stopping) => stopping.to_string(),
            };
            this.event(id, Event::Broken(why));
        });
    }

    /// Gives a session up that brings more than there is room for.
    async fn check_space(self: Rc<Self>, id: SessionId) {
        let all = self.ledger.all();
        let due = all.iter().map(|progress| progress.sum(Direction::In).left());
        let due = due.fold(0, u64::saturating_add);
        // a disk that does not say takes what comes until it is full
        let Ok(room) = self.engine.room().await else { return };
        if due > room {
            let why = format!(
                "not enough space: what nodes send has {due} bytes, the data directories have \
                 {room} free"
            );
            self.event(id, Event::Broken(why));
        }
    }

    async fn adopt(&self, running: &Running, table: TableId) -> Event {
        let arrivals = running.arrivals.borrow().get(&table).cloned();
        let (Some(arrivals), Some(node)) = (arrivals, self.engine.node()) else {
            return Event::Adopted(table);
        };
        match node.arriver().adopt(table, &arrivals).await {
            Ok(()) => Event::Adopted(table),
            // what was dropped meanwhile is not missed
            Err(StorageError::UnknownTable(_)) => match node.arriver().abandon(&arrivals).await {
                Ok(()) | Err(StorageError::UnknownTable(_)) => Event::Adopted(table),
                Err(error) => Event::Broken(error.to_string()),
            },
            Err(error) => Event::Broken(error.to_string()),
        }
    }

    /// A file begins to come: where it goes.
    ///
    /// # Errors
    /// If it belongs to no session, or to none that expects it.
    pub(crate) async fn begin_file(
        self: &Rc<Self>,
        id: SessionId,
        header: &FileHeader,
    ) -> Result<Slot, String> {
        let unknown = || format!("a file of stream {}, which there is not", id.plan);
        let running = self.find(id).ok_or_else(unknown)?;
        let table = header.table;
        let expected = running.session.borrow().awaits(table);
        let of = table.to_hex();
        let expected = expected.ok_or_else(|| format!("an unannounced file of table {of}"))?;
        if header.files() == 0 {
            return Err(format!("an SSTable of table {of} without components"));
        }
        let begun = running.begun.borrow().get(&table).copied().unwrap_or(0);
        let begun = begun.saturating_add(header.files());
        if begun > expected.files {
            return Err(format!(
                "{begun} files of table {of} began to come, {} were announced",
                expected.files
            ));
        }
        running.begun.borrow_mut().insert(table, begun);
        if header.pending_repair != running.session.borrow().only().pending_repair {
            return Err(format!("a file of table {of} of another repair than the session's"));
        }
        let node = self.engine.node().ok_or("the node is stopping")?;
        let arrivals = Rc::clone(
            running
                .arrivals
                .borrow_mut()
                .entry(table)
                .or_insert_with(|| Rc::new(node.arriver().begin())),
        );
        running.in_flight.update(|count| count + 1);
        let placed = node.arriver().place(table, &arrivals, header.version, header.format).await;
        let placed = placed.map_err(|error| error.to_string()).and_then(|place| {
            let owned = self.host.owned_soon(&place.table.keyspace);
            let owned =
                owned.ok_or_else(|| format!("keyspace {} is gone", place.table.keyspace))?;
            let key = FileKey { direction: Direction::In, table, sequence: header.sequence };
            let name = place.path(&Component::Data).display().to_string();
            running.progress.begin(key, FileView::new(name, header.files(), header.bytes()));
            Ok(Slot { place, owned: owned.into() })
        });
        if placed.is_err() {
            self.landed(&running).await;
        }
        placed
    }

    /// A file came, or did not come.
    pub(crate) async fn end_file(
        self: &Rc<Self>,
        id: SessionId,
        header: &FileHeader,
        slot: &Slot,
        came: Result<bool, String>,
    ) {
        let ending = self.ending.borrow().get(&id).cloned();
        let Some(running) = self.find(id).or(ending) else { return };
        let began = self.env.now();
        let arrived = match came {
            _ if running.is_ended.get() => Err("the session is over".to_owned()),
            Ok(has_content) => self.take_in(&running, header, slot, has_content).await,
            Err(why) => Err(why),
        };
        if arrived.is_ok() {
            let took = self.env.now().since(began);
            self.ledger.metrics().received(id.peer, header.whole.is_some(), took);
        }
        let (table, sequence, files) = (header.table, header.sequence, header.files());
        self.event(
            id,
            match arrived {
                Ok(()) => Event::Arrived { table, sequence, files },
                Err(why) => Event::Broken(why),
            },
        );
        self.landed(&running).await;
    }

    async fn take_in(
        &self,
        running: &Running,
        header: &FileHeader,
        slot: &Slot,
        has_content: bool,
    ) -> Result<(), String> {
        let node = self.engine.node().ok_or("the node is stopping")?;
        let arrivals = running.arrivals.borrow().get(&header.table).cloned();
        let arrivals = arrivals.expect("a file that came has a place among its table's");
        let stamp = Stamp {
            level: header.level,
            repaired_at: header.repaired_at.max(0),
            pending_repair: header.pending_repair,
        };
        let taken = match has_content {
            true => node.arriver().arrived(&arrivals, &slot.place, stamp, &slot.owned).await,
            false => node.arriver().nothing_arrived(&arrivals, &slot.place).await,
        };
        taken.map_err(|error| error.to_string())
    }

    /// A file is not under way any more.
    async fn landed(self: &Rc<Self>, running: &Rc<Running>) {
        running.in_flight.update(|count| count - 1);
        if running.is_ended.get() {
            self.clear(running).await;
        }
    }

    /// Removes what came and was not adopted, once nothing more comes.
    async fn clear(&self, running: &Running) {
        if running.in_flight.get() > 0 {
            return;
        }
        self.ending.borrow_mut().remove(&running.session.borrow().id());
        let Some(node) = self.engine.node() else { return };
        let arrivals = running.arrivals.take();
        for arrivals in arrivals.values() {
            if let Err(error) = node.arriver().abandon(arrivals).await {
                self.host.note(Level::Warn, format!(
                    "cannot remove SSTables of a stream that failed, the next start does: {error}"
                ));
            }
        }
    }

    fn end(self: &Rc<Self>, running: &Rc<Running>) {
        let (id, state, role) = {
            let session = running.session.borrow();
            (session.id(), session.state().clone(), session.role())
        };
        running.is_ended.set(true);
        running.gives.borrow_mut().clear();
        self.running.borrow_mut().remove(&id);
        if running.in_flight.get() > 0 {
            self.ending.borrow_mut().insert(id, Rc::clone(running));
        }
        let failed = match &state {
            State::Failed(why) => Some(why.as_str()),
            _ => None,
        };
        self.ledger.end(id, failed);
        let now = self.env.now();
        self.show(running.view(now));
        self.host.note(Level::Info, summary(id, &running.progress, now));
        let (head, peer) = (format!("[Stream #{}]", id.plan), id.peer);
        let is_complete = state == State::Complete;
        let result = match state {
            State::Failed(why) => {
                self.host.note(Level::Error, format!("{head} Session with /{peer} failed: {why}"));
                Err(why)
            }
            _ => {
                self.host.note(Level::Info, format!("{head} Session with /{peer} is complete"));
                Ok(running.announced.take())
            }
        };
        // the initiator closes when all is done; a follower that has said COMPLETE waits for that,
        // with its connection for files too: a Cassandra whose last file is not adopted yet takes
        // the end of any connection for the end of the session
        if !is_complete || role == Role::Initiator {
            let ControlAt { shard, channel } = running.control;
            self.others.channels.send(shard, move |there| there.close(channel));
            self.end_sending(id);
        }
        if let Some(done) = running.done.take() {
            let _ = done.send(result);
        }
        let (this, running) = (Rc::clone(self), Rc::clone(running));
        self.env.spawn(Class::Streaming, async move { this.clear(&running).await });
    }

    /// What a session sends is wanted no more: its connection for files closes.
    fn end_sending(&self, id: SessionId) {
        self.others.senders.send(self.sender_of(id), move |sender| sender.end(id));
    }

    /// Which shard sends the files of a session.
    fn sender_of(&self, id: SessionId) -> usize {
        (id.plan.0 as usize ^ usize::from(id.peer.port)) % self.others.senders.count()
    }

    fn show(&self, view: SessionView) {
        let mut over = self.over.borrow_mut();
        over.push(view);
        let extra = over.len().saturating_sub(SHOWN_MAX);
        over.drain(..extra);
    }
}

impl Running {
    fn give(&self, files: Vec<(TableId, Vec<OutFile>)>) {
        for (table, files) in files {
            let bytes = files.iter().map(|file| file.bytes).sum();
            let count = files.iter().map(|file| file.files).sum();
            self.progress.announce(Direction::Out, TableView::new(table, count, bytes));
            for (sequence, file) in (0..).zip(files) {
                let key = FileKey { direction: Direction::Out, table, sequence };
                let name = file.chosen.sstable.path(&Component::Data).display().to_string();
                self.progress.begin(key, FileView::new(name, file.files, file.bytes));
                self.gives.borrow_mut().insert((table, sequence), file);
            }
        }
    }
}

fn outgoing(files: &[(TableId, Vec<OutFile>)]) -> Vec<(TableId, Vec<Outgoing>)> {
    let of = |file: &OutFile| Outgoing { files: file.files, bytes: file.bytes };
    files.iter().map(|(table, files)| (*table, files.iter().map(of).collect())).collect()
}

async fn ended(end: OneshotReceiver<Result<Announced, String>>) -> Result<Announced, String> {
    end.await.unwrap_or_else(|_| Err("the node is stopping".to_owned()))
}
