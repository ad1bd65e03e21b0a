//! A session's steps, without any I/O (`StreamSession`).
//!
//! ```text
//! initiator                      follower
//! STREAM_INIT, PREPARE_SYN  ->                    what it wants, what it gives
//!                           <-   PREPARE_SYNACK   what the follower gives
//! PREPARE_ACK               ->                    if that is anything
//! files                     ->
//!                           <-   files
//! RECEIVED for each file, on the first connection, by whoever got it
//!                           <-   COMPLETE         all that is due has come and gone
//! ```
//!
//! What came of a table is adopted once all of it is there. A follower says COMPLETE only then. So
//! a session that is complete on both sides has handed over what it was to.

use std::collections::{BTreeMap, BTreeSet};

use schema::TableId;
use types::{Address, Uuid};

use crate::only::Only;
use crate::wire::{Init, Message, Operation, Preview, Request, Summary};

/// Which session: with whom, of which plan, and which of the plan's with that node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    /// The plan, a time-UUID.
    pub plan: Uuid,
    /// The other node.
    pub peer: Address,
    /// The number that the initiator gave it.
    pub session: i32,
}

/// Who began it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// This node.
    Initiator,
    /// The other.
    Follower,
}

/// How far it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The sides say what they want and give.
    Preparing,
    /// Files are under way.
    Streaming,
    /// This side is done and waits for the other (`WAIT_COMPLETE`).
    WaitComplete,
    /// Both are done.
    Complete,
    /// It is over, and nothing follows from what has not been adopted: why.
    Failed(String),
}

impl State {
    /// Is it over?
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Complete | Self::Failed(_))
    }

    /// In Cassandra's words (`StreamSession.State`).
    pub fn name(&self) -> &'static str {
        match self {
            Self::Preparing => "PREPARING",
            Self::Streaming => "STREAMING",
            Self::WaitComplete => "WAIT_COMPLETE",
            Self::Complete => "COMPLETE",
            Self::Failed(_) => "FAILED",
        }
    }
}

/// A file that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Files that it counts for.
    pub files: u32,
    /// Its bytes.
    pub bytes: u64,
}

/// What is sent of a table.
#[derive(Debug, Default)]
struct Sending {
    /// What has not been received yet, by sequence number.
    due: BTreeMap<i32, Outgoing>,
}

/// What comes of a table.
#[derive(Debug)]
struct Receiving {
    summary: Summary,
    files: u32,
    arrived: BTreeSet<i32>,
    is_adopting: bool,
}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// A message came; files are [`Event::Arrived`].
    Message(Message),
    /// The follower knows what it gives: of each table its files in the order of their sequence
    /// numbers.
    Chosen(Vec<(TableId, Vec<Outgoing>)>),
    /// All of a file is here.
    Arrived {
        /// Of which table.
        table: TableId,
        /// Which.
        sequence: i32,
        /// Files that it counts for.
        files: u32,
    },
    /// What came of a table is part of it now.
    Adopted(TableId),
    /// This side cannot go on: why.
    Broken(String),
    /// The first connection ended.
    Closed(String),
}

/// What is to be done.
#[derive(Debug, PartialEq)]
pub enum Effect {
    /// Send this on the first connection.
    Send(Message),
    /// Find out what is asked for, then [`Event::Chosen`].
    Choose(Vec<Request>),
    /// Send all files.
    SendFiles,
    /// The other node has a file.
    Release {
        /// Of which table.
        table: TableId,
        /// Which.
        sequence: i32,
    },
    /// All of a table has come: make it part of the table, then [`Event::Adopted`].
    Adopt(TableId),
    /// It is over: what was not adopted is worth nothing, connections close once what waits is
    /// sent.
    End,
}

/// A session.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    role: Role,
    operation: Operation,
    only: Only,
    state: State,
    is_initiated: bool,
    sending: BTreeMap<TableId, Sending>,
    receiving: BTreeMap<TableId, Receiving>,
    /// Has the other side said that it is done?
    is_other_done: bool,
}

impl Session {
    /// One that this node begins, and what it says first.
    ///
    /// `gives` are the files to send of each table, in the order of their sequence numbers.
    pub fn initiate(
        id: SessionId,
        init: Init,
        requests: Vec<Request>,
        gives: Vec<(TableId, Vec<Outgoing>)>,
    ) -> (Self, Vec<Effect>) {
        let mut session = Self::new(id, Role::Initiator, &init);
        session.is_initiated = true;
        session.give(gives);
        let summaries = session.summaries();
        let syn = Message::PrepareSyn { requests, summaries };
        (session, vec![Effect::Send(Message::Init(init)), Effect::Send(syn)])
    }

    /// One that another node began.
    pub fn follow(id: SessionId, init: &Init) -> Self {
        Self::new(id, Role::Follower, init)
    }

    fn new(id: SessionId, role: Role, init: &Init) -> Self {
        Self {
            id,
            role,
            operation: init.operation,
            only: Only { pending_repair: init.pending_repair, preview: init.preview },
            state: State::Preparing,
            is_initiated: false,
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            is_other_done: false,
        }
    }

    /// Which.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Who began it.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What for.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// Which SSTables it is about.
    pub(crate) fn only(&self) -> Only {
        self.only
    }

    /// How far it is.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// What of a table is still to come.
    pub fn awaits(&self, table: TableId) -> Option<Summary> {
        let receiving = self.receiving.get(&table).filter(|receiving| !receiving.is_adopting)?;
        Some(receiving.summary)
    }

    /// Something happened: what is to be done.
    pub fn step(&mut self, event: Event) -> Vec<Effect> {
        if self.state.is_final() {
            return Vec::new();
        }
        let stepped = match event {
            Event::Message(message) => self.message(message),
            Event::Chosen(gives) => Ok(self.chosen(gives)),
            Event::Arrived { table, sequence, files } => self.arrived(table, sequence, files),
            Event::Adopted(table) => {
                let was = self.receiving.remove(&table);
                assert!(was.is_some_and(|it| it.is_adopting), "only what all came is adopted");
                Ok(self.done())
            }
            Event::Broken(why) => Err(why),
            Event::Closed(why) => return self.fail(why, false),
        };
        stepped.unwrap_or_else(|why| self.fail(why, true))
    }

    fn fail(&mut self, why: String, tells: bool) -> Vec<Effect> {
        self.state = State::Failed(why);
        let told = tells.then_some(Effect::Send(Message::SessionFailed));
        told.into_iter().chain([Effect::End]).collect()
    }

    fn message(&mut self, message: Message) -> Result<Vec<Effect>, String> {
        let is_preparing = self.state == State::Preparing;
        match (message, self.role) {
            (Message::KeepAlive, _) => Ok(Vec::new()),
            (Message::SessionFailed, _) => {
                let why = format!("Remote peer /{} failed stream session", self.id.peer);
                Ok(self.fail(why, false))
            }
            (Message::PrepareSyn { requests, summaries }, Role::Follower)
                if is_preparing && !self.is_initiated =>
            {
                self.is_initiated = true;
                self.expect(&summaries)?;
                Ok(vec![Effect::Choose(requests)])
            }
            (Message::PrepareSynAck { summaries }, Role::Initiator) if is_preparing => {
                self.expect(&summaries)?;
                let mut effects = Vec::new();
                if self.only.preview != Preview::None {
                    self.state = State::Complete;
                    return Ok(vec![Effect::End]);
                }
                if !summaries.is_empty() {
                    effects.push(Effect::Send(Message::PrepareAck));
                }
                self.state = State::Streaming;
                effects.push(Effect::SendFiles);
                effects.extend(self.done());
                Ok(effects)
            }
            (Message::PrepareAck, Role::Follower)
                if is_preparing && self.is_initiated && self.only.preview == Preview::None =>
            {
                self.state = State::Streaming;
                Ok(vec![Effect::SendFiles])
            }
            (Message::Received { table, sequence }, _) => self.received(table, sequence),
            (Message::Complete, Role::Initiator) if !self.is_other_done => {
                self.is_other_done = true;
                Ok(match self.state {
                    State::WaitComplete => self.complete(),
                    _ => Vec::new(),
                })
            }
            (other, role) => Err(format!(
                "{} came to the {role:?} of a session that is {}",
                other.kind(),
                self.state.name()
            )),
        }
    }

    /// The other side announces what it sends.
    fn expect(&mut self, summaries: &[Summary]) -> Result<(), String> {
        for summary in summaries.iter().filter(|summary| summary.files > 0) {
            let receiving = Receiving {
                summary: *summary,
                files: 0,
                arrived: BTreeSet::new(),
                is_adopting: false,
            };
            if self.receiving.insert(summary.table, receiving).is_some() {
                return Err(format!("two summaries of table {}", summary.table.to_hex()));
            }
        }
        Ok(())
    }

    fn give(&mut self, gives: Vec<(TableId, Vec<Outgoing>)>) {
        for (table, files) in gives.into_iter().filter(|(_, files)| !files.is_empty()) {
            let due = (0..).zip(files).collect();
            let before = self.sending.insert(table, Sending { due });
            assert!(before.is_none(), "what is sent of a table is chosen once");
        }
    }

    /// What it sends and has not sent yet.
    pub(crate) fn summaries(&self) -> Vec<Summary> {
        let summary = |(table, sending): (&TableId, &Sending)| Summary {
            table: *table,
            files: sending.due.values().map(|file| file.files).sum(),
            bytes: sending.due.values().map(|file| file.bytes).sum(),
        };
        self.sending.iter().map(summary).collect()
    }

    fn chosen(&mut self, gives: Vec<(TableId, Vec<Outgoing>)>) -> Vec<Effect> {
        assert_eq!(self.role, Role::Follower, "an initiator knows from the start what it gives");
        self.give(gives);
        let mut effects =
            vec![Effect::Send(Message::PrepareSynAck { summaries: self.summaries() })];
        if self.only.preview != Preview::None {
            self.state = State::Complete;
            effects.push(Effect::End);
            return effects;
        }
        effects.extend(self.done());
        effects
    }

    fn arrived(
        &mut self,
        table: TableId,
        sequence: i32,
        files: u32,
    ) -> Result<Vec<Effect>, String> {
        let receiving = self.receiving.get_mut(&table).filter(|it| !it.is_adopting);
        let of = table.to_hex();
        let receiving = receiving.ok_or_else(|| format!("an unannounced file of table {of}"))?;
        if !receiving.arrived.insert(sequence) {
            return Err(format!("file {sequence} of table {of} came twice"));
        }
        receiving.files = receiving.files.saturating_add(files);
        let announced = receiving.summary.files;
        if receiving.files > announced {
            let came = receiving.files;
            return Err(format!("{came} files of table {of}, {announced} were announced"));
        }
        let mut effects = vec![Effect::Send(Message::Received { table, sequence })];
        if receiving.files == announced {
            receiving.is_adopting = true;
            effects.push(Effect::Adopt(table));
        }
        Ok(effects)
    }

    fn received(&mut self, table: TableId, sequence: i32) -> Result<Vec<Effect>, String> {
        let sending = self.sending.get_mut(&table);
        let gone = sending.and_then(|sending| sending.due.remove(&sequence));
        if gone.is_none() {
            let of = table.to_hex();
            return Err(format!(
                "/{} says it received file {sequence} of table {of}, which was not \
                                sent to it",
                self.id.peer
            ));
        }
        self.sending.retain(|_, sending| !sending.due.is_empty());
        let mut effects = vec![Effect::Release { table, sequence }];
        effects.extend(self.done());
        Ok(effects)
    }

    /// Has this side done all that is due?
    fn done(&mut self) -> Vec<Effect> {
        if !self.receiving.is_empty() || !self.sending.is_empty() {
            return Vec::new();
        }
        match self.role {
            Role::Initiator if !self.is_other_done => {
                self.state = State::WaitComplete;
                Vec::new()
            }
            Role::Initiator => self.complete(),
            Role::Follower => {
                let mut effects = vec![Effect::Send(Message::Complete)];
                effects.extend(self.complete());
                effects
            }
        }
    }

    fn complete(&mut self) -> Vec<Effect> {
        assert!(
            self.receiving.is_empty() && self.sending.is_empty(),
            "a session is complete once all has come and gone"
        );
        self.state = State::Complete;
        vec![Effect::End]
    }
}
