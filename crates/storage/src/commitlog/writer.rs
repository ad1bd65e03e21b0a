//! Writing one shard's commit log.
//!
//! Records gather in a buffer; at the end of a turn of the loop the buffer becomes one section and goes to the
//! writing task, which compresses it if so configured, and writes sections in order. Another task syncs: every period (`periodic`), or as
//! soon as somebody waits (`batch`), or after a window (`group`). A failed write or sync poisons the
//! log: nothing more is acknowledged (decision 15), since after it nobody knows what the disk holds. Where the operator
//! wants to go on (`commit_failure_policy: ignore`), that file is given up: what waited for it fails, later writes go to
//! another segment, and the tables are flushed that it had.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::sync::{Notify, OneshotReceiver, OneshotSender, oneshot};
use env::{Class, Env, HookGuard, Instant};
use schema::TableId;
use thiserror::Error;

use super::archive::Archiver;
use super::cdc::{Cdc, CdcOptions, CdcState};
use super::format::{self, Compression, MARKER_BYTES, Position, RECORD_OVERHEAD_BYTES};
use super::ledger::Ledger;
use super::pack::Packer;
use super::segment::{Segment, SegmentData};

/// A section of so many bytes waits for no more before it is compressed.
const SECTION_BYTES: usize = 16 << 10;

/// How long after a segment could not be created it is tried again, where the log goes on.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// When a write is acknowledged (`commitlog_sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// At once; the log is synced every `period`. Where a sync is overdue by `lag_block`, writes wait.
    Periodic {
        /// `commitlog_sync_period`.
        period: Duration,
        /// `periodic_commitlog_sync_lag_block`.
        lag_block: Duration,
    },
    /// After a sync, which starts at once.
    Batch,
    /// After a sync, which starts at most `window` after the write.
    Group {
        /// `commitlog_sync_group_window`.
        window: Duration,
    },
}

/// Settings of a log.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// `commitlog_directory`.
    pub directory: PathBuf,
    /// `commitlog_sync`.
    pub mode: SyncMode,
    /// `commitlog_segment_size`, in bytes.
    pub segment_bytes: u32,
    /// `commitlog_compression`.
    pub compression: Option<Compression>,
    /// `max_mutation_size`, in bytes with what a record adds.
    pub mutation_bytes_max: usize,
    /// `cdc_enabled` and what goes with it.
    pub cdc: Option<CdcOptions>,
    /// The command that archives a segment (`archive_command`).
    pub archive_command: Option<String>,
    /// Does the log go on in another segment after a failed write or sync (`commit_failure_policy: ignore`)?
    pub goes_on_after_failure: bool,
    /// This shard's part of `commitlog_total_space`, in bytes: past it, the tables that hold the oldest segment
    /// are to be flushed.
    pub total_bytes: u64,
}

/// Something that the operator is to know of the log, with a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEvent<'a> {
    /// A write or sync failed, or a segment could not be made.
    Failed(&'a str),
    /// A segment could not be archived.
    NotArchived(&'a str),
}

/// Who is told of the log's events.
pub type TellLog = Rc<dyn Fn(LogEvent<'_>)>;

/// Why a write cannot be logged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LogError {
    /// An earlier write or sync failed; the log takes no more.
    #[error("the commit log failed: {0}")]
    Failed(Arc<str>),
    /// The mutation is larger than `max_mutation_size`.
    #[error("a mutation of {bytes} bytes exceeds the maximum of {max}")]
    TooLarge {
        /// Its size, with what a record adds.
        bytes: usize,
        /// The largest.
        max: usize,
    },
    /// The write is to be captured, and there is no space for it in the directory of captured segments.
    #[error("{used} bytes of captured segments leave no space for another")]
    CdcFull {
        /// Bytes there.
        used: u64,
    },
    /// The log was closed.
    #[error("the commit log is closed")]
    Closed,
}

/// A segment of an earlier run whose records are in memtables again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inherited {
    /// Its id.
    pub id: i64,
    /// Its size.
    pub bytes: u64,
    /// The tables whose flush it waits for.
    pub tables: Vec<TableId>,
}

/// A logged write: where it ends, and what its acknowledgement waits for.
#[derive(Debug)]
#[must_use = "the write is not durable before `durable` says so"]
pub struct Ticket {
    /// Where its record ends.
    pub position: Position,
    wait: Option<OneshotReceiver<Result<(), LogError>>>,
}

impl Ticket {
    /// Of a write that is not logged: a keyspace without durable writes.
    pub(crate) fn without_log(position: Position) -> Self {
        Self { position, wait: None }
    }

    /// May the write be acknowledged without waiting?
    pub fn is_ready(&self) -> bool {
        self.wait.is_none()
    }

    /// Waits until the write may be acknowledged.
    ///
    /// # Errors
    /// If it did not become durable.
    pub async fn durable(self) -> Result<(), LogError> {
        match self.wait {
            None => Ok(()),
            Some(wait) => wait.await.unwrap_or(Err(LogError::Closed)),
        }
    }
}

/// A section on its way to the file.
#[derive(Debug)]
struct Write {
    data: Rc<SegmentData>,
    bytes: Vec<u8>,
    /// Bytes appended to the log up to its end.
    upto: u64,
}

struct State {
    active: Segment,
    spare: Option<Segment>,
    /// The section in the making: its marker's room and the records.
    section: Vec<u8>,
    queue: VecDeque<Write>,
    /// Is a section taken from the queue and not written?
    is_writing: bool,
    /// Files with sections that are not synced.
    unsynced: Vec<Rc<SegmentData>>,
    /// Segments that were left, and the bytes appended to the log then.
    left: VecDeque<(Rc<SegmentData>, u64)>,
    /// Segments that are synced to their end since the last one was made, which the next one's header tells.
    whole: Vec<i64>,
    /// Bytes of records: appended, written to files, synced.
    appended: u64,
    written: u64,
    synced: u64,
    waiters: VecDeque<(u64, OneshotSender<Result<(), LogError>>)>,
    ledger: Ledger,
    /// Segments that nothing needs any more, whose removal is not durable yet: a crash may bring them back.
    going: BTreeSet<i64>,
    /// No segment with a larger id comes into use before [`CommitLog::leave_behind`].
    held: Option<i64>,
    failed: Option<Arc<str>>,
    /// Segments that were given up: their tables are to be flushed.
    given_up: BTreeSet<i64>,
}

/// One shard's commit log.
pub struct CommitLog {
    me: Weak<Self>,
    env: Env,
    options: LogOptions,
    state: RefCell<State>,
    next_id: Cell<i64>,
    /// Something is queued for writing.
    queued: Notify,
    /// Something was written, or is to be synced at once.
    to_sync: Notify,
    /// A segment was taken; another spare is wanted.
    taken: Notify,
    /// A spare segment is there.
    ready: Notify,
    /// The last sync's start, of those that ended well.
    last_sync: Cell<Instant>,
    /// Sync now, whatever the mode.
    urgent: Cell<bool>,
    closing: Cell<bool>,
    hook: RefCell<Option<HookGuard>>,
    tell: RefCell<Option<TellLog>>,
    archiver: Option<Archiver>,
    cdc: Option<Cdc>,
    /// Counters for metrics.
    pub stats: LogStats,
}

/// What the log counts about itself.
#[derive(Debug, Default)]
pub struct LogStats {
    /// Records appended.
    pub records: Cell<u64>,
    /// Bytes appended.
    pub bytes: Cell<u64>,
    /// Syncs that ended.
    pub syncs: Cell<u64>,
    /// Writes that found no free segment and waited (`WaitingOnSegmentAllocation`).
    pub waits_for_segment: Cell<u64>,
    /// Writes that waited for a sync (`WaitingOnCommit`).
    pub waits_for_sync: Cell<u64>,
}

/// What a log has on its way to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPending {
    /// Bytes appended and not synced.
    pub bytes: u64,
    /// Sections not written.
    pub sections: usize,
    /// Writes that wait for a sync.
    pub waiters: usize,
}

fn bump(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get().wrapping_add(by));
}

/// Gives up all that is not synced, and the files it is in. Records keep their places: memtables have them.
fn give_up(state: &mut State) {
    let section = std::mem::take(&mut state.section);
    state.active.next_offset += section.len() as u32;
    state.active.is_full = true;
    state.is_writing = false;
    let queued = std::mem::take(&mut state.queue).into_iter().map(|write| write.data);
    let unsynced = std::mem::take(&mut state.unsynced).into_iter().chain(queued);
    for data in unsynced.chain([Rc::clone(&state.active.data)]) {
        data.is_given_up.set(true);
        state.given_up.insert(data.id);
    }
    let given_up: Vec<i64> = state.left.drain(..).map(|(data, _)| data.id).collect();
    state.given_up.extend(given_up);
    (state.written, state.synced) = (state.appended, state.appended);
}

impl CommitLog {
    /// Starts a log in an existing directory. Its segments' ids are `first_id`, `first_id + shards` and so on, so
    /// that ids are unique per node; `first_id` must exceed those of all segments there. `inherited` are segments
    /// of an earlier run that this log removes in its time, with the tables that hold them.
    ///
    /// # Errors
    /// If the first segment cannot be created.
    pub async fn start(
        env: &Env,
        options: LogOptions,
        first_id: i64,
        inherited: Vec<Inherited>,
    ) -> io::Result<Rc<Self>> {
        let cdc = match &options.cdc {
            Some(cdc) => Some(Cdc::new(env, cdc, &options.directory, options.segment_bytes).await?),
            None => None,
        };
        let active = Segment::create(env, &options, first_id, &[]).await?;
        if let Some(cdc) = &cdc {
            active.data.cdc.set(cdc.made(first_id).await?);
        }
        let mut ledger = Ledger::default();
        let archiver = options
            .archive_command
            .as_ref()
            .map(|command| Archiver::new(command, &options.directory));
        for segment in inherited {
            if let Some(cdc) = &cdc {
                cdc.captured(segment.id);
            }
            if let Some(archiver) = &archiver {
                archiver.has(segment.id);
            }
            ledger.inherit(segment.id, segment.bytes, segment.tables);
        }
        ledger.open(active.id, active.size());
        let log = Rc::new_cyclic(|me| Self {
            me: Weak::clone(me),
            env: env.clone(),
            next_id: Cell::new(first_id + env.shards() as i64),
            state: RefCell::new(State {
                active,
                spare: None,
                section: Vec::new(),
                queue: VecDeque::new(),
                is_writing: false,
                unsynced: Vec::new(),
                left: VecDeque::new(),
                whole: Vec::new(),
                appended: 0,
                written: 0,
                synced: 0,
                waiters: VecDeque::new(),
                ledger,
                going: BTreeSet::new(),
                held: None,
                failed: None,
                given_up: BTreeSet::new(),
            }),
            options,
            queued: Notify::new(),
            to_sync: Notify::new(),
            taken: Notify::new(),
            ready: Notify::new(),
            last_sync: Cell::new(env.now()),
            urgent: Cell::new(false),
            closing: Cell::new(false),
            hook: RefCell::new(None),
            tell: RefCell::new(None),
            archiver,
            cdc,
            stats: LogStats::default(),
        });
        let at_end = Rc::downgrade(&log);
        let hook = env.at_turn_end(move || {
            if let Some(log) = at_end.upgrade() {
                log.seal();
            }
        });
        *log.hook.borrow_mut() = Some(hook);
        log.remove_clean();
        env.spawn(Class::CommitLog, Rc::clone(&log).write_sections());
        env.spawn(Class::CommitLog, Rc::clone(&log).sync_files());
        env.spawn(Class::CommitLog, Rc::clone(&log).keep_a_spare());
        if log.archiver.is_some() {
            env.spawn(Class::Background, Rc::clone(&log).archive());
        }
        Ok(log)
    }

    /// Tells of what happens from now on.
    pub fn tell_events(&self, tell: Option<TellLog>) {
        self.tell.replace(tell);
    }

    /// The place after the last record.
    pub fn position(&self) -> Position {
        let state = self.state.borrow();
        let end = state.active.next_offset as usize + state.section.len();
        Position { segment: state.active.id, offset: end as u32 }
    }

    /// Why the log takes no more writes, if so.
    pub fn failure(&self) -> Option<LogError> {
        self.state.borrow().failed.clone().map(LogError::Failed)
    }

    /// Appends a record for a mutation of these tables; waits only where no segment is free, or where it is to be
    /// captured (`is_captured`) and its segment has no link yet.
    ///
    /// # Errors
    /// See [`LogError`].
    pub async fn append(
        &self,
        tables: &[TableId],
        mutation: &[u8],
        is_captured: bool,
    ) -> Result<Ticket, LogError> {
        let (bytes, max) =
            (mutation.len() + RECORD_OVERHEAD_BYTES, self.options.mutation_bytes_max);
        if bytes > max {
            return Err(LogError::TooLarge { bytes, max });
        }
        loop {
            while !self.has_room(mutation.len())? {
                bump(&self.stats.waits_for_segment, 1);
                self.ready.notified().await;
            }
            if !is_captured || self.captures().await? {
                break;
            }
        }
        Ok(self.append_now(tables, mutation))
    }

    /// Is the active segment one whose writes are captured? False if another one has become active meanwhile.
    async fn captures(&self) -> Result<bool, LogError> {
        let data = Rc::clone(&self.state.borrow().active.data);
        let Some(cdc) = &self.cdc else { return Ok(true) };
        if data.cdc.get() == CdcState::Forbidden {
            let permitted = cdc.permit_late(data.id).await;
            let permitted =
                permitted.map_err(|error| LogError::Failed(error.to_string().into()))?;
            // others may have waited for the same
            if data.cdc.get() == CdcState::Forbidden {
                data.cdc.set(permitted);
            }
            if data.cdc.get() == CdcState::Forbidden {
                return Err(LogError::CdcFull { used: cdc.used() });
            }
            return Ok(false);
        }
        if data.cdc.replace(CdcState::Contains) == CdcState::Permitted {
            cdc.captured(data.id);
        }
        Ok(true)
    }

    /// Makes room for a record, in another segment if need be. False if there is none yet.
    fn has_room(&self, mutation_bytes: usize) -> Result<bool, LogError> {
        let mut state = self.state.borrow_mut();
        if let Some(failed) = &state.failed {
            return Err(LogError::Failed(Arc::clone(failed)));
        }
        if self.closing.get() {
            return Err(LogError::Closed);
        }
        let section = state.section.len().max(MARKER_BYTES);
        if state.active.has_room(section + mutation_bytes + RECORD_OVERHEAD_BYTES) {
            return Ok(true);
        }
        self.seal_section(&mut state);
        let held = state.held;
        let free = |spare: &mut Segment| held.is_none_or(|floor| spare.id <= floor);
        let Some(spare) = state.spare.take_if(free) else { return Ok(false) };
        self.go_on_in(&mut state, spare);
        self.env.mark("commitlog.rotate");
        Ok(true)
    }

    fn go_on_in(&self, state: &mut State, segment: Segment) {
        state.ledger.open(segment.id, segment.size());
        let left = std::mem::replace(&mut state.active, segment);
        if self.env.planted("whole_before_sync") {
            state.whole.push(left.id);
        }
        left.data.end.set(Some(left.next_offset));
        if !left.data.is_given_up.get() {
            state.left.push_back((left.data, state.appended));
        }
        self.taken.notify_one();
    }

    fn append_now(&self, tables: &[TableId], mutation: &[u8]) -> Ticket {
        let mut state = self.state.borrow_mut();
        if state.section.is_empty() {
            format::begin_section(&mut state.section);
        }
        let bytes =
            format::append_record(&mut state.section, |out| out.extend_from_slice(mutation));
        state.appended += bytes as u64;
        let end = state.active.next_offset as usize + state.section.len();
        let position = Position { segment: state.active.id, offset: end as u32 };
        for table in tables {
            state.ledger.wrote(*table, position);
        }
        bump(&self.stats.records, 1);
        bump(&self.stats.bytes, bytes as u64);
        let wait = self.must_wait().then(|| {
            let (sender, receiver) = oneshot();
            let upto = state.appended;
            state.waiters.push_back((upto, sender));
            bump(&self.stats.waits_for_sync, 1);
            receiver
        });
        Ticket { position, wait }
    }

    /// Must a write wait for a sync before it is acknowledged?
    fn must_wait(&self) -> bool {
        if self.env.planted("ack_before_sync") {
            return false;
        }
        match self.options.mode {
            SyncMode::Batch | SyncMode::Group { .. } => true,
            SyncMode::Periodic { period, lag_block } => {
                self.env.turn_now() > self.last_sync.get() + period + lag_block
            }
        }
    }

    /// Hands the section in the making to the writing task. What compresses becomes smaller the more there is of it: so
    /// while one section is on its way, records gather for the next.
    fn seal(&self) {
        let mut state = self.state.borrow_mut();
        let may_wait = self.options.compression.is_some() && state.is_writing;
        if !may_wait || state.section.len() >= SECTION_BYTES {
            self.seal_section(&mut state);
        }
    }

    fn seal_section(&self, state: &mut State) {
        if state.section.is_empty() || state.failed.is_some() {
            return;
        }
        let bytes = std::mem::take(&mut state.section);
        state.active.next_offset += bytes.len() as u32;
        let data = Rc::clone(&state.active.data);
        let upto = state.appended;
        state.is_writing = true;
        state.queue.push_back(Write { data, bytes, upto });
        self.queued.notify_one();
    }

    async fn write_sections(self: Rc<Self>) {
        let mut packer = self.options.compression.as_ref().map(Packer::new);
        loop {
            let next = self.state.borrow_mut().queue.pop_front();
            let Some(Write { data, mut bytes, upto }) = next else {
                if self.closing.get() {
                    return;
                }
                self.queued.notified().await;
                continue;
            };
            let (mut spare, length) = (None, bytes.len() as u32);
            if let Some(packer) = &mut packer {
                match packer.pack(&self.env, bytes).await {
                    Ok((packed, section)) => (bytes, spare) = (packed, Some(section)),
                    Err(error) => {
                        self.fail("compression for", &io::Error::other(error));
                        if self.is_over() {
                            return;
                        }
                        continue;
                    }
                }
            }
            let offset = data.written.get();
            format::end_section(&mut bytes, data.id, offset);
            data.written.set(offset + bytes.len() as u32);
            let (result, mut buffer) = data.file.write_all_at(bytes, u64::from(offset)).await;
            if let Err(error) = result {
                self.fail("write", &error);
                if self.is_over() {
                    return;
                }
                continue;
            }
            if let (Some(packer), Some(section)) = (&mut packer, spare) {
                packer.take_back(std::mem::replace(&mut buffer, section));
            }
            data.records_end.set(data.records_end.get() + length);
            self.wrote(data, upto, buffer);
        }
    }

    fn wrote(&self, data: Rc<SegmentData>, upto: u64, mut buffer: Vec<u8>) {
        let mut state = self.state.borrow_mut();
        state.is_writing = !state.queue.is_empty();
        if data.is_given_up.get() {
            return;
        }
        state.written = upto.max(state.written);
        if self.options.compression.is_some() {
            state.ledger.resize(data.id, data.written.get().into());
        }
        if !state.unsynced.iter().any(|known| Rc::ptr_eq(known, &data)) {
            state.unsynced.push(data);
        }
        if state.section.capacity() == 0 {
            // the common case: one section at a time, one buffer for all
            buffer.clear();
            state.section = buffer;
        } else if self.options.compression.is_some() && !state.is_writing {
            // records gathered while this section was on its way
            self.seal_section(&mut state);
        }
        drop(state);
        self.to_sync.notify_one();
    }

    async fn sync_files(self: Rc<Self>) {
        loop {
            self.wait_until_sync_is_due().await;
            let started = self.env.now();
            let (files, upto) = {
                let mut state = self.state.borrow_mut();
                (std::mem::take(&mut state.unsynced), state.written)
            };
            let retried = files.clone();
            let ends: Vec<_> = files.iter().map(|data| data.records_end.get()).collect();
            let mut result = Ok(());
            for data in files {
                if result.is_ok() {
                    result = data.file.sync_data().await;
                }
            }
            if result.is_err() && self.env.planted("sync_retried") {
                self.state.borrow_mut().unsynced.extend(retried);
                continue;
            }
            if let Err(error) = result {
                self.fail("sync", &error);
                if self.is_over() {
                    return;
                }
                continue;
            }
            bump(&self.stats.syncs, 1);
            self.last_sync.set(started);
            let left = self.synced(upto);
            if let Some(cdc) = &self.cdc {
                let partly = retried.iter().zip(ends);
                let wholly = left.iter().filter_map(|data| Some((data, data.end.get()?)));
                for (data, end) in partly.chain(wholly) {
                    if let Err(error) = data.tell_consumer(cdc, end).await {
                        self.fail("CDC index", &error);
                        break;
                    }
                }
            }
            let state = self.state.borrow();
            if state.failed.is_some() || (self.closing.get() && state.synced == state.appended) {
                return;
            }
        }
    }

    async fn wait_until_sync_is_due(&self) {
        let wanted = |state: &State| state.written > state.synced;
        if let SyncMode::Periodic { period, .. } = self.options.mode {
            let due = self.last_sync.get() + period;
            while !self.urgent.get() && self.env.now() < due {
                let _ = self.env.timeout_at(due, self.to_sync.notified()).await;
                if self.closing.get() {
                    break;
                }
            }
        }
        while !wanted(&self.state.borrow()) {
            let periodic = matches!(self.options.mode, SyncMode::Periodic { .. });
            // Somebody waits for records that are on their way to the file: turning round and round would keep
            // them from getting there.
            if self.closing.get() || (periodic && !self.urgent.get()) {
                return;
            }
            self.to_sync.notified().await;
        }
        if let SyncMode::Group { window } = self.options.mode
            && !self.urgent.get()
            && !self.closing.get()
        {
            self.env.sleep(window).await;
        }
    }

    /// All up to there is synced; gives the segments that were left and are whole now.
    fn synced(&self, upto: u64) -> Vec<Rc<SegmentData>> {
        let mut left = Vec::new();
        let mut state = self.state.borrow_mut();
        state.synced = upto.max(state.synced);
        if state.synced == state.appended {
            self.urgent.set(false);
        }
        while let Some((data, _)) = state.left.pop_front_if(|(_, at)| *at <= upto) {
            state.whole.push(data.id);
            if let Some(archiver) = &self.archiver {
                archiver.want(data.id);
            }
            left.push(data);
        }
        while state.waiters.front().is_some_and(|(at, _)| *at <= upto) {
            if let Some((_, waiter)) = state.waiters.pop_front() {
                let _ = waiter.send(Ok(()));
            }
        }
        left
    }

    /// A write, a sync or a new segment failed: nobody knows what the disk holds of all that is not synced. Nothing of it
    /// is acknowledged any more, whatever a later sync says.
    fn fail(&self, what: &str, error: &io::Error) {
        let mut state = self.state.borrow_mut();
        let path = state.active.path.display();
        let failed: Arc<str> = format!("{what} of {path}: {error}").into();
        match self.options.goes_on_after_failure {
            false => state.failed = Some(Arc::clone(&failed)),
            true => {
                give_up(&mut state);
                self.env.mark("commitlog.given_up");
            }
        }
        self.env.mark("commitlog.failed");
        for (_, waiter) in std::mem::take(&mut state.waiters) {
            let _ = waiter.send(Err(LogError::Failed(Arc::clone(&failed))));
        }
        drop(state);
        self.urgent.set(false);
        self.tell(LogEvent::Failed(&failed));
        self.ready.notify_all();
        self.to_sync.notify_all();
        self.queued.notify_all();
    }

    async fn keep_a_spare(self: Rc<Self>) {
        loop {
            if self.closing.get() || self.state.borrow().failed.is_some() {
                return;
            }
            if self.state.borrow().spare.is_some() {
                self.taken.notified().await;
                continue;
            }
            let id = self.next_id.get();
            self.next_id.set(id + self.env.shards() as i64);
            match self.create(id).await {
                Ok(segment) => self.offer(segment).await,
                Err(error) => {
                    self.fail_to_create(&error);
                    if !self.is_over() {
                        self.env.sleep(PAUSE_AFTER_FAILURE).await;
                    }
                }
            }
        }
    }

    /// There is no segment after this one, which is as good as it was.
    fn fail_to_create(&self, error: &io::Error) {
        const WHAT: &str = "creation of the segment after";
        if !self.options.goes_on_after_failure {
            return self.fail(WHAT, error);
        }
        let path = self.state.borrow().active.path.display().to_string();
        self.tell(LogEvent::Failed(&format!("{WHAT} of {path}: {error}")));
    }

    fn tell(&self, event: LogEvent<'_>) {
        let tell = self.tell.borrow().clone();
        if let Some(tell) = tell {
            tell(event);
        }
    }

    /// Is there a segment that was given up, with records that no SSTable has yet?
    pub fn gave_up(&self) -> bool {
        !self.state.borrow().given_up.is_empty()
    }

    /// Does the log take nothing any more?
    fn is_over(&self) -> bool {
        self.state.borrow().failed.is_some()
    }

    async fn create(&self, id: i64) -> io::Result<Segment> {
        let whole = std::mem::take(&mut self.state.borrow_mut().whole);
        let segment = Segment::create(&self.env, &self.options, id, &whole).await?;
        if let Some(cdc) = &self.cdc {
            segment.data.cdc.set(cdc.made(id).await?);
        }
        Ok(segment)
    }

    /// Waits until everything appended so far is synced.
    ///
    /// # Errors
    /// If the log failed.
    pub async fn sync(&self) -> Result<(), LogError> {
        self.seal();
        let waiter = {
            let mut state = self.state.borrow_mut();
            if let Some(failed) = &state.failed {
                return Err(LogError::Failed(Arc::clone(failed)));
            }
            if !state.given_up.is_empty() {
                return Err(LogError::Failed("what was given up is not in SSTables yet".into()));
            }
            if state.synced == state.appended {
                return Ok(());
            }
            let (sender, receiver) = oneshot();
            let upto = state.appended;
            state.waiters.push_back((upto, sender));
            receiver
        };
        self.urgent.set(true);
        self.to_sync.notify_one();
        waiter.await.unwrap_or(Err(LogError::Closed))
    }

    /// All records of `table` up to `position` are in durable SSTables: removes the segments that nothing
    /// needs any more.
    pub fn flushed(&self, table: TableId, position: Position) {
        let late = self.env.planted("segment_recycled_early");
        let position = if late { self.position() } else { position };
        self.state.borrow_mut().ledger.flushed(table, position);
        self.remove_clean();
    }

    /// Forgets the records of a dropped table.
    pub fn dropped(&self, table: TableId) {
        self.state.borrow_mut().ledger.dropped(table);
        self.remove_clean();
    }

    fn remove_clean(&self) {
        let mut state = self.state.borrow_mut();
        let gone = state.ledger.take_clean();
        let State { given_up, ledger, .. } = &mut *state;
        given_up.retain(|id| ledger.is_dirty(*id));
        state.going.extend(&gone);
        drop(state);
        gone.iter().for_each(|_| self.env.mark("commitlog.discard"));
        if let Some(log) = self.me.upgrade().filter(|_| !gone.is_empty()) {
            self.env.spawn(Class::CommitLog, async move { log.remove(gone).await });
        }
    }

    async fn archive(self: Rc<Self>) {
        if let Some(archiver) = &self.archiver {
            archiver.run(&self.env, |what| self.tell(LogEvent::NotArchived(what))).await;
        }
    }

    /// Removes the files of segments, once they are archived if they are to be. One that stays behind costs space, and a replay that finds nothing new.
    async fn remove(&self, gone: Vec<i64>) {
        let mut gone = gone;
        if let Some(archiver) = &self.archiver {
            let mut archived = Vec::new();
            for id in gone {
                if archiver.archived(id).await {
                    archived.push(id);
                }
            }
            gone = archived;
        }
        for id in &gone {
            let path = self.options.directory.join(format::file_name(*id));
            if self.env.remove_file(&path).await.is_err() {
                return;
            }
        }
        if let Some(cdc) = &self.cdc {
            for id in &gone {
                cdc.discarded(*id).await;
            }
        }
        if self.env.sync_dir(&self.options.directory).await.is_ok() {
            self.state.borrow_mut().going.retain(|id| !gone.contains(id));
        }
    }

    /// The segments that a start would find: a crash may bring back one whose removal is not durable.
    pub fn segments(&self) -> BTreeSet<i64> {
        let state = self.state.borrow();
        state.ledger.ids_from(i64::MIN).chain(state.going.iter().copied()).collect()
    }

    /// The id that the next segment will have at least.
    pub fn next_id(&self) -> i64 {
        self.next_id.get()
    }

    /// Makes the segment that follows one whose id is above `floor`: for [`CommitLog::leave_behind`], before which
    /// no segment above `floor` comes into use. If that is not to come, [`CommitLog::release`].
    ///
    /// # Errors
    /// If it cannot be created.
    pub async fn prepare_above(&self, floor: i64) -> Result<(), LogError> {
        self.state.borrow_mut().held = Some(floor);
        let shards = self.env.shards() as i64;
        let mut id = self.next_id.get();
        while id <= floor {
            id += shards;
        }
        self.next_id.set(id + shards);
        let segment = match self.create(id).await {
            Ok(segment) => segment,
            Err(error) => {
                self.fail_to_create(&error);
                return Err(LogError::Failed(error.to_string().into()));
            }
        };
        self.offer(segment).await;
        Ok(())
    }

    /// Takes a new segment for the next one, unless a later one is there already. Two tasks create segments and
    /// may end in either order, but ids must never go down: a record in a segment below a truncation's is void.
    async fn offer(&self, segment: Segment) {
        let unused = {
            let mut state = self.state.borrow_mut();
            let late = segment.id < state.active.id
                || state.spare.as_ref().is_some_and(|spare| spare.id > segment.id);
            let late = late && !self.env.planted("segments_out_of_order");
            if late { Some(segment) } else { state.spare.replace(segment) }
        };
        self.ready.notify_all();
        if let Some(unused) = unused {
            // nothing was written to it; what stays behind replays as nothing
            let _ = self.env.remove_file(&unused.path).await;
            if let Some(cdc) = &self.cdc {
                cdc.discarded(unused.id).await;
            }
        }
    }

    /// Any segment may come into use again.
    pub fn release(&self) {
        self.state.borrow_mut().held = None;
        self.ready.notify_all();
    }

    /// Goes on in the segment after this one, if this one's id is not above `floor`: all records before are in
    /// segments up to `floor`, all after in later ones. Does not wait.
    ///
    /// # Errors
    /// If no such segment was prepared.
    pub fn leave_behind(&self, floor: i64) -> Result<(), LogError> {
        self.release();
        let mut state = self.state.borrow_mut();
        if state.active.id > floor {
            return Ok(());
        }
        self.seal_section(&mut state);
        let Some(spare) = state.spare.take_if(|spare| spare.id > floor) else {
            return Err(LogError::Failed("no segment to go on in".into()));
        };
        self.go_on_in(&mut state, spare);
        Ok(())
    }

    /// The tables to flush so that the log shrinks below its limit; empty while it is below.
    pub fn over_limit(&self) -> Vec<TableId> {
        let state = self.state.borrow();
        let over = state.ledger.bytes() > self.options.total_bytes;
        let mut tables = if over { state.ledger.oldest_dirty() } else { Vec::new() };
        tables.extend(state.ledger.dirty_in(&state.given_up));
        tables
    }

    /// The parts of the log between two positions, a pair for each segment: an SSTable's intervals.
    pub fn intervals(&self, from: Position, to: Position) -> Vec<(Position, Position)> {
        let state = self.state.borrow();
        let ids = state.ledger.ids_from(from.segment).filter(|id| *id <= to.segment);
        let interval = |segment| {
            let start = if segment == from.segment { from.offset } else { 0 };
            let end = if segment == to.segment { to.offset } else { self.options.segment_bytes };
            (Position { segment, offset: start }, Position { segment, offset: end })
        };
        ids.map(interval).collect()
    }

    /// What is on its way to the disk.
    pub fn pending(&self) -> LogPending {
        let state = self.state.borrow();
        LogPending {
            bytes: state.appended.saturating_sub(state.synced),
            sections: state.queue.len(),
            waiters: state.waiters.len(),
        }
    }

    /// Bytes of all segments, and their number.
    pub fn size(&self) -> (u64, usize) {
        let state = self.state.borrow();
        (state.ledger.bytes(), state.ledger.len())
    }

    /// Syncs what is left and ends the log's tasks. What nothing needs any more goes, the segment being written
    /// included, and with it the segments made in advance: after a flush of all tables nothing is left to replay.
    ///
    /// # Errors
    /// If the log failed.
    pub async fn close(&self) -> Result<(), LogError> {
        let result = self.sync().await;
        self.closing.set(true);
        self.hook.borrow_mut().take();
        self.to_sync.notify_all();
        self.queued.notify_all();
        self.taken.notify_all();
        self.ready.notify_all();
        if let (true, Some(cdc)) = (result.is_ok(), &self.cdc) {
            let (data, end) = {
                let active = &self.state.borrow().active;
                active.data.end.set(Some(active.next_offset));
                (Rc::clone(&active.data), active.next_offset)
            };
            // the start that follows completes it too
            let _ = data.tell_consumer(cdc, end).await;
        }
        if result.is_ok() {
            let gone: Vec<i64> = {
                let mut state = self.state.borrow_mut();
                let spare = state.spare.take().map(|spare| spare.id);
                state.ledger.take_all_clean().into_iter().chain(spare).collect()
            };
            self.remove(gone).await;
        }
        result
    }
}
