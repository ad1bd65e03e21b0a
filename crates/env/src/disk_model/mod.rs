//! What a disk holds, and what a power cut may leave of it.
//!
//! Two images of everything: the live one, which processes see, and the durable one, plus the
//! operations between them. A completed sync of a file makes durable what was written to it before
//! the sync began; a sync of a directory does the same for the names in it; nothing else promises
//! anything. At a power cut each unsynced write may be there, missing, or torn at [`SECTOR`]s, in
//! any order; a file's size is chosen apart from its data; each unsynced name may be old or new. A
//! rename is never half done.
//!
//! Shared by the simulator's disks and by the images built from a [recording](crate::Recorder).

mod data;
mod names;
mod outside;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

use crate::rng::Rng;

pub use data::Cut;
use data::{DataOp, Fate, FileNode, Pending, apply};
use names::NameOp;

/// What a disk writes in one piece, in bytes.
pub const SECTOR: u64 = 512;

/// Largest file that a model holds, in bytes: it lives in memory.
const MAX_FILE: u64 = 4 << 30;

/// Names a file or directory of a model, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Ino(u64);

/// What of an operation under way a power cut is to leave in part.
#[derive(Clone, Copy, Debug)]
pub enum Tear<'a> {
    /// Nothing more than what happens by chance.
    Chance,
    /// Of what is not durable of the file at this path, each sector by itself, and its size apart.
    File(&'a Path),
    /// Of the names that are not durable, each by itself.
    Names,
}

impl Ino {
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Names an operation that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OpId(u64);

const ROOT: Ino = Ino(0);

#[derive(Clone, Debug, Default)]
struct DirNode {
    live: BTreeMap<String, Ino>,
    durable: BTreeMap<String, Ino>,
    /// When a sync of it failed last.
    failed: u64,
}

#[derive(Clone, Debug)]
enum Node {
    File(FileNode),
    Dir(DirNode),
}

/// A disk in memory.
#[derive(Clone, Debug)]
pub struct DiskModel {
    nodes: BTreeMap<Ino, Node>,
    names: Vec<Pending<NameOp>>,
    next_ino: u64,
    clock: u64,
    used: u64,
}

impl Default for DiskModel {
    fn default() -> Self {
        Self::new()
    }
}

fn err<T>(kind: io::ErrorKind, path: &Path) -> io::Result<T> {
    Err(io::Error::new(kind, format!("{path:?}")))
}

/// The names along a path, from the root of the disk.
fn names(path: &Path) -> Vec<String> {
    let mut out = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(out.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

impl DiskModel {
    /// An empty disk.
    pub fn new() -> Self {
        Self {
            nodes: BTreeMap::from([(ROOT, Node::Dir(DirNode::default()))]),
            names: Vec::new(),
            next_ino: 1,
            clock: 0,
            used: 0,
        }
    }

    /// Bytes of the files that have a name.
    pub fn used(&self) -> u64 {
        self.used
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn dir(&self, ino: Ino) -> Option<&DirNode> {
        match self.nodes.get(&ino) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    fn dir_mut(&mut self, ino: Ino) -> Option<&mut DirNode> {
        match self.nodes.get_mut(&ino) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    fn file(&self, ino: Ino) -> Option<&FileNode> {
        match self.nodes.get(&ino) {
            Some(Node::File(file)) => Some(file),
            _ => None,
        }
    }

    fn file_mut(&mut self, ino: Ino) -> io::Result<&mut FileNode> {
        match self.nodes.get_mut(&ino) {
            Some(Node::File(file)) => Ok(file),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    // ---- looking

    /// What is at a path.
    pub(crate) fn lookup(&self, path: &Path) -> io::Result<Ino> {
        let mut at = ROOT;
        for name in names(path) {
            let Some(dir) = self.dir(at) else { return err(io::ErrorKind::NotADirectory, path) };
            let Some(&next) = dir.live.get(&name) else {
                return err(io::ErrorKind::NotFound, path);
            };
            at = next;
        }
        Ok(at)
    }

    fn parent_and_name(&self, path: &Path) -> io::Result<(Ino, String)> {
        let mut names = names(path);
        let Some(name) = names.pop() else { return err(io::ErrorKind::InvalidInput, path) };
        let dir = self.lookup(&names.iter().collect::<std::path::PathBuf>())?;
        match self.dir(dir) {
            Some(_) => Ok((dir, name)),
            None => err(io::ErrorKind::NotADirectory, path),
        }
    }

    /// Size of a file in bytes; None for a directory.
    pub(crate) fn len(&self, ino: Ino) -> Option<u64> {
        self.file(ino).map(|file| file.live.len() as u64)
    }

    /// The names in a directory, with true for directories.
    pub fn list(&self, path: &Path) -> io::Result<Vec<(String, bool)>> {
        let ino = self.lookup(path)?;
        let Some(dir) = self.dir(ino) else { return err(io::ErrorKind::NotADirectory, path) };
        Ok(dir.live.iter().map(|(name, ino)| (name.clone(), self.dir(*ino).is_some())).collect())
    }

    /// All files with their paths and live contents.
    pub fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        let mut todo = vec![(String::new(), ROOT)];
        while let Some((prefix, ino)) = todo.pop() {
            match self.nodes.get(&ino) {
                Some(Node::File(file)) => out.push((prefix, file.live.clone())),
                Some(Node::Dir(dir)) => {
                    todo.extend(
                        dir.live.iter().map(|(name, ino)| (format!("{prefix}/{name}"), *ino)),
                    );
                }
                None => {}
            }
        }
        out.sort();
        out
    }

    /// Reads up to `buf.len()` bytes of the live image.
    pub(crate) fn read(&self, ino: Ino, offset: u64, buf: &mut [u8]) -> usize {
        let Some(file) = self.file(ino) else { return 0 };
        let Some(from) = usize::try_from(offset).ok().and_then(|at| file.live.get(at..)) else {
            return 0;
        };
        let n = from.len().min(buf.len());
        buf[..n].copy_from_slice(&from[..n]);
        n
    }

    // ---- data

    fn begin_data(&mut self, ino: Ino, op: DataOp) -> io::Result<OpId> {
        let id = OpId(self.tick());
        let file = self.file_mut(ino)?;
        let len = op.len_after(file.live.len() as u64);
        if len > MAX_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let (before, named) = (file.live.len() as u64, file.links > 0);
        apply(&mut file.live, &op, |_| true);
        file.pending.push(Pending { id, ended: None, forsaken: false, op });
        if named {
            self.used = self.used.saturating_sub(before) + len;
        }
        Ok(id)
    }

    /// A write is visible from here on, and durable some time.
    pub(crate) fn write(&mut self, ino: Ino, offset: u64, bytes: &[u8]) -> io::Result<OpId> {
        let op = DataOp::Write { offset, bytes: bytes.into(), from: 0, to: bytes.len() };
        self.begin_data(ino, op)
    }

    /// Cuts a file, or lets it grow with zeros.
    pub(crate) fn set_len(&mut self, ino: Ino, len: u64) -> io::Result<OpId> {
        self.begin_data(ino, DataOp::SetLen(len))
    }

    /// Reserves space: the file grows to `len` if it is shorter.
    pub(crate) fn allocate(&mut self, ino: Ino, len: u64) -> io::Result<OpId> {
        let len = len.max(self.len(ino).unwrap_or(0));
        self.set_len(ino, len)
    }

    /// The operation has ended: syncs that begin now cover it.
    pub(crate) fn ended(&mut self, ino: Ino, id: OpId) {
        let now = self.tick();
        let Ok(file) = self.file_mut(ino) else { return };
        // A sync of what it overlaps may have cut it into pieces.
        for op in file.pending.iter_mut().filter(|op| op.id == id) {
            op.ended = Some(now);
        }
    }

    /// A sync begins; the stamp goes to [`DiskModel::sync_ended`].
    pub(crate) fn sync_begins(&mut self) -> u64 {
        self.tick()
    }

    /// A sync of a file ended. Failed, what it covered is forsaken.
    pub(crate) fn sync_ended(&mut self, ino: Ino, began: u64, ok: bool) {
        if let Ok(file) = self.file_mut(ino) {
            file.sync_ended(began, ok);
        }
    }

    // ---- names

    fn begin_name(&mut self, op: NameOp) -> OpId {
        let id = OpId(self.tick());
        match &op {
            NameOp::Link { dir, name, ino } => self.put_live(*dir, name, *ino),
            NameOp::Unlink { dir, name, .. } => self.take_live(*dir, name),
            NameOp::Rename { from_dir, from, to_dir, to, ino } => {
                self.put_live(*to_dir, to, *ino);
                self.take_live(*from_dir, from);
            }
        }
        self.names.push(Pending { id, ended: None, forsaken: false, op });
        id
    }

    fn put_live(&mut self, dir: Ino, name: &str, ino: Ino) {
        self.take_live(dir, name);
        if let Some(dir) = self.dir_mut(dir) {
            dir.live.insert(name.to_string(), ino);
        }
        self.count_link(ino, true);
    }

    fn take_live(&mut self, dir: Ino, name: &str) {
        let old = self.dir_mut(dir).and_then(|dir| dir.live.remove(name));
        if let Some(old) = old {
            self.count_link(old, false);
        }
    }

    fn count_link(&mut self, ino: Ino, up: bool) {
        let Ok(file) = self.file_mut(ino) else { return };
        let len = file.live.len() as u64;
        let before = file.links;
        file.links = if up { before + 1 } else { before.saturating_sub(1) };
        match (before, up) {
            (0, true) => self.used += len,
            (1, false) => self.used = self.used.saturating_sub(len),
            _ => {}
        }
    }

    fn make(&mut self, dir: Ino, name: String, node: Node) -> (Ino, OpId) {
        let ino = Ino(self.next_ino);
        self.next_ino += 1;
        self.nodes.insert(ino, node);
        (ino, self.begin_name(NameOp::Link { dir, name, ino }))
    }

    /// Creates an empty file that is not there yet.
    pub(crate) fn create(&mut self, path: &Path) -> io::Result<(Ino, OpId)> {
        let (dir, name) = self.parent_and_name(path)?;
        if self.dir(dir).is_some_and(|d| d.live.contains_key(&name)) {
            return err(io::ErrorKind::AlreadyExists, path);
        }
        Ok(self.make(dir, name, Node::File(FileNode::default())))
    }

    /// Creates a directory and those above it.
    pub(crate) fn create_dir_all(&mut self, path: &Path) -> io::Result<Vec<OpId>> {
        let mut ops = Vec::new();
        let mut at = ROOT;
        for name in names(path) {
            let Some(dir) = self.dir(at) else { return err(io::ErrorKind::NotADirectory, path) };
            at = match dir.live.get(&name) {
                Some(&next) => next,
                None => {
                    let (ino, op) = self.make(at, name, Node::Dir(DirNode::default()));
                    ops.push(op);
                    ino
                }
            };
        }
        match self.dir(at) {
            Some(_) => Ok(ops),
            None => err(io::ErrorKind::AlreadyExists, path),
        }
    }

    /// Gives a file a second name.
    pub(crate) fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<OpId> {
        let ino = self.lookup(from)?;
        if self.file(ino).is_none() {
            return err(io::ErrorKind::PermissionDenied, from);
        }
        let (dir, name) = self.parent_and_name(to)?;
        if self.dir(dir).is_some_and(|d| d.live.contains_key(&name)) {
            return err(io::ErrorKind::AlreadyExists, to);
        }
        Ok(self.begin_name(NameOp::Link { dir, name, ino }))
    }

    /// Removes a file's name.
    pub(crate) fn remove_file(&mut self, path: &Path) -> io::Result<OpId> {
        let (dir, name) = self.parent_and_name(path)?;
        let ino = self.lookup(path)?;
        if self.dir(ino).is_some() {
            return err(io::ErrorKind::IsADirectory, path);
        }
        Ok(self.begin_name(NameOp::Unlink { dir, name, ino }))
    }

    /// Removes a directory and all below it, name by name.
    pub(crate) fn remove_dir_all(&mut self, path: &Path) -> io::Result<Vec<OpId>> {
        let (parent, name) = self.parent_and_name(path)?;
        let top = self.lookup(path)?;
        if self.dir(top).is_none() {
            return err(io::ErrorKind::NotADirectory, path);
        }
        let mut unlinks = vec![NameOp::Unlink { dir: parent, name, ino: top }];
        let mut todo = vec![top];
        while let Some(at) = todo.pop() {
            let Some(dir) = self.dir(at) else { continue };
            for (name, &ino) in &dir.live {
                unlinks.push(NameOp::Unlink { dir: at, name: name.clone(), ino });
                todo.push(ino);
            }
        }
        Ok(unlinks.into_iter().rev().map(|op| self.begin_name(op)).collect())
    }

    /// Renames a file or directory; a file at `to` is replaced.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<OpId> {
        let ino = self.lookup(from)?;
        let (from_dir, from_name) = self.parent_and_name(from)?;
        let (to_dir, to_name) = self.parent_and_name(to)?;
        let target = self.dir(to_dir).and_then(|d| d.live.get(&to_name)).copied();
        if let Some(target) = target {
            match (self.dir(target), self.dir(ino)) {
                (Some(dir), _) if !dir.live.is_empty() => {
                    return err(io::ErrorKind::DirectoryNotEmpty, to);
                }
                (Some(_), None) => return err(io::ErrorKind::IsADirectory, to),
                (None, Some(_)) => return err(io::ErrorKind::NotADirectory, to),
                _ => {}
            }
        }
        let (from, to) = (from_name, to_name);
        if (from_dir, &from) == (to_dir, &to) {
            // Nothing changes; a link onto itself keeps the stamps simple.
            return Ok(self.begin_name(NameOp::Link { dir: to_dir, name: to, ino }));
        }
        Ok(self.begin_name(NameOp::Rename { from_dir, from, to_dir, to, ino }))
    }

    /// The operation on names has ended: syncs of its directories that begin now cover it.
    pub(crate) fn name_ended(&mut self, id: OpId) {
        let now = self.tick();
        if let Some(op) = self.names.iter_mut().rev().find(|op| op.id == id) {
            op.ended = Some(now);
        }
    }

    /// Does a sync of a directory fail that ends now: by itself, or because another one has failed
    /// since it was opened? As with `errseq_t` of Linux, a failure is one of all who have it open:
    /// what the failed one covered, they cover as well.
    pub(crate) fn dir_sync_fails(&mut self, dir: Ino, opened: u64, by_itself: bool) -> bool {
        let now = self.tick();
        let Some(dir) = self.dir_mut(dir) else { return by_itself };
        if by_itself {
            dir.failed = now;
        }
        dir.failed > opened
    }

    /// A sync of a directory ended.
    pub(crate) fn dir_sync_ended(&mut self, dir: Ino, began: u64, ok: bool) {
        let mut left: Vec<Pending<NameOp>> = Vec::new();
        for mut op in std::mem::take(&mut self.names) {
            if op.op.touches(dir) && op.covered_by(began) {
                if ok {
                    self.make_durable(&op.op);
                    let older = left.into_iter();
                    left = older
                        .filter_map(|old| {
                            let Pending { id, ended, forsaken, op: was } = old;
                            was.behind(&op.op).map(|op| Pending { id, ended, forsaken, op })
                        })
                        .collect();
                    continue;
                }
                op.forsaken = true;
            }
            left.push(op);
        }
        self.names = left;
        self.collect();
    }

    fn make_durable(&mut self, op: &NameOp) {
        let put = |model: &mut Self, dir: Ino, name: &str, ino: Ino| {
            if let Some(dir) = model.dir_mut(dir) {
                dir.durable.insert(name.to_string(), ino);
            }
        };
        let take = |model: &mut Self, dir: Ino, name: &str| {
            if let Some(dir) = model.dir_mut(dir) {
                dir.durable.remove(name);
            }
        };
        match op {
            NameOp::Link { dir, name, ino } => put(self, *dir, name, *ino),
            NameOp::Unlink { dir, name, .. } => take(self, *dir, name),
            NameOp::Rename { from_dir, from, to_dir, to, ino } => {
                take(self, *from_dir, from);
                put(self, *to_dir, to, *ino);
            }
        }
    }

    // ---- handles

    /// An open handle keeps a nameless file.
    pub(crate) fn opened(&mut self, ino: Ino) {
        if let Ok(file) = self.file_mut(ino) {
            file.opens += 1;
        }
    }

    /// A handle is closed.
    pub(crate) fn closed(&mut self, ino: Ino) {
        let mut gone = false;
        if let Ok(file) = self.file_mut(ino) {
            file.opens = file.opens.saturating_sub(1);
            gone = file.opens == 0 && file.links == 0;
        }
        if gone {
            self.collect();
        }
    }

    /// All handles are closed: their process died. The live image stays, as in the page cache.
    ///
    /// What it had begun to write and what shows is the page cache's now: the next sync covers it
    /// like the rest.
    pub(crate) fn process_died(&mut self) {
        let now = self.tick();
        for node in self.nodes.values_mut() {
            if let Node::File(file) = node {
                file.opens = 0;
                for op in file.pending.iter_mut().filter(|op| op.ended.is_none()) {
                    op.ended = Some(now);
                }
            }
        }
        self.collect();
    }

    /// Forgets what nothing refers to.
    fn collect(&mut self) {
        let mut reached: BTreeSet<Ino> = self.names.iter().map(|op| op.op.ino()).collect();
        reached.insert(ROOT);
        for op in &self.names {
            match &op.op {
                NameOp::Link { dir, .. } | NameOp::Unlink { dir, .. } => drop(reached.insert(*dir)),
                NameOp::Rename { from_dir, to_dir, .. } => reached.extend([*from_dir, *to_dir]),
            }
        }
        let open = |node: &Node| matches!(node, Node::File(file) if file.opens > 0);
        reached.extend(self.nodes.iter().filter(|(_, node)| open(node)).map(|(ino, _)| *ino));
        let mut todo: Vec<Ino> = reached.iter().copied().collect();
        while let Some(at) = todo.pop() {
            let Some(dir) = self.dir(at) else { continue };
            for &ino in dir.live.values().chain(dir.durable.values()) {
                if reached.insert(ino) {
                    todo.push(ino);
                }
            }
        }
        self.nodes.retain(|ino, _| reached.contains(ino));
    }

    // ---- the end

    /// The power goes: what is left is one of the states that the syncs allow, chosen by `rng`.
    pub fn power_cut(&mut self, rng: &Rng) -> Cut {
        self.power_cut_with(rng, Tear::Chance)
    }

    /// The same, with a choice of what is torn.
    pub fn power_cut_with(&mut self, rng: &Rng, tear: Tear<'_>) -> Cut {
        let mut cut = Cut::default();
        let names = std::mem::take(&mut self.names);
        let torn = match tear {
            Tear::File(path) => self.lookup(path).ok(),
            Tear::Chance | Tear::Names => None,
        };
        let fate = match tear {
            Tear::Names => Fate::Coins(4),
            Tear::Chance | Tear::File(_) => Fate::draw(rng),
        };
        let prefix = rng.below(names.len() as u64 + 1) as usize;
        for (at, op) in names.iter().enumerate() {
            if fate.keeps(rng, at, prefix) {
                self.make_durable(&op.op);
            }
        }
        for (ino, node) in &mut self.nodes {
            match node {
                Node::File(file) => {
                    let chosen = (torn == Some(*ino)).then_some(Fate::Coins(4));
                    let of_file = file.power_cut(rng, chosen);
                    cut.lost += of_file.lost;
                    cut.torn += of_file.torn;
                }
                Node::Dir(dir) => dir.live = dir.durable.clone(),
            }
        }
        self.recount();
        self.collect();
        cut
    }

    /// The names in a directory that no sync has covered, oldest first, with true for those that
    /// go.
    pub fn unsynced_names(&self, dir: &Path) -> Vec<(String, bool)> {
        let Ok(dir) = self.lookup(dir) else { return Vec::new() };
        let of = |op: &Pending<NameOp>| match &op.op {
            NameOp::Link { dir: at, name, .. } => (*at == dir).then(|| (name.clone(), false)),
            NameOp::Unlink { dir: at, name, .. } => (*at == dir).then(|| (name.clone(), true)),
            NameOp::Rename { to_dir, to, .. } => (*to_dir == dir).then(|| (to.clone(), false)),
        };
        self.names.iter().filter_map(of).collect()
    }

    /// Makes the live image the durable one: a state to start from.
    pub(crate) fn settle(&mut self) {
        self.names.clear();
        for node in self.nodes.values_mut() {
            match node {
                Node::File(file) => {
                    file.durable = file.live.clone();
                    file.pending.clear();
                }
                Node::Dir(dir) => dir.durable = dir.live.clone(),
            }
        }
        self.collect();
    }

    fn recount(&mut self) {
        let named: Vec<Ino> = self
            .nodes
            .values()
            .filter_map(|node| match node {
                Node::Dir(dir) => Some(dir.live.values().copied().collect::<Vec<_>>()),
                Node::File(_) => None,
            })
            .flatten()
            .collect();
        self.used = 0;
        for node in self.nodes.values_mut() {
            if let Node::File(file) = node {
                (file.links, file.opens) = (0, 0);
            }
        }
        named.into_iter().for_each(|ino| self.count_link(ino, true));
    }
}

#[cfg(test)]
mod tests;
