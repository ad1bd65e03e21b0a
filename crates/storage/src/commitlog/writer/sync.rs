//! Syncing a log, and what becomes of it when that fails.
//!
//! A ticket resolves at once (`periodic`), after a sync (`batch`), or after the window's sync
//! (`group`).
//!
//! In periodic mode a sync begins `commitlog_sync_interval` (1 s) after the last one. Cassandra
//! waits for all of `commitlog_sync_period` (10 s). Both let writes wait once no sync that began
//! within the period and its lag has ended. So one sync may take 24 s (Cassandra: 15) before
//! a write waits.

use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use env::sync::oneshot;
use env::{Class, Instant};

use super::chain::LISTING;
use super::{CommitLog, LIST_AFTER, State, bump};
use crate::commitlog::log::{LogError, LogEvent, SyncMode};
use crate::commitlog::segment::SegmentData;

/// The operator hears of a sync that takes so long: a disk takes milliseconds.
const LONG_SYNC: Duration = Duration::from_secs(5);

/// Gives up all that is not synced, and the files it is in. Records keep their places: memtables
/// have them.
fn give_up(state: &mut State) {
    let section = std::mem::take(&mut state.section);
    state.mark = 0;
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

impl State {
    /// Is a segment before this one not synced to its end?
    pub(super) fn waits_for_segments_before(&self, id: i64) -> bool {
        let mut before = self.left.iter().filter(|(data, _)| data.id < id);
        before.any(|(_, end)| *end > self.synced)
    }
}

impl CommitLog {
    pub(super) async fn sync_files(self: Rc<Self>) {
        loop {
            self.wait_until_sync_is_due().await;
            let (files, upto) = {
                let mut state = self.state.borrow_mut();
                (std::mem::take(&mut state.unsynced), state.written)
            };
            let retried = files.clone();
            let ends: Vec<_> = files.iter().map(|data| data.records_end.get()).collect();
            let file_ends: Vec<_> = files.iter().map(|data| data.file_end.get()).collect();
            self.rotating.set(false);
            let mut failed = None;
            let (begun, waits) = (self.env.now(), self.stats.waits_for_sync.get());
            for data in files {
                if failed.is_none() {
                    let synced = data.file.sync_data().await;
                    failed = synced.err().map(|error| (data.id, error));
                }
            }
            if failed.is_some() && self.env.planted("sync_retried") {
                self.state.borrow_mut().unsynced.extend(retried);
                continue;
            }
            if let Some((id, error)) = failed {
                self.fail("cannot sync", &self.path_of(id), &error);
                if self.is_over() {
                    return;
                }
                continue;
            }
            bump(&self.stats.syncs, 1);
            self.tell_if_late(begun, waits);
            for (data, end) in retried.iter().zip(&file_ends) {
                let before = data.synced.replace(*end);
                assert!(before <= *end, "what is synced of a segment only grows: {before}, {end}");
            }
            if let Some((at, appended)) = self.to_cover.get()
                && appended <= upto
            {
                self.last_sync.set(at);
                self.to_cover.set(None);
            }
            let left = self.synced(upto);
            self.forget_pages(&left);
            self.is_to_be_listed(retried.iter().zip(&file_ends), &left);
            self.sync_ended.notify_all();
            if let Some(cdc) = &self.cdc {
                let partly = retried.iter().zip(ends);
                let wholly = left.iter().filter_map(|data| Some((data, data.end.get()?)));
                for (data, end) in partly.chain(wholly) {
                    if let Err(error) = data.tell_consumer(cdc, end).await {
                        let path = self.path_of(data.id);
                        self.fail("cannot write the CDC index of", &path, &error);
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

    /// Tells of a sync that has just ended, if it took long; `waits`: how many writes had waited
    /// for one when it began.
    fn tell_if_late(&self, begun: Instant, waits: u64) {
        let took = self.env.now().since(begun);
        if took >= LONG_SYNC {
            let waited = self.stats.waits_for_sync.get() - waits;
            let took = took.as_secs_f64();
            let what = format!(
                "A sync of the commit log took {took:.0} s and {waited} writes waited for it; \
                 check the load of the disk of commitlog_directory"
            );
            self.tell(LogEvent::Late(&what));
        }
    }

    async fn wait_until_sync_is_due(&self) {
        let wanted = |state: &State| state.written > state.synced;
        if let SyncMode::Periodic { period, .. } = self.options.mode {
            let is_hurried = || self.urgent.get() || self.rotating.get();
            let due = self.last_sync.get() + period;
            while !is_hurried() && self.env.now() < due {
                let _ = self.env.timeout_at(due, self.to_sync.notified()).await;
                if self.closing.get() {
                    break;
                }
            }
            // What is appended and not written yet is a part of it: else a file that takes no
            // writes would pass for synced.
            let appended = self.state.borrow().appended;
            let (at, upto) = self.to_cover.get().unwrap_or((self.env.now(), appended));
            self.to_cover.set(Some((at, upto)));
            while !is_hurried() && self.state.borrow().written < upto {
                self.to_sync.notified().await;
                if self.closing.get() {
                    break;
                }
            }
        }
        while !wanted(&self.state.borrow()) {
            let periodic = matches!(self.options.mode, SyncMode::Periodic { .. });
            // Somebody waits for records that are on their way to the file: turning round and round
            // would keep them from getting there.
            if self.closing.get() || (periodic && !self.urgent.get()) {
                return;
            }
            self.to_sync.notified().await;
        }
        if let SyncMode::Group { window } = self.options.mode
            && !self.urgent.get()
            && !self.rotating.get()
            && !self.closing.get()
        {
            self.env.sleep(window).await;
        }
    }

    /// Waits until all segments before this one are synced to their ends. So what a power cut
    /// leaves of a log is its beginning: no record is there without all that were appended before,
    /// on which it may rest (a counter's value, a condition that was met).
    pub(super) async fn wait_for_segments_before(&self, id: i64) {
        let waits = || {
            let state = self.state.borrow();
            state.failed.is_none() && state.waits_for_segments_before(id)
        };
        while waits() && !self.env.planted("segments_written_at_once") {
            self.rotating.set(true);
            self.to_sync.notify_one();
            self.sync_ended.notified().await;
        }
    }

    /// Nobody reads a segment that is whole before the next start, unless it is captured or
    /// archived: without this it would put out of the page cache what is read, and each of its
    /// pages would be one that the machine had other use for.
    fn forget_pages(&self, left: &[Rc<SegmentData>]) {
        if self.cdc.is_some() || self.archiver.is_some() {
            return;
        }
        for data in left.iter().filter(|data| data.file.has_pages()) {
            let file = data.file.clone();
            self.env.spawn(Class::CommitLog, async move {
                // it is only advice
                let _ = file.forget_pages().await;
            });
        }
    }

    /// Notes what the list of segments is to tell of a sync: up to where segments are synced that
    /// are compressed, which have no marks, and the ends of those that were left.
    fn is_to_be_listed<'a>(
        &self,
        synced: impl Iterator<Item = (&'a Rc<SegmentData>, &'a u32)>,
        left: &[Rc<SegmentData>],
    ) {
        let compressed = synced.filter(|_| self.options.compression.is_some());
        let ends = compressed.map(|(data, end)| (data.id, *end));
        let whole = left.iter().map(|data| (data.id, data.synced.get()));
        self.state.borrow_mut().to_list.extend(ends.chain(whole));
    }

    /// Lists, a while after a sync, up to where segments are synced.
    pub(super) async fn list_what_is_synced(self: Rc<Self>) {
        loop {
            if self.state.borrow().to_list.is_empty() {
                self.sync_ended.notified().await;
            }
            if self.closing.get() || self.is_over() {
                return;
            }
            self.env.sleep(LIST_AFTER).await;
            let ends = std::mem::take(&mut self.state.borrow_mut().to_list);
            if ends.is_empty() || self.closing.get() {
                continue;
            }
            if let Err(error) = self.list.synced(&self.env, &ends).await {
                self.fail_aside(LISTING, &self.options.directory, &error);
            }
        }
    }

    /// All up to there is synced; gives the segments that were left and are whole now.
    fn synced(&self, upto: u64) -> Vec<Rc<SegmentData>> {
        let mut left = Vec::new();
        let mut state = self.state.borrow_mut();
        assert!(
            upto <= state.written,
            "no more bytes are synced than were written: {upto} of {}",
            state.written
        );
        assert!(state.written <= state.appended, "no more bytes are written than were appended");
        state.synced = upto.max(state.synced);
        while let Some((data, _)) = state.left.pop_front_if(|(_, at)| *at <= upto) {
            assert!(!data.is_given_up.get(), "a segment that was given up is never whole");
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
        if state.waiters.is_empty() {
            self.urgent.set(false);
        }
        left
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
                return Err(LogError::Failed(
                    "it lost earlier writes, and the node has not flushed them to SSTables \
                     yet"
                    .into(),
                ));
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

    /// A write, a sync or a new segment failed: nobody knows what the disk holds of all that is not
    /// synced. Nothing of it is acknowledged any more, whatever a later sync says.
    pub(super) fn fail(&self, what: &str, path: &Path, error: &io::Error) {
        let mut state = self.state.borrow_mut();
        let failed: Arc<str> = format!("{what} {}: {error}", path.display()).into();
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
        self.caught_up.notify_all();
        self.sync_ended.notify_all();
        self.to_sync.notify_all();
        self.queued.notify_all();
    }

    /// Is there a segment that was given up, with records that no SSTable has yet?
    pub fn gave_up(&self) -> bool {
        !self.state.borrow().given_up.is_empty()
    }

    /// Does the log take nothing any more?
    pub(super) fn is_over(&self) -> bool {
        self.state.borrow().failed.is_some()
    }

    pub(super) fn tell(&self, event: LogEvent<'_>) {
        let tell = self.tell.borrow().clone();
        if let Some(tell) = tell {
            tell(event);
        }
    }
}
