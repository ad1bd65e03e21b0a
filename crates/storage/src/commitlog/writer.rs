//! Writing one shard's commit log.
//!
//! Records gather in a buffer; at the end of a turn of the loop the buffer becomes one section and
//! goes to the writing task, which compresses it if so configured, and writes sections in order.
//! Another task syncs: every period (`periodic`), or as soon as somebody waits (`batch`), or after
//! a window (`group`). A failed write or sync poisons the log: nothing more is acknowledged
//! (decision 15), since after it nobody knows what the disk holds. Where the operator wants to go
//! on (`commit_failure_policy: ignore`), that file is given up: what waited for it fails, later
//! writes go to another segment, and the tables are flushed that it had.
//!
//! A section of up to 64 KiB goes to its file in place, as a rule before the turn's answers go out.
//! The disk's queue takes a section that is longer, compressed, or behind a segment that is not
//! synced yet. While it writes one, records gather for the next. Writes wait once half a segment of
//! records is in no file.
//!
//! In periodic mode a write goes on with zeros to the end of the 64 KiB that it is the first to
//! touch. The kernel then takes one large page for them. Files of simulated worlds have no pages,
//! so it does not happen there.

mod chain;
mod sync;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use env::sync::{Notify, OneshotSender, oneshot};
use env::{Class, Env, HookGuard, Instant};
use schema::TableId;

use super::archive::Archiver;
use super::cdc::{Cdc, CdcState};
use super::format::{self, MARK_BYTES_MAX, MARKER_BYTES, Position, RECORD_OVERHEAD_BYTES};
use super::ledger::Ledger;
use super::list::SegmentList;
use super::log::{
    Inherited, LogError, LogOptions, LogPending, LogStats, SyncMode, TellLog, Ticket,
};
use super::pack::Packer;
use super::segment::{Segment, SegmentData};

/// How long after a sync the list of segments tells of it, where no mark does.
const LIST_AFTER: Duration = Duration::from_secs(1);
/// A section of so many bytes gathers no more, though one before it is on its way: what follows is
/// to find little left to write, and a turn of the loop compresses no more.
const SECTION_BYTES: usize = 1 << 20;
const PACKED_SECTION_BYTES: usize = 64 << 10;
/// Writes wait while one part of so many of a segment's size is appended and not in the files: it
/// is in memory alone, and a process that is killed takes it along.
const LAG_PART: u64 = 2;
/// A section of at most so many bytes is written where it is sealed: handing it to the disk's queue
/// costs more than copying it to the kernel's pages does. More would hold the loop up.
const NOW_BYTES_MAX: usize = 64 << 10;

/// A section on its way to the file.
#[derive(Debug)]
struct Write {
    data: Rc<SegmentData>,
    /// A mark, and the section if there is one.
    bytes: Vec<u8>,
    /// Bytes of the mark.
    mark: usize,
    /// Bytes appended to the log up to its end.
    upto: u64,
}

impl Write {
    /// The section in the making.
    fn take(state: &mut State) -> Self {
        let bytes = std::mem::take(&mut state.section);
        let mark = std::mem::take(&mut state.mark);
        state.active.next_offset += bytes.len() as u32;
        assert!(mark <= bytes.len(), "a mark lies within the bytes that are written");
        let (end, room) = (state.active.next_offset, state.active.bytes);
        assert!(end <= room, "a section ends within its segment: {end} of {room}");
        Self { data: Rc::clone(&state.active.data), bytes, mark, upto: state.appended }
    }
}

struct State {
    active: Segment,
    spare: Option<Segment>,
    /// The section in the making: a mark of what is synced, its marker's room and the records.
    section: Vec<u8>,
    /// Bytes of the mark.
    mark: usize,
    queue: VecDeque<Write>,
    /// Is a section taken from the queue and not written?
    is_writing: bool,
    /// Files with sections that are not synced.
    unsynced: Vec<Rc<SegmentData>>,
    /// Segments that were left, and the bytes appended to the log then.
    left: VecDeque<(Rc<SegmentData>, u64)>,
    /// Segments that are synced to their end since the last one was made, which the next one's
    /// header tells.
    whole: Vec<i64>,
    /// Up to where segments are synced, which the list of segments is to tell.
    to_list: BTreeMap<i64, u32>,
    /// Bytes of records: appended, written to files, synced.
    appended: u64,
    written: u64,
    synced: u64,
    waiters: VecDeque<(u64, OneshotSender<Result<(), LogError>>)>,
    ledger: Ledger,
    /// Segments that nothing needs any more, whose removal is not durable yet: a crash may bring
    /// them back.
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
    /// Little of what is appended is not in the files.
    caught_up: Notify,
    /// What was appended by then is synced.
    last_sync: Cell<Instant>,
    /// When a sync became due, and the bytes appended to the log then: what it is to cover.
    to_cover: Cell<Option<(Instant, u64)>>,
    /// Sync now, whatever the mode.
    urgent: Cell<bool>,
    /// Sync once now: the first section of a segment waits for the end of the one before.
    rotating: Cell<bool>,
    /// A sync ended, well or not.
    sync_ended: Notify,
    closing: Cell<bool>,
    /// How many segments are being made.
    making: Cell<u32>,
    hook: RefCell<Option<HookGuard>>,
    tell: RefCell<Option<TellLog>>,
    /// The versions of segments of earlier runs.
    versions: BTreeMap<i64, i32>,
    list: SegmentList,
    archiver: Option<Archiver>,
    cdc: Option<Cdc>,
    /// Counters for metrics.
    pub stats: LogStats,
}

fn bump(cell: &Cell<u64>, by: u64) {
    cell.set(cell.get().wrapping_add(by));
}

impl CommitLog {
    /// Starts a log in an existing directory. Its segments' ids are `first_id`, `first_id + shards`
    /// and so on, so that ids are unique per node; `first_id` must exceed those of all segments
    /// there. `inherited` are segments of an earlier run that this log removes in its time, with
    /// the tables that hold them.
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
        let listed = inherited.iter().filter_map(Inherited::listed).collect();
        let versions = inherited.iter().map(|segment| (segment.id, segment.version)).collect();
        let list = SegmentList::new(&options.directory, env.shard(), listed);
        let active = Segment::create(env, &options, first_id, &[]).await?;
        list.add(env, first_id).await?;
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
                mark: 0,
                queue: VecDeque::new(),
                is_writing: false,
                unsynced: Vec::new(),
                left: VecDeque::new(),
                whole: Vec::new(),
                to_list: BTreeMap::new(),
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
            caught_up: Notify::new(),
            last_sync: Cell::new(env.now()),
            to_cover: Cell::new(None),
            urgent: Cell::new(false),
            rotating: Cell::new(false),
            sync_ended: Notify::new(),
            closing: Cell::new(false),
            making: Cell::default(),
            hook: RefCell::new(None),
            tell: RefCell::new(None),
            versions,
            list,
            archiver,
            cdc,
            stats: LogStats::default(),
        });
        log.begin();
        Ok(log)
    }

    /// Starts what goes on beside the writes.
    fn begin(self: &Rc<Self>) {
        let at_end = Rc::downgrade(self);
        let hook = self.env.at_turn_end(move || {
            if let Some(log) = at_end.upgrade() {
                log.seal();
            }
        });
        *self.hook.borrow_mut() = Some(hook);
        self.remove_clean();
        self.env.spawn(Class::CommitLog, Rc::clone(self).write_sections());
        self.env.spawn(Class::CommitLog, Rc::clone(self).sync_files());
        self.env.spawn(Class::CommitLog, Rc::clone(self).keep_a_spare());
        if self.options.compression.is_none() {
            self.env.spawn(Class::CommitLog, Rc::clone(self).mark_when_idle());
        }
        self.env.spawn(Class::CommitLog, Rc::clone(self).list_what_is_synced());
        if self.archiver.is_some() {
            self.env.spawn(Class::Background, Rc::clone(self).archive());
        }
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

    /// Appends a record for a mutation of these tables; waits only where no segment is free, where
    /// the files are far behind, or where it is to be captured (`is_captured`) and its segment has
    /// no link yet.
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
            while self.lag() > self.most_lag() {
                bump(&self.stats.waits_for_writing, 1);
                self.caught_up.notified().await;
            }
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

    /// Bytes of records that are appended and not in the files; none of a log that writes no more.
    fn lag(&self) -> u64 {
        let state = self.state.borrow();
        if state.failed.is_some() || self.closing.get() {
            return 0;
        }
        state.appended.saturating_sub(state.written)
    }

    fn most_lag(&self) -> u64 {
        u64::from(self.options.segment_bytes) / LAG_PART
    }

    /// Is the active segment one whose writes are captured? False if another one has become active
    /// meanwhile.
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
        let section = state.section.len().max(MARKER_BYTES + MARK_BYTES_MAX);
        // a mark is to fit behind the last record too
        let bytes = section + mutation_bytes + RECORD_OVERHEAD_BYTES + MARK_BYTES_MAX;
        if state.active.has_room(bytes) {
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

    fn append_now(&self, tables: &[TableId], mutation: &[u8]) -> Ticket {
        let mut state = self.state.borrow_mut();
        if state.section.is_empty() {
            self.mark_synced(&mut state);
            format::begin_section(&mut state.section);
        }
        let bytes =
            format::append_record(&mut state.section, |out| out.extend_from_slice(mutation));
        let reserved = mutation.len() + RECORD_OVERHEAD_BYTES;
        assert_eq!(bytes, reserved, "a record takes what was reserved for it");
        state.appended += bytes as u64;
        let end = state.active.next_offset as usize + state.section.len();
        assert!(end <= state.active.bytes as usize, "a record ends within its segment");
        let position = Position { segment: state.active.id, offset: end as u32 };
        for table in tables {
            state.ledger.wrote(*table, position);
        }
        bump(&self.stats.records, 1);
        bump(&self.stats.bytes, bytes as u64);
        let wait = self.must_wait().then(|| {
            let (sender, receiver) = oneshot();
            let upto = state.appended;
            let is_next = state.waiters.back().is_none_or(|(before, _)| *before <= upto);
            assert!(is_next, "writes wait for a sync in the order of the log");
            state.waiters.push_back((upto, sender));
            bump(&self.stats.waits_for_sync, 1);
            receiver
        });
        Ticket { position, wait }
    }

    /// Begins what is written next with a mark of what is synced, if none tells of that yet.
    fn mark_synced(&self, state: &mut State) {
        let data = &state.active.data;
        if self.options.compression.is_some() || data.synced.get() <= data.marked.get() {
            return;
        }
        let at = state.active.next_offset;
        let lag = at.checked_sub(data.synced.get());
        let lag = lag.expect("no more of a segment is synced than was written to it");
        state.mark = format::append_mark(&mut state.section, data.id, at, lag);
        data.marked.set(at + state.mark as u32);
    }

    /// Where nothing is to be written after a sync, a mark that stands alone tells of it: so the
    /// last records too are known to have been there.
    async fn mark_when_idle(self: Rc<Self>) {
        loop {
            self.sync_ended.notified().await;
            if self.closing.get() || self.is_over() {
                return;
            }
            let mut state = self.state.borrow_mut();
            let is_idle = state.section.is_empty() && !state.is_writing;
            let all_synced = state.active.data.synced.get() == state.active.next_offset;
            if is_idle && all_synced && state.active.has_room(MARK_BYTES_MAX) {
                self.mark_synced(&mut state);
                self.seal_section(&mut state);
            }
        }
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

    /// At the end of a turn: writes the section in the making, or hands it to the writing task.
    /// While one is on its way there, records gather for the next, which would not begin earlier:
    /// fewer writes, and more to compress at once.
    fn seal(&self) {
        if self.may_write_now() {
            return self.write_now();
        }
        let mut state = self.state.borrow_mut();
        let most =
            if self.options.compression.is_some() { PACKED_SECTION_BYTES } else { SECTION_BYTES };
        if !state.is_writing || state.section.len() >= most {
            self.seal_section(&mut state);
        }
    }

    fn seal_section(&self, state: &mut State) {
        if state.section.is_empty() || state.failed.is_some() {
            return;
        }
        let write = Write::take(state);
        state.is_writing = true;
        state.queue.push_back(write);
        self.queued.notify_one();
    }

    /// Is the section in the making short, and nothing before it on its way?
    fn may_write_now(&self) -> bool {
        let state = self.state.borrow();
        self.options.compression.is_none()
            && !state.section.is_empty()
            && state.section.len() <= NOW_BYTES_MAX
            && state.failed.is_none()
            && !state.is_writing
            && !state.active.data.is_given_up.get()
            && !state.waits_for_segments_before(state.active.id)
            && state.active.data.file.takes_now()
    }

    /// Writes the section in the making: what is answered at the end of this turn is in the file
    /// then.
    fn write_now(&self) {
        let Write { data, mut bytes, mark, upto } = Write::take(&mut self.state.borrow_mut());
        let length = bytes.len() as u32;
        let offset = data.take_place(&mut bytes, mark);
        data.lay_out(&mut bytes);
        match data.file.write_now(&bytes, u64::from(offset)) {
            Ok(()) => self.wrote(data, length, upto, bytes),
            Err(error) => self.fail("cannot write", &self.path_of(data.id), &error),
        }
    }

    async fn write_sections(self: Rc<Self>) {
        let mut packer = self.options.compression.as_ref().map(Packer::new);
        loop {
            let next = self.state.borrow_mut().queue.pop_front();
            let Some(Write { data, mut bytes, mark, upto }) = next else {
                if self.closing.get() {
                    return;
                }
                self.queued.notified().await;
                continue;
            };
            self.wait_for_segments_before(data.id).await;
            if data.is_given_up.get() {
                let mut state = self.state.borrow_mut();
                state.is_writing = !state.queue.is_empty();
                continue;
            }
            let (mut spare, length) = (None, bytes.len() as u32);
            if let Some(packer) = &mut packer {
                match packer.pack(&self.env, bytes).await {
                    Ok((packed, section)) => (bytes, spare) = (packed, Some(section)),
                    Err(error) => {
                        let error = io::Error::other(error);
                        self.fail("cannot compress", &self.path_of(data.id), &error);
                        if self.is_over() {
                            return;
                        }
                        continue;
                    }
                }
            }
            let offset = data.take_place(&mut bytes, mark);
            data.lay_out(&mut bytes);
            let (result, mut buffer) = data.file.write_all_at(bytes, u64::from(offset)).await;
            if let Err(error) = result {
                self.fail("cannot write", &self.path_of(data.id), &error);
                if self.is_over() {
                    return;
                }
                continue;
            }
            if let (Some(packer), Some(section)) = (&mut packer, spare) {
                packer.take_back(std::mem::replace(&mut buffer, section));
            }
            self.wrote(data, length, upto, buffer);
        }
    }

    /// A section of so many bytes, before it was compressed, is in its file.
    fn wrote(&self, data: Rc<SegmentData>, length: u32, upto: u64, mut buffer: Vec<u8>) {
        data.records_end.set(data.records_end.get() + length);
        data.file_end.set(data.written.get());
        let mut state = self.state.borrow_mut();
        assert!(upto <= state.appended, "no more bytes are written than were appended: {upto}");
        // positions are what a replay compares with what SSTables say that they have
        assert!(
            self.options.compression.is_some() || data.records_end == data.file_end,
            "without compression a record lies in its file where its position says"
        );
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
        }
        let covers = self.to_cover.get().is_some_and(|(_, appended)| state.written >= appended);
        drop(state);
        if self.lag() <= self.most_lag() / 2 {
            self.caught_up.notify_all();
        }
        // a sync that is due by the clock alone need not be woken by each write
        let is_periodic = matches!(self.options.mode, SyncMode::Periodic { .. });
        if self.urgent.get() || covers || !is_periodic {
            self.to_sync.notify_one();
        }
    }

    /// What is on its way to the disk.
    pub fn pending(&self) -> LogPending {
        let state = self.state.borrow();
        LogPending {
            bytes: state.appended.saturating_sub(state.synced),
            unwritten: state.appended.saturating_sub(state.written),
            sections: state.queue.len(),
            waiters: state.waiters.len(),
        }
    }

    /// Syncs what is left and ends the log's tasks. What nothing needs any more goes, the segment
    /// being written included, and with it the segments made in advance: after a flush of all
    /// tables nothing is left to replay.
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
        self.caught_up.notify_all();
        while self.making.get() > 0 {
            self.ready.notified().await;
        }
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
