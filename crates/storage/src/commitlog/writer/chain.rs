//! The segments of a log: made in advance, taken one after the other, archived, and removed when
//! nothing needs them.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use env::Class;
use schema::TableId;

use super::{CommitLog, State};
use crate::commitlog::format::{self, Position};
use crate::commitlog::log::{LogError, LogEvent};
use crate::commitlog::segment::Segment;

/// How long after a segment could not be created it is tried again, where the log goes on.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);
/// What fails where there is no segment after the one that is written.
const CREATION: &str = "cannot create commit log segment";
/// What fails where nobody would know which segments are there.
pub(super) const LISTING: &str = "cannot write the segment list in";

/// A segment is being made, while this lives.
struct Making<'a>(&'a CommitLog);

impl<'a> Making<'a> {
    fn new(log: &'a CommitLog) -> Self {
        log.making.set(log.making.get() + 1);
        Self(log)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.making.set(self.0.making.get() - 1);
        self.0.ready.notify_all();
    }
}

impl CommitLog {
    pub(super) async fn keep_a_spare(self: Rc<Self>) {
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
            if let Err(error) = self.make(id).await {
                self.fail_aside(CREATION, &self.path_of(id), &error);
                if !self.is_over() {
                    self.env.sleep(PAUSE_AFTER_FAILURE).await;
                }
            }
        }
    }

    /// Something beside the segment that is written failed; that is as good as it was.
    pub(super) fn fail_aside(&self, what: &str, path: &Path, error: &io::Error) {
        if !self.options.goes_on_after_failure {
            return self.fail(what, path, error);
        }
        self.tell(LogEvent::Failed(&format!("{what} {}: {error}", path.display())));
    }

    /// The file of one of this log's segments.
    pub(super) fn path_of(&self, id: i64) -> PathBuf {
        let version = self.versions.get(&id).copied().unwrap_or(format::VERSION);
        self.options.directory.join(format::file_name_of(version, id))
    }

    /// Makes a segment and takes it for the next one. A log that closes waits for its end.
    async fn make(&self, id: i64) -> io::Result<()> {
        let _making = Making::new(self);
        let segment = self.create(id).await?;
        self.offer(segment).await;
        Ok(())
    }

    async fn create(&self, id: i64) -> io::Result<Segment> {
        let whole = std::mem::take(&mut self.state.borrow_mut().whole);
        let created = Segment::create(&self.env, &self.options, id, &whole).await;
        if created.is_err() {
            // The segment that is made in its place is to say it.
            self.state.borrow_mut().whole.extend(whole);
        }
        let segment = created?;
        self.list.add(&self.env, id).await?;
        if let Some(cdc) = &self.cdc {
            segment.data.cdc.set(cdc.made(id).await?);
        }
        Ok(segment)
    }

    pub(super) fn go_on_in(&self, state: &mut State, segment: Segment) {
        state.ledger.open(segment.id, segment.size());
        assert!(state.section.is_empty(), "a section is sealed before its segment is left");
        let left = std::mem::replace(&mut state.active, segment);
        assert!(left.next_offset <= left.bytes, "a segment ends where its records end, or later");
        left.data.end.set(Some(left.next_offset));
        if !left.data.is_given_up.get() {
            state.left.push_back((left.data, state.appended));
        }
        self.taken.notify_one();
    }

    /// Makes the segment that follows one whose id is above `floor`: for
    /// [`CommitLog::leave_behind`], before which no segment above `floor` comes into use. If that
    /// is not to come, [`CommitLog::release`].
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
        self.make(id).await.map_err(|error| {
            self.fail_aside(CREATION, &self.path_of(id), &error);
            LogError::Failed(error.to_string().into())
        })
    }

    /// Takes a new segment for the next one, unless a later one is there already or the log closes.
    /// Two tasks create segments and may end in either order, but ids must never go down: a record
    /// in a segment below a truncation's is void.
    async fn offer(&self, segment: Segment) {
        let unused = {
            let mut state = self.state.borrow_mut();
            let late = segment.id < state.active.id
                || state.spare.as_ref().is_some_and(|spare| spare.id > segment.id);
            let late = late && !self.env.planted("segments_out_of_order");
            if late || self.closing.get() { Some(segment) } else { state.spare.replace(segment) }
        };
        self.ready.notify_all();
        if let Some(unused) = unused {
            // nothing was written to it; what stays behind replays as nothing
            if self.takes_off_the_list(&[unused.id]).await {
                let _ = self.env.remove_file(&unused.path).await;
            }
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

    /// Goes on in the segment after this one, if this one's id is not above `floor`: all records
    /// before are in segments up to `floor`, all after in later ones. Does not wait.
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
            return Err(LogError::Failed("there is no new segment to write to".into()));
        };
        self.go_on_in(&mut state, spare);
        assert!(state.active.id > floor, "later records go to later segments");
        Ok(())
    }

    /// All records of `table` up to `position` are in durable SSTables: removes the segments that
    /// nothing needs any more.
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

    pub(super) fn remove_clean(&self) {
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

    pub(super) async fn archive(self: Rc<Self>) {
        if let Some(archiver) = &self.archiver {
            archiver.run(&self.env, |what| self.tell(LogEvent::NotArchived(what))).await;
        }
    }

    /// Removes the files of segments, once they are archived if they are to be. One that stays
    /// behind costs space, and a replay that finds nothing new.
    pub(super) async fn remove(&self, gone: Vec<i64>) {
        let mut gone = gone;
        let is_written = |id: &i64| *id == self.state.borrow().active.id;
        assert!(
            self.closing.get() || !gone.iter().any(is_written),
            "the segment that is written is not removed"
        );
        let is_late = self.env.planted("segment_listed_too_long");
        if !is_late && !self.takes_off_the_list(&gone).await {
            return;
        }
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
            if self.env.remove_file(self.path_of(*id)).await.is_err() {
                return;
            }
        }
        if let Some(cdc) = &self.cdc {
            for id in &gone {
                cdc.discarded(*id).await;
            }
        }
        if is_late {
            self.takes_off_the_list(&gone).await;
        }
        match self.env.sync_dir(&self.options.directory).await {
            Ok(()) => self.state.borrow_mut().going.retain(|id| !gone.contains(id)),
            // Names of segments that are needed may be among those that it was to make durable, and
            // no later sync answers for them.
            Err(error) => {
                self.fail_aside("cannot sync directory", &self.options.directory, &error);
            }
        }
    }

    /// Takes segments off the list; only if that is done may their files go.
    async fn takes_off_the_list(&self, ids: &[i64]) -> bool {
        let removed = self.list.remove(&self.env, ids).await;
        if let Err(error) = &removed {
            self.fail_aside(LISTING, &self.options.directory, error);
        }
        removed.is_ok()
    }

    /// The segments that a start would find: a crash may bring back one whose removal is not
    /// durable.
    pub fn segments(&self) -> BTreeSet<i64> {
        let state = self.state.borrow();
        state.ledger.ids_from(i64::MIN).chain(state.going.iter().copied()).collect()
    }

    /// The id that the next segment will have at least.
    pub fn next_id(&self) -> i64 {
        self.next_id.get()
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
        assert!(from <= to, "a part of the log ends at or after its start: {from:?} to {to:?}");
        // the end may be in a segment of an earlier run, of another size
        let size = self.options.segment_bytes;
        assert!(from.offset <= size, "a position lies within its segment: {from:?}");
        let state = self.state.borrow();
        let ids = state.ledger.ids_from(from.segment).filter(|id| *id <= to.segment);
        let interval = |segment| {
            let start = if segment == from.segment { from.offset } else { 0 };
            let end = if segment == to.segment { to.offset } else { self.options.segment_bytes };
            (Position { segment, offset: start }, Position { segment, offset: end })
        };
        ids.map(interval).collect()
    }

    /// This shard's part of `commitlog_total_space`, in bytes.
    pub fn limit(&self) -> u64 {
        self.options.total_bytes
    }

    /// Bytes of all segments, and their number.
    pub fn size(&self) -> (u64, usize) {
        let state = self.state.borrow();
        (state.ledger.bytes(), state.ledger.len())
    }
}
