//! A thread that takes what it is offered, in order, and never makes who offers it wait: what it
//! has no room for is dropped and counted. The log is written so.

use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use super::sys::Signals;

/// Items that are handed to the work at once, at most.
const BATCH: usize = 256;

enum Item<T> {
    One(T),
    /// Nothing: look again.
    Wake,
}

#[derive(Default)]
struct Shared {
    dropped: AtomicU64,
    has_ended: AtomicBool,
}

/// One end of it; clones share it.
pub struct Spool<T> {
    sender: SyncSender<Item<T>>,
    shared: Arc<Shared>,
}

impl<T> Clone for Spool<T> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<T> std::fmt::Debug for Spool<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Spool")
    }
}

/// Waits for a spool's end.
#[derive(Debug)]
pub struct SpoolEnd(Receiver<()>);

impl<T: Send + 'static> Spool<T> {
    /// Starts a thread with room for `capacity` items. `open` runs here and now; what it makes is
    /// called on the thread, with some items and how many were dropped before them.
    ///
    /// # Errors
    /// If `open` fails, or there is no thread.
    pub fn start<W: FnMut(&mut Vec<T>, u64) + Send + 'static>(
        name: &str,
        capacity: usize,
        open: impl FnOnce(BlockingFiles) -> io::Result<W>,
    ) -> io::Result<(Self, SpoolEnd)> {
        let mut work = open(BlockingFiles(()))?;
        let (sender, receiver) = sync_channel(capacity);
        let (done, end) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        // the node's signals are for its first shard: no other thread may take them
        let signals = Signals::block()?;
        let run = move || {
            super::abort_on_panic(|| run(&receiver, &theirs, &mut work));
            let _ = done.send(());
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        drop(signals);
        Ok((Self { sender, shared }, SpoolEnd(end)))
    }

    /// Offers an item, which is dropped where there is no room.
    pub fn offer(&self, item: T) {
        if self.sender.try_send(Item::One(item)).is_err() {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Offers an item, which comes back where there is no room. A thread that has ended takes and
    /// drops all.
    ///
    /// # Errors
    /// If there is no room.
    pub fn try_offer(&self, item: T) -> Result<(), T> {
        match self.sender.try_send(Item::One(item)) {
            Err(TrySendError::Full(Item::One(item))) => Err(item),
            _ => Ok(()),
        }
    }

    /// Has the thread call its work, with no item if it has none.
    pub fn wake(&self) {
        // where there is no room it has items
        let _ = self.sender.try_send(Item::Wake);
    }

    /// Has the thread do what is left and end, and waits for it so long at the most; never on a
    /// shard.
    pub fn finish(&self, end: &SpoolEnd, patience: Duration) {
        self.shared.has_ended.store(true, Ordering::Release);
        self.wake();
        let _ = end.0.recv_timeout(patience);
    }
}

fn run<T>(receiver: &Receiver<Item<T>>, shared: &Shared, work: &mut impl FnMut(&mut Vec<T>, u64)) {
    let mut items = Vec::with_capacity(BATCH);
    loop {
        // one that was dropped was so before what comes now
        let has_ended = shared.has_ended.load(Ordering::Acquire);
        let first = match receiver.try_recv() {
            Ok(first) => first,
            Err(TryRecvError::Disconnected) => return,
            Err(TryRecvError::Empty) if has_ended => return,
            Err(TryRecvError::Empty) => match receiver.recv() {
                Ok(first) => first,
                Err(_) => return,
            },
        };
        let more = std::iter::from_fn(|| receiver.try_recv().ok());
        let some = std::iter::once(first).chain(more).take(BATCH);
        items.extend(some.filter_map(|item| match item {
            Item::One(item) => Some(item),
            Item::Wake => None,
        }));
        work(&mut items, shared.dropped.swap(0, Ordering::Relaxed));
        items.clear();
    }
}

/// Files and standard output as a spool's thread has them: each call waits for the disk.
#[derive(Debug)]
pub struct BlockingFiles(());

/// A file that grows at its end.
#[derive(Debug)]
pub struct AppendFile(std::fs::File);

/// A file of which any part is read and written.
#[derive(Debug)]
pub struct RandomFile(std::fs::File);

impl RandomFile {
    /// Its bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    /// Gives it so many bytes, those that it did not have as zeros.
    ///
    /// # Errors
    /// The system's.
    pub fn set_bytes(&self, bytes: u64) -> io::Result<()> {
        self.0.set_len(bytes)
    }

    /// Reads what there is from an offset, as much as there is room for.
    ///
    /// # Errors
    /// The system's.
    pub fn read_at(&self, at: u64, to: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while let Some(rest) = to.get_mut(read..).filter(|rest| !rest.is_empty()) {
            match self.0.read_at(rest, at + read as u64)? {
                0 => break,
                more => read += more,
            }
        }
        Ok(read)
    }

    /// Writes at an offset.
    ///
    /// # Errors
    /// The system's.
    pub fn write_at(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }
}

impl BlockingFiles {
    /// Opens a file to read and write any part of it, and makes it if it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn random(&self, path: &Path) -> io::Result<RandomFile> {
        let mut options = std::fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(path).map(RandomFile)
    }

    /// Makes a directory and those above it.
    ///
    /// # Errors
    /// The system's.
    pub fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    /// Opens a file to write at its end, and makes it if it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn append(&self, path: &Path) -> io::Result<AppendFile> {
        std::fs::OpenOptions::new().append(true).create(true).open(path).map(AppendFile)
    }

    /// The files of a directory, by name, with their bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn files(&self, path: &Path) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // one that is gone meanwhile is none
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_file() {
                found.push((entry.file_name().to_string_lossy().into_owned(), metadata.len()));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Gives a file another name.
    ///
    /// # Errors
    /// The system's.
    pub fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    /// Writes to standard output.
    ///
    /// # Errors
    /// The system's: who reads it may be gone.
    pub fn print(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// Writes to standard error what the log cannot have.
    pub fn complain(&self, text: &str) {
        // who does not hear it cannot be told so
        let _ = writeln!(io::stderr().lock(), "{text}");
    }
}

impl AppendFile {
    /// Its bytes, and when it was written last, in milliseconds since 1970.
    ///
    /// # Errors
    /// The system's.
    pub fn state(&self) -> io::Result<(u64, Option<i64>)> {
        let metadata = self.0.metadata()?;
        Ok((metadata.len(), crate::fs::modified(&metadata)))
    }

    /// Writes at its end.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn what_has_no_room_is_counted_and_never_waits() {
        let (go, may_go) = channel::<()>();
        let (tell, told) = channel();
        let open = |_| {
            Ok(move |items: &mut Vec<u32>, dropped| {
                tell.send((items.clone(), dropped)).unwrap();
                let _ = may_go.recv();
            })
        };
        let (spool, end) = Spool::start("spool", 3, open).unwrap();
        spool.offer(0);
        assert_eq!(told.recv_timeout(PATIENCE), Ok((vec![0], 0)));
        // the thread is busy
        (1..=10).for_each(|n| spool.offer(n));
        go.send(()).unwrap();
        assert_eq!(told.recv_timeout(PATIENCE), Ok((vec![1, 2, 3], 7)));
        go.send(()).unwrap();
        spool.offer(11);
        assert_eq!(told.recv_timeout(PATIENCE), Ok((vec![11], 0)));
        (12..=14).for_each(|n| assert_eq!(spool.try_offer(n), Ok(())));
        assert_eq!(spool.try_offer(15), Err(15), "it comes back, and does not count");
        drop(go);
        assert_eq!(told.recv_timeout(PATIENCE), Ok((vec![12, 13, 14], 0)));
        spool.finish(&end, PATIENCE);
        assert_eq!(spool.try_offer(16), Ok(()), "nobody waits for a thread that has ended");
        assert!(told.try_iter().all(|(items, _)| items.is_empty()));
    }

    #[test]
    fn what_was_offered_is_done_before_the_end() {
        let (tell, told) = channel();
        let open = |_| Ok(move |items: &mut Vec<usize>, _| tell.send(items.clone()).unwrap());
        let (spool, end) = Spool::start("spool", 5 * BATCH, open).unwrap();
        (0..4 * BATCH).for_each(|n| spool.offer(n));
        spool.finish(&end, PATIENCE);
        let all: Vec<usize> = told.try_iter().flatten().collect();
        assert_eq!(all, (0..4 * BATCH).collect::<Vec<_>>());
    }
}
