//! Files of a simulated node: each operation takes its time, and may fail.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::disk::FileFault;
use super::later::later;
use super::machine::SimNode;
use super::port::Port;
use super::watch::{Change, Phase};
use crate::buf::{Bytes, IoBuf as _};
use crate::class::Class;
use crate::disk_model::{DiskModel, Ino, OpId};
use crate::env::Env;
use crate::file_op::FileOp;
use crate::io_history::Ended;
use crate::io_kind::IoKind;
use crate::open_options::OpenOptions;

fn eio() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

fn enospc() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOSPC)
}

/// An open file of one life of a node.
pub(crate) struct SimFile {
    node: Rc<SimNode>,
    life: u64,
    ino: Ino,
    /// As it was called when it was opened.
    path: PathBuf,
    options: OpenOptions,
}

impl Drop for SimFile {
    fn drop(&mut self) {
        // The process's death has closed it already.
        if self.node.is_up() && self.node.life.get() == self.life {
            self.node.disk.model.borrow_mut().closed(self.ino);
        }
    }
}

/// How fast a disk moves bytes.
const BYTES_PER_NANO: u64 = 2;

/// How long an operation takes.
fn latency(port: &Port, kind: IoKind, bytes: usize) -> u64 {
    let world = &port.world;
    let base = world.dice(world.options.disk);
    let base = match kind {
        IoKind::Sync => base * 10,
        IoKind::Meta | IoKind::Discard => base * 2,
        IoKind::Read | IoKind::Write | IoKind::Allocate | IoKind::WriteBack => {
            base + bytes as u64 / BYTES_PER_NANO
        }
    };
    // A device's tail.
    let base = if world.rng.one_in(64) { base * 20 } else { base };
    base.saturating_mul(port.node.disk.slow.get().max(1))
}

/// An operation on names: it happens at some point of its time, and is dropped with the process if
/// that comes later.
pub(crate) async fn meta<T: 'static>(
    env: &Env,
    port: &Port,
    f: impl FnOnce(&mut DiskModel, &Rc<SimNode>) -> io::Result<T> + 'static,
) -> io::Result<T> {
    meta_as(env, port, IoKind::Meta, f).await
}

/// The same, accounted as another kind. What it takes from the disk's files counts as its bytes.
async fn meta_as<T: 'static>(
    env: &Env,
    port: &Port,
    kind: IoKind,
    f: impl FnOnce(&mut DiskModel, &Rc<SimNode>) -> io::Result<T> + 'static,
) -> io::Result<T> {
    let took = latency(port, kind, 0);
    let (fill, result) = later();
    let (node, env) = (port.node.clone(), env.clone());
    let class = env.class();
    env.0.counters.io_started();
    port.after(took, move |world| {
        let used = node.disk.model.borrow().used();
        let outcome = f(&mut node.disk.model.borrow_mut(), &node);
        let gone = used.saturating_sub(node.disk.model.borrow().used());
        let bytes = outcome.is_ok().then_some(if kind == IoKind::Discard { gone } else { 0 });
        let ended = Ended { class, kind, bytes, queue_ns: 0, device_ns: took };
        env.0.counters.io_ended(world.now.get(), &ended);
        fill(outcome);
    });
    result.await
}

/// An operation that changes names, told to whoever watches.
pub(crate) async fn change_names(
    env: &Env,
    port: &Port,
    change: Change,
    path: PathBuf,
    f: impl FnOnce(&mut DiskModel) -> io::Result<()> + 'static,
) -> io::Result<()> {
    let kind = match change {
        Change::Remove | Change::RemoveDir => IoKind::Discard,
        _ => IoKind::Meta,
    };
    meta_as(env, port, kind, move |model, node| {
        node.disk.tell(change, &path, Phase::Before, model);
        f(model)?;
        node.disk.tell(change, &path, Phase::During, model);
        node.disk.tell(change, &path, Phase::After, model);
        Ok(())
    })
    .await
}

/// Opens a file.
pub(crate) async fn open(
    env: &Env,
    port: &Port,
    path: &Path,
    options: OpenOptions,
) -> io::Result<Rc<SimFile>> {
    let path = path.to_path_buf();
    let life = port.life;
    meta(env, port, move |model, node| {
        let ino = match model.lookup(&path) {
            Ok(_) if options.create_new => return Err(io::ErrorKind::AlreadyExists.into()),
            Ok(ino) if model.len(ino).is_none() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(ino) => ino,
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            Err(e) if !(options.create || options.create_new) => return Err(e),
            Err(_) => {
                node.disk.tell(Change::Create, &path, Phase::Before, model);
                let (ino, op) = model.create(&path)?;
                model.name_ended(op);
                node.disk.tell(Change::Create, &path, Phase::During, model);
                node.disk.tell(Change::Create, &path, Phase::After, model);
                ino
            }
        };
        if options.truncate && model.len(ino).is_some_and(|len| len > 0) {
            node.disk.tell(Change::Resize, &path, Phase::Before, model);
            let op = model.set_len(ino, 0)?;
            model.ended(ino, op);
            node.disk.tell(Change::Resize, &path, Phase::During, model);
            node.disk.tell(Change::Resize, &path, Phase::After, model);
        }
        model.opened(ino);
        Ok(Rc::new(SimFile { node: node.clone(), life, ino, path, options }))
    })
    .await
}

/// What a running operation will do to the model, and with which result.
enum Doing {
    Failed(io::Error),
    Read { offset: u64, len: usize },
    Write { offset: u64, from: usize, to: usize, then: Option<io::Error> },
    WriteBack { began: u64, ok: bool },
    SetLen(u64),
    Allocate(u64),
    Sync { began: u64, ok: bool, lie: bool },
}

impl Doing {
    /// What it changes, if it succeeds.
    fn change(&self) -> Option<Change> {
        match self {
            Self::Write { then: None, .. } => Some(Change::Write),
            Self::SetLen(_) | Self::Allocate(_) => Some(Change::Resize),
            Self::Sync { ok: true, lie: false, .. } => Some(Change::Sync),
            Self::Failed(_)
            | Self::Read { .. }
            | Self::Write { .. }
            | Self::WriteBack { .. }
            | Self::Sync { .. } => None,
        }
    }
}

/// Starts what waits while the disk has room.
fn pump(env: &Env, port: &Port) {
    loop {
        let next = port.disk.borrow_mut().next();
        let Some((_, start)) = next else { break };
        start(port);
    }
    let disk = port.disk.borrow();
    env.0.counters.io_depth(port.now_ns(), disk.in_flight(), disk.waiting());
}

/// A read, write, sync or allocation, when its turn at the disk has come.
pub(crate) async fn file_op(
    env: &Env,
    port: &Port,
    file: &Rc<SimFile>,
    op: FileOp,
    buf: Bytes,
    class: Class,
) -> (io::Result<usize>, Bytes) {
    let (fill, result) = later();
    let len = buf.as_slice().len();
    let (of, file, asked) = (env.clone(), file.clone(), port.now_ns());
    // as if there were one class only: whoever comes first is served first
    let queued_as = if env.planted("disk_without_classes") { Class::Background } else { class };
    let start = move |port: &Port| {
        let doing = decide(port, &file, op, len);
        let bytes = match op {
            FileOp::Write { from, most, .. } => FileOp::written(from, most, len).len(),
            FileOp::WriteBack { len, .. } => len as usize,
            _ => len,
        };
        let took = latency(port, op.kind(), bytes);
        let place = Some(queued_as);
        let ending = Ending { class, kind: op.kind(), asked, took, place };
        run(&of, port, &file, ending, doing, buf, fill);
    };
    port.disk.borrow_mut().push(queued_as, op.cost(len), Box::new(start));
    pump(env, port);
    result.await
}

/// Dice: callers are to be able to do without.
pub(crate) fn takes_now(port: &Port) -> bool {
    port.world.options.writes_now && port.world.rng.one_in(2)
}

/// A read of what is in memory: as often as not that is nothing.
pub(crate) fn read_now(
    env: &Env,
    port: &Port,
    file: &SimFile,
    to: &mut [u8],
    offset: u64,
    class: Class,
) -> io::Result<usize> {
    // what is broken is not there at once either: the read that waits for it fails
    let is_there = !port.world.rng.one_in(2) && !port.node.disk.breaks(&file.path, FileFault::Read);
    if !file.options.read || !is_there {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let read = port.node.disk.model.borrow().read(file.ino, offset, to);
    let counters = &env.0.counters;
    counters.io_started();
    let bytes = Some(read as u64);
    let ended = Ended { class, kind: IoKind::Read, bytes, queue_ns: 0, device_ns: 0 };
    counters.io_ended(port.now_ns(), &ended);
    Ok(read)
}

/// A write that is there when this returns.
pub(crate) fn write_now(
    env: &Env,
    port: &Port,
    file: &Rc<SimFile>,
    bytes: &[u8],
    offset: u64,
    class: Class,
) -> io::Result<()> {
    let disk = &port.node.disk;
    let mut buf = bytes.to_vec().into_bytes();
    let mut from = 0;
    while from < bytes.len() {
        let op = FileOp::Write { offset: offset + from as u64, from, most: bytes.len() };
        let doing = decide(port, file, op, bytes.len());
        let change = doing.change();
        let mut model = disk.model.borrow_mut();
        let tell = |phase, model: &DiskModel| {
            if let Some(change) = change {
                disk.tell(change, &file.path, phase, model);
            }
        };
        env.0.counters.io_started();
        tell(Phase::Before, &model);
        let outcome = perform(&mut model, file.ino, doing, None, &mut buf);
        tell(Phase::During, &model);
        tell(Phase::After, &model);
        drop(model);
        let written = outcome.as_ref().ok().map(|n| *n as u64);
        let ended = Ended { class, kind: IoKind::Write, bytes: written, queue_ns: 0, device_ns: 0 };
        env.0.counters.io_ended(port.now_ns(), &ended);
        from += outcome?;
    }
    Ok(())
}

/// Cuts or grows a file.
pub(crate) async fn set_len(
    env: &Env,
    port: &Port,
    file: &Rc<SimFile>,
    len: u64,
) -> io::Result<()> {
    let doing = match file.options.write {
        true => Doing::SetLen(len),
        false => Doing::Failed(io::ErrorKind::InvalidInput.into()),
    };
    let took = latency(port, IoKind::Discard, 0);
    let (class, kind, asked) = (env.class(), IoKind::Discard, port.now_ns());
    let (fill, result) = later();
    let ending = Ending { class, kind, asked, took, place: None };
    run(env, port, file, ending, doing, Bytes::default(), fill);
    result.await.0.map(drop)
}

/// The size of a file.
pub(crate) async fn len(env: &Env, port: &Port, file: &Rc<SimFile>) -> io::Result<u64> {
    let ino = file.ino;
    meta(env, port, move |model, _| model.len(ino).ok_or_else(|| io::ErrorKind::NotFound.into()))
        .await
}

fn decide(port: &Port, file: &SimFile, op: FileOp, len: usize) -> Doing {
    let (world, disk) = (&port.world, &port.node.disk);
    let is_broken = |what: FileFault| disk.breaks(&file.path, what);
    let fault = |name: &'static str, one_in: &Cell<u64>| {
        let broken = match name {
            "read_error" => is_broken(FileFault::Read),
            "write_error" => is_broken(FileFault::Write),
            "sync_error" => is_broken(FileFault::Sync),
            _ => false,
        };
        let fires = world.rng.one_in(one_in.get()) || broken;
        if fires {
            world.fired(name);
        }
        fires
    };
    let full = |grows_by: u64| {
        let used = disk.model.borrow().used();
        let full = (disk.no_space.get() && grows_by > 0)
            || is_broken(FileFault::Full)
            || used.saturating_add(grows_by) > world.options.disk_bytes;
        if full {
            world.fired("no_space");
        }
        full
    };
    if let Some(e) = refuse(file, op, len) {
        return Doing::Failed(e);
    }
    let size = disk.model.borrow().len(file.ino).unwrap_or(0);
    match op {
        FileOp::Splice { .. } => Doing::Failed(io::ErrorKind::Unsupported.into()),
        FileOp::Read { .. } if fault("read_error", &disk.read_error) => Doing::Failed(eio()),
        FileOp::Read { offset, len: want } => {
            let mut len = want.min(len);
            if len > 8192 && world.rng.one_in(64) {
                world.fired("short_read");
                len = 4096 * world.rng.between(1, len as u64 / 4096 - 1) as usize;
            }
            Doing::Read { offset, len }
        }
        FileOp::Write { offset, from, most } => {
            let len = FileOp::written(from, most, len).end;
            let end = offset.saturating_add((len - from.min(len)) as u64);
            if full(end.saturating_sub(size)) {
                return Doing::Failed(enospc());
            }
            let sectors = (len - from.min(len)) as u64 / 512;
            let part = from + 512 * world.rng.below(sectors + 1) as usize;
            if fault("write_error", &disk.write_error) {
                return Doing::Write { offset, from, to: part, then: Some(eio()) };
            }
            let short = part > from && world.rng.one_in(64) && !file.options.direct;
            if short {
                world.fired("short_write");
            }
            Doing::Write { offset, from, to: if short { part } else { len }, then: None }
        }
        FileOp::WriteBack { .. } => {
            let began = disk.model.borrow_mut().sync_begins();
            Doing::WriteBack { began, ok: !fault("sync_error", &disk.sync_error) }
        }
        FileOp::SyncData | FileOp::SyncAll => {
            let began = disk.model.borrow_mut().sync_begins();
            let ok = !fault("sync_error", &disk.sync_error);
            Doing::Sync { began, ok, lie: ok && fault("sync_lie", &disk.sync_lie) }
        }
        FileOp::Allocate { offset, len } => {
            let end = offset.saturating_add(len);
            if full(end.saturating_sub(size)) {
                return Doing::Failed(enospc());
            }
            Doing::Allocate(end)
        }
    }
}

/// What the kernel would refuse.
fn refuse(file: &SimFile, op: FileOp, len: usize) -> Option<io::Error> {
    let bad = || io::Error::from_raw_os_error(libc::EBADF);
    let aligned = |offset: u64, len: usize| offset.is_multiple_of(512) && len.is_multiple_of(512);
    let unaligned = || io::Error::from_raw_os_error(libc::EINVAL);
    match op {
        FileOp::Read { .. } if !file.options.read => Some(bad()),
        FileOp::Write { .. } | FileOp::Allocate { .. } if !file.options.write => Some(bad()),
        FileOp::Read { offset, len } if file.options.direct && !aligned(offset, len) => {
            Some(unaligned())
        }
        FileOp::Write { offset, from, most }
            if file.options.direct && !aligned(offset, FileOp::written(from, most, len).len()) =>
        {
            Some(unaligned())
        }
        _ => None,
    }
}

/// What is to be said of an operation when it ends.
struct Ending {
    class: Class,
    kind: IoKind,
    /// When it was asked for.
    asked: u64,
    /// How long the disk takes for it.
    took: u64,
    /// The class whose place at the disk it has, to be given on.
    place: Option<Class>,
}

/// Does what was decided, and hands on its outcome when it has ended.
fn run(
    env: &Env,
    port: &Port,
    file: &Rc<SimFile>,
    ending: Ending,
    doing: Doing,
    buf: Bytes,
    fill: impl FnOnce((io::Result<usize>, Bytes)) + 'static,
) {
    let change = doing.change();
    if let Some(change) = change {
        let disk = &port.node.disk;
        disk.tell(change, &file.path, Phase::Before, &disk.model.borrow());
    }
    // A write may be visible before it ends: the process may die in between.
    let begun = match &doing {
        Doing::Write { offset, from, to, .. } if port.world.rng.one_in(2) => {
            let bytes = buf.as_slice().get(*from..*to).unwrap_or_default();
            port.node.disk.model.borrow_mut().write(file.ino, *offset, bytes).ok()
        }
        _ => None,
    };
    let (file, env) = (file.clone(), env.clone());
    env.0.counters.io_started();
    let queue_ns = port.now_ns().saturating_sub(ending.asked);
    port.after(ending.took, move |world| {
        let mut buf = buf;
        let mut model = file.node.disk.model.borrow_mut();
        let tell = |phase, model: &DiskModel| {
            if let Some(change) = change {
                file.node.disk.tell(change, &file.path, phase, model);
            }
        };
        // A sync is under way until it ends; what it covers is there already.
        if change == Some(Change::Sync) {
            tell(Phase::During, &model);
        }
        let outcome = perform(&mut model, file.ino, doing, begun, &mut buf);
        if change != Some(Change::Sync) {
            tell(Phase::During, &model);
        }
        tell(Phase::After, &model);
        drop(model);
        let bytes = outcome.as_ref().ok().map(|n| *n as u64);
        let Ending { class, kind, took, place, .. } = ending;
        let ended = Ended { class, kind, bytes, queue_ns, device_ns: took };
        env.0.counters.io_ended(world.now.get(), &ended);
        fill((outcome, buf));
        drop(file);
        if let (Some(class), Some(port)) = (place, env.port()) {
            port.disk.borrow_mut().ended(class);
            pump(&env, port);
        }
    });
}

fn perform(
    model: &mut DiskModel,
    ino: Ino,
    doing: Doing,
    begun: Option<OpId>,
    buf: &mut Bytes,
) -> io::Result<usize> {
    match doing {
        Doing::Failed(e) => Err(e),
        Doing::Read { offset, len } => {
            let to = buf.as_mut_slice().get_mut(..len).unwrap_or_default();
            Ok(model.read(ino, offset, to))
        }
        Doing::Write { offset, from, to, then } => {
            let bytes = buf.as_slice().get(from..to).unwrap_or_default();
            let op = match begun {
                Some(op) => op,
                None => model.write(ino, offset, bytes)?,
            };
            // A failed write never counts as ended: no sync answers for it.
            match then {
                Some(e) => Err(e),
                None => {
                    model.ended(ino, op);
                    Ok(to - from)
                }
            }
        }
        Doing::SetLen(len) => {
            let op = model.set_len(ino, len)?;
            model.ended(ino, op);
            Ok(0)
        }
        Doing::Allocate(len) => {
            let op = model.allocate(ino, len)?;
            model.ended(ino, op);
            Ok(0)
        }
        // Nothing is durable for it; but what the disk did not take, no sync answers for.
        Doing::WriteBack { began, ok } => {
            if !ok {
                model.sync_ended(ino, began, false);
            }
            if ok { Ok(0) } else { Err(eio()) }
        }
        Doing::Sync { began, ok, lie } => {
            if !lie {
                model.sync_ended(ino, began, ok);
            }
            if ok { Ok(0) } else { Err(eio()) }
        }
    }
}

/// Now, as the disk counts it.
pub(crate) fn moment(port: &Port) -> u64 {
    port.node.disk.model.borrow_mut().sync_begins()
}

/// Makes the names in a directory durable, which was opened at some moment or is now.
pub(crate) async fn sync_dir(
    env: &Env,
    port: &Port,
    path: &Path,
    opened: Option<u64>,
) -> io::Result<()> {
    let disk = &port.node.disk;
    let began = disk.model.borrow_mut().sync_begins();
    let opened = opened.unwrap_or(began);
    let breaks = disk.breaks(path, FileFault::SyncNames);
    let fails = port.world.rng.one_in(disk.sync_error.get()) || breaks;
    if fails {
        port.world.fired("sync_error");
    }
    let path = path.to_path_buf();
    if !fails {
        disk.tell(Change::SyncNames, &path, Phase::Before, &disk.model.borrow());
    }
    meta(env, port, move |model, node| {
        let dir = model.lookup(&path)?;
        if model.dir_sync_fails(dir, opened, fails) {
            model.dir_sync_ended(dir, began, false);
            return Err(eio());
        }
        node.disk.tell(Change::SyncNames, &path, Phase::During, model);
        model.dir_sync_ended(dir, began, true);
        node.disk.tell(Change::SyncNames, &path, Phase::After, model);
        Ok(())
    })
    .await
}

/// A lock that one life of a node holds.
pub(crate) struct SimLock {
    node: Rc<SimNode>,
    life: u64,
    path: PathBuf,
}

impl std::fmt::Debug for SimLock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimLock({:?})", self.path)
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        if self.node.is_up() && self.node.life.get() == self.life {
            self.node.disk.locks.borrow_mut().remove(&self.path);
        }
    }
}

/// Locks a file.
pub(crate) async fn lock(env: &Env, port: &Port, path: &Path) -> io::Result<SimLock> {
    let options = OpenOptions::READ_WRITE;
    drop(open(env, port, path, options).await?);
    if !port.node.disk.locks.borrow_mut().insert(path.to_path_buf()) {
        return Err(io::Error::new(
            io::ErrorKind::WouldBlock,
            format!("{path:?} is locked: another node runs on this directory"),
        ));
    }
    Ok(SimLock { node: port.node.clone(), life: port.life, path: path.to_path_buf() })
}
