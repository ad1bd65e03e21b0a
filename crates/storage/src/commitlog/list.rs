//! Which segments there are: a list of each shard's, so that one that is gone is missed, the last
//! one too.
//!
//! ```text
//! helenus segments 1                    the format's version
//! shard 0
//! last 1700000000008                    the highest id that a list of this shard ever had
//! CommitLog-7-1700000000006.log 4096    a segment, and how many bytes of its file were synced at
//!                                       the least
//! CommitLog-7-1700000000008.log 0
//! crc32 9f00aa11                        of all before
//! ```
//!
//! A segment is listed when its name and header are durable and before it takes writes, and is
//! taken off the list before its file is removed: whatever crash interrupts that, what is listed
//! was there. A segment that is there and not listed is none the worse for it. A Cassandra passes
//! over the file: see [`Lists::missing`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use env::Env;
use env::sync::Semaphore;

use super::format;
use super::log::Inherited;
use super::replay_error::ReplayError;
use crate::error::StorageError;

/// The beginning of a list's name; its shard follows.
const NAME: &str = "HelenusSegments-";
/// The end of a list's name.
const SUFFIX: &str = ".txt";
/// The first line.
const TITLE: &str = "helenus segments ";
/// The format's version.
const VERSION: u32 = 1;
/// The beginning of the last line.
const CHECKSUM: &str = "crc32 ";
/// A list is not longer: more segments than any limit of a log lets be.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// What a list says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    version: i32,
    bytes: u64,
}

impl Inherited {
    /// What a list says of it, if the next start must find it: a segment of which nothing was
    /// replayed was never synced by this run, and a crash may leave less of it than there is now.
    pub fn listed(&self) -> Option<(i64, Listed)> {
        (self.read > 0).then_some((self.id, Listed { version: self.version, bytes: self.read }))
    }
}

/// What a list says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Content {
    shard: usize,
    last: i64,
    segments: BTreeMap<i64, Listed>,
}

impl Content {
    fn text(&self) -> String {
        let mut text = format!("{TITLE}{VERSION}\nshard {}\nlast {}\n", self.shard, self.last);
        for (id, Listed { version, bytes }) in &self.segments {
            let line = writeln!(text, "{} {bytes}", format::file_name_of(*version, *id));
            line.expect("writing to a string does not fail");
        }
        let checksum = crc32fast::hash(text.as_bytes());
        writeln!(text, "{CHECKSUM}{checksum:08x}").expect("writing to a string does not fail");
        text
    }

    fn parse(bytes: &[u8], shard: usize) -> Result<Self, String> {
        let damaged = || "its checksum does not match".to_owned();
        let text = std::str::from_utf8(bytes).map_err(|_| damaged())?;
        let (said, checksum) = text.rsplit_once(CHECKSUM).ok_or_else(damaged)?;
        if checksum != format!("{:08x}\n", crc32fast::hash(said.as_bytes())) {
            return Err(damaged());
        }
        let mut lines = said.lines();
        let title = lines.next().unwrap_or_default();
        if title.strip_prefix(TITLE) != Some(&VERSION.to_string()) {
            return Err(format!("this release does not read its version, {title:?}"));
        }
        let senseless = |line: &str| format!("cannot parse the line {line:?}");
        let mut content = Self::default();
        for line in lines {
            let (name, value) = line.split_once(' ').ok_or_else(|| senseless(line))?;
            match (name, value.parse::<u64>(), format::parse_file_name(name)) {
                ("shard", Ok(found), _) if found == shard as u64 => content.shard = shard,
                ("shard", Ok(_), _) => {
                    return Err(format!("it belongs to {line}, not to shard {shard}"));
                }
                ("last", Ok(last), _) => content.last = last as i64,
                (_, Ok(bytes), Some((version, id))) => {
                    content.segments.insert(id, Listed { version, bytes });
                }
                _ => return Err(senseless(line)),
            }
        }
        Ok(content)
    }
}

fn path_of(directory: &Path, shard: usize) -> PathBuf {
    directory.join(format!("{NAME}{shard}{SUFFIX}"))
}

/// The list of one shard's segments.
#[derive(Debug)]
pub(super) struct SegmentList {
    path: PathBuf,
    content: RefCell<Content>,
    writing: Semaphore,
}

impl SegmentList {
    /// A list that has these, once it is written.
    pub fn new(directory: &Path, shard: usize, segments: BTreeMap<i64, Listed>) -> Self {
        let last = segments.keys().next_back().copied().unwrap_or_default();
        let content = RefCell::new(Content { shard, last, segments });
        Self { path: path_of(directory, shard), content, writing: Semaphore::new(1) }
    }

    /// Adds a segment. It is durable when this returns.
    pub async fn add(&self, env: &Env, id: i64) -> io::Result<()> {
        {
            let mut content = self.content.borrow_mut();
            content.last = content.last.max(id);
            let listed = Listed { version: format::VERSION, bytes: 0 };
            let before = content.segments.insert(id, listed);
            assert!(before.is_none(), "a segment is new when it is listed: {id}");
        }
        self.write(env).await
    }

    /// Takes segments off the list; only then may their files go.
    pub async fn remove(&self, env: &Env, ids: &[i64]) -> io::Result<()> {
        let known = {
            let mut content = self.content.borrow_mut();
            let before = content.segments.len();
            content.segments.retain(|id, _| !ids.contains(id));
            before != content.segments.len()
        };
        if known { self.write(env).await } else { Ok(()) }
    }

    /// Segments are synced up to there, for all that are on the list still.
    pub async fn synced(&self, env: &Env, ends: &BTreeMap<i64, u32>) -> io::Result<()> {
        for (id, listed) in &mut self.content.borrow_mut().segments {
            let end = ends.get(id).copied().unwrap_or_default();
            listed.bytes = listed.bytes.max(end.into());
        }
        self.write(env).await
    }

    async fn write(&self, env: &Env) -> io::Result<()> {
        let _turn = self.writing.acquire(1).await;
        let text = {
            let content = self.content.borrow();
            let text = content.text();
            let read = Content::parse(text.as_bytes(), content.shard);
            assert_eq!(read.as_ref(), Ok(&*content), "a segment list reads as it was written");
            text
        };
        env.write_file_atomically(&self.path, text.into_bytes()).await
    }
}

/// What the lists of all shards said when a start found them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    files: Vec<PathBuf>,
    last: i64,
    segments: BTreeMap<i64, Listed>,
    /// Lists that cannot be read, and why.
    pub damaged: Vec<(PathBuf, String)>,
}

impl Lists {
    /// Reads the lists in a log's directory; there are none where no release with lists has run.
    ///
    /// # Errors
    /// If a file cannot be read. What is wrong with its content, [`Lists::damaged`] tells.
    pub async fn read(env: &Env, directory: &Path) -> Result<Self, ReplayError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| ReplayError::Io { path, source }
        };
        let mut lists = Self::default();
        for entry in env.read_dir(directory).await.map_err(failed(directory))? {
            let shard = entry.name.strip_prefix(NAME).and_then(|rest| rest.strip_suffix(SUFFIX));
            let Some(shard) = shard.and_then(|shard| shard.parse().ok()) else { continue };
            let path = path_of(directory, shard);
            let bytes = env.read_file(&path, LIST_BYTES_MAX).await.map_err(failed(&path))?;
            match Content::parse(&bytes, shard) {
                Ok(content) => {
                    lists.last = lists.last.max(content.last);
                    // A start that is interrupted leaves older lists beside the one that it made.
                    for (id, listed) in content.segments {
                        let known = lists.segments.entry(id).or_insert(listed);
                        known.bytes = known.bytes.max(listed.bytes);
                    }
                }
                Err(why) => lists.damaged.push((path.clone(), why)),
            }
            lists.files.push(path);
        }
        lists.files.sort();
        lists.damaged.sort();
        Ok(lists)
    }

    /// Bytes of a segment's file that were synced at the least, if it is listed.
    pub fn synced(&self, id: i64) -> Option<u64> {
        self.segments.get(&id).map(|listed| listed.bytes)
    }

    /// The names of segments that are listed and not `there`. `foreign` is the highest id of those
    /// that another program made.
    ///
    /// A Cassandra that starts on our log replays it, and then removes our segments, the oldest
    /// first; its own, which it makes before that, have higher ids than all of ours. So where there
    /// is such a one, what is missing before the first of ours that is there was removed by it.
    pub fn missing(&self, there: &BTreeSet<i64>, foreign: Option<i64>) -> Vec<String> {
        let was_replayed = foreign.is_some_and(|id| id > self.last);
        let first = self.segments.keys().find(|id| there.contains(id)).unwrap_or(&i64::MAX);
        let is_missing = |id: &i64| !there.contains(id) && (id > first || !was_replayed);
        let missing = self.segments.iter().filter(|(id, _)| is_missing(id));
        missing.map(|(id, listed)| format::file_name_of(listed.version, *id)).collect()
    }

    /// Replaces all lists by one, the first shard's, of these segments and the bytes that must be
    /// found in each. Returns the highest id that any list ever had, or `last`, that of the
    /// segments which are there.
    ///
    /// # Errors
    /// If that cannot be written.
    pub async fn replace(
        env: &Env,
        directory: &Path,
        segments: BTreeMap<i64, Listed>,
        last: i64,
    ) -> Result<i64, StorageError> {
        let found = Self::read(env, directory).await?;
        let first = SegmentList::new(directory, 0, segments);
        let last = {
            let mut content = first.content.borrow_mut();
            content.last = content.last.max(found.last).max(last);
            content.last
        };
        let failed = |source| StorageError::io("cannot write", &first.path, source);
        first.write(env).await.map_err(failed)?;
        for path in found.files.iter().filter(|path| **path != first.path) {
            let failed = |source| StorageError::io("cannot remove", path, source);
            env.remove_file(path).await.map_err(failed)?;
        }
        let failed = |source| StorageError::io("cannot sync", directory, source);
        env.sync_dir(directory).await.map_err(failed)?;
        Ok(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content() -> Content {
        let listed = |version, bytes| Listed { version, bytes };
        Content { shard: 2, last: 9, segments: [(7, listed(8, 4096)), (9, listed(7, 0))].into() }
    }

    #[test]
    fn a_list_reads_back_and_no_other_does() {
        let text = content().text();
        assert_eq!(
            text,
            "helenus segments 1\nshard 2\nlast 9\nCommitLog-8-7.log 4096\nCommitLog-7-9.log 0\ncrc32 dbd7b4e6\n"
        );
        assert_eq!(Content::parse(text.as_bytes(), 2), Ok(content()));
        assert_eq!(
            Content::parse(text.as_bytes(), 1),
            Err("it belongs to shard 2, not to shard 1".into())
        );
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] ^= 1;
            assert!(Content::parse(&damaged, 2).is_err(), "{at}");
            assert!(Content::parse(&text.as_bytes()[..at], 2).is_err(), "{at}");
        }
    }

    #[test]
    fn another_version_is_refused() {
        let text = "helenus segments 2\n";
        let text = format!("{text}crc32 {:08x}\n", crc32fast::hash(text.as_bytes()));
        let refused = Content::parse(text.as_bytes(), 0).expect_err("refused");
        assert!(refused.contains("does not read its version"), "{refused}");
    }

    #[test]
    fn what_a_cassandra_replayed_is_not_missed() {
        let listed = |id| (id, Listed { version: 7, bytes: 0 });
        let lists = Lists { last: 9, segments: [5, 7, 9].map(listed).into(), ..Lists::default() };
        let missing = |there: &[i64], foreign| -> Vec<i64> {
            let missing = lists.missing(&there.iter().copied().collect(), foreign);
            let id = |name: &String| format::parse_file_name(name).map(|(_, id)| id);
            missing.iter().filter_map(id).collect()
        };
        assert_eq!(missing(&[5, 7, 9], None), Vec::<i64>::new());
        assert_eq!(missing(&[5, 7], None), [9]);
        assert_eq!(missing(&[], None), [5, 7, 9]);
        // one of a Cassandra that ran before says nothing
        assert_eq!(missing(&[7, 9], Some(3)), [5]);
        // one that ran after removed what it had replayed, all or the first of them
        assert_eq!(missing(&[], Some(20)), Vec::<i64>::new());
        assert_eq!(missing(&[9], Some(20)), Vec::<i64>::new());
        // and none of the others
        assert_eq!(missing(&[5, 7], Some(20)), [9]);
        assert_eq!(missing(&[5, 9], Some(20)), [7]);
    }
}
