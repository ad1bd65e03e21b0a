//! Measures the disks of a node, through the same io_uring and direct I/O as the node's own.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::doctor::{Figure, percentile};
use env::real::{self, RealOptions, StartError};
use env::{AlignedBuf, Class, Env, File, OpenOptions};

/// Bytes of the file that is read and written, at most.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// It takes no more of the free space than one part in so many.
const FREE_SHARE: u64 = 10;
/// With a smaller file the cache of the disk would be measured.
const FILE_BYTES_MIN: u64 = 16 << 20;
/// Bytes of a piece of what is read or written in order.
const PIECE_BYTES: u64 = 128 << 10;
/// Bytes of a random read, and of what is appended before each sync.
const BLOCK_BYTES: u64 = 4 << 10;
/// Requests in flight of what is read or written in order.
const SEQUENTIAL_DEPTH: usize = 8;
const RANDOM_DEPTHS: [usize; 3] = [1, 8, 32];
/// Bytes of the file that is appended to; then it begins again.
const APPENDED_BYTES_MAX: u64 = 64 << 20;
/// Times that are kept of one measurement.
const TIMES_MAX: usize = 4 << 20;
/// The file is filled for at most so many times the length of a measurement; what is full is used.
const FILL_TIMES: u32 = 4;

/// What is to be measured.
#[derive(Clone)]
pub struct Task {
    /// A folder on the disk of the data; it is there.
    pub data: PathBuf,
    /// A folder on the disk of the commit log; it is there.
    pub commit_log: PathBuf,
    /// How long each measurement takes.
    pub each: Duration,
}

/// What was measured.
#[derive(Default)]
pub struct Measured {
    pub file_bytes: u64,
    pub is_direct: bool,
    pub figures: Vec<Figure>,
}

struct Failed(String);

impl From<StartError> for Failed {
    fn from(error: StartError) -> Self {
        Self(error.to_string())
    }
}

/// Measures both disks.
///
/// # Errors
/// If a file cannot be made, written or read, or there is no room for it.
pub fn measure(task: &Task) -> Result<Measured, String> {
    let found = Arc::new(Mutex::new(None));
    let (told, task) = (Arc::clone(&found), task.clone());
    let most = RANDOM_DEPTHS.iter().copied().max().unwrap_or(1);
    let options = RealOptions { io_depth: most, ..RealOptions::default() };
    let ran = real::run(options, move |env, _mesh: env::Mesh<()>| {
        let (told, task) = (Arc::clone(&told), task.clone());
        async move {
            let measured = both(&env, &task).await.map_err(|error| Failed(error.to_string()))?;
            *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
            Ok::<(), Failed>(())
        }
    });
    ran.map_err(|Failed(why)| why)?;
    let measured = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    measured.ok_or_else(|| "nothing was measured".to_owned())
}

async fn both(env: &Env, task: &Task) -> io::Result<Measured> {
    let (_, free) = env.disk_space(&task.data).await?;
    let wanted = (free / FREE_SHARE).min(FILE_BYTES_MAX) / PIECE_BYTES * PIECE_BYTES;
    if wanted < FILE_BYTES_MIN {
        let why = format!("{}: too little is free to measure it", task.data.display());
        return Err(io::Error::other(why));
    }
    let file = unnamed(env, &task.data, OpenOptions::CREATE_NEW.direct()).await?;
    let mut run = Run { env, file, bytes: wanted, each: task.each, figures: Vec::new() };
    run.fill().await?;
    let (writes, _) = run.many(Kind::Write, SEQUENTIAL_DEPTH, run.each).await?;
    run.bandwidth("write_128k", &writes);
    let (reads, _) = run.many(Kind::Read, SEQUENTIAL_DEPTH, run.each).await?;
    run.bandwidth("read_128k", &reads);
    for depth in RANDOM_DEPTHS {
        let (reads, times) = run.many(Kind::RandomRead, depth, run.each).await?;
        run.latency(&format!("read_4k_depth_{depth}"), "reads/s", &reads, times);
    }
    let log = unnamed(env, &task.commit_log, OpenOptions::CREATE_NEW).await?;
    let (syncs, times) = appends(env, &log, task.each).await?;
    run.latency("append_sync_4k", "syncs/s", &syncs, times);
    Ok(Measured { file_bytes: run.bytes, is_direct: run.file.is_direct(), figures: run.figures })
}

/// A file without a name: it goes with this process, however that ends.
async fn unnamed(env: &Env, folder: &Path, options: OpenOptions) -> io::Result<File> {
    let path = folder.join(format!(".helenus-doctor-{}-measure", std::process::id()));
    let named = |error: io::Error| io::Error::other(format!("{}: {error}", path.display()));
    let file = File::open(env, &path, options).await.map_err(named)?;
    env.remove_file(&path).await.map_err(named)?;
    Ok(file)
}

#[derive(Clone, Copy)]
enum Kind {
    Write,
    Read,
    RandomRead,
}

/// How much was done in which time.
#[derive(Default)]
struct Done {
    count: u64,
    bytes: u64,
    seconds: f64,
}

struct Run<'e> {
    env: &'e Env,
    file: File,
    bytes: u64,
    each: Duration,
    figures: Vec<Figure>,
}

/// What the requests in flight share.
struct Shared {
    next: Cell<u64>,
    done: RefCell<(Done, Vec<u64>)>,
}

impl Run<'_> {
    /// Writes the file once; what a slow disk has no time for is left out.
    async fn fill(&mut self) -> io::Result<()> {
        self.file.allocate(self.bytes).await?;
        let end = self.env.now() + self.each * FILL_TIMES;
        let mut piece = piece(self.env);
        let mut at = 0;
        while at < self.bytes && (at < FILE_BYTES_MIN || self.env.now() < end) {
            let (result, back) = self.file.write_all_at(piece, at).await;
            piece = back;
            result?;
            at += PIECE_BYTES;
        }
        self.bytes = at;
        self.file.sync_all().await
    }

    /// Keeps so many requests in flight for a time.
    async fn many(&self, kind: Kind, depth: usize, each: Duration) -> io::Result<(Done, Vec<u64>)> {
        let shared = Rc::new(Shared { next: Cell::new(0), done: RefCell::default() });
        let begin = self.env.now();
        let tasks: Vec<_> = (0..depth)
            .map(|_| {
                let (env, file, bytes) = (self.env.clone(), self.file.clone(), self.bytes);
                let shared = Rc::clone(&shared);
                self.env.spawn_task(Class::Statement, async move {
                    repeat(&env, &file, bytes, kind, begin + each, &shared).await
                })
            })
            .collect();
        for task in tasks {
            task.await?;
        }
        if matches!(kind, Kind::Write) {
            self.file.sync_all().await?;
        }
        let seconds = (self.env.now() - begin).as_secs_f64();
        let (done, times) = shared.done.take();
        Ok((Done { seconds, ..done }, times))
    }

    fn bandwidth(&mut self, name: &str, done: &Done) {
        let rate = done.bytes as f64 / 1e6 / done.seconds;
        self.figures.push(Figure::rate(name, rate, "MB/s"));
    }

    fn latency(&mut self, name: &str, unit: &str, done: &Done, mut times: Vec<u64>) {
        self.figures.push(Figure::rate(name, done.count as f64 / done.seconds, unit));
        for of_hundred in [50, 99] {
            let nanos = percentile(&mut times, of_hundred);
            let name = format!("{name}_p{of_hundred}");
            self.figures.push(Figure::time(&name, nanos as f64 / 1e3, "us"));
        }
    }
}

/// A piece of bytes that no disk can pack.
fn piece(env: &Env) -> AlignedBuf {
    let mut piece = AlignedBuf::zeroed(PIECE_BYTES as usize);
    env.fill_random(&mut piece);
    piece
}

async fn repeat(
    env: &Env,
    file: &File,
    bytes: u64,
    kind: Kind,
    end: env::Instant,
    shared: &Shared,
) -> io::Result<()> {
    let len = if matches!(kind, Kind::RandomRead) { BLOCK_BYTES } else { PIECE_BYTES };
    let blocks = bytes / len;
    let mut buf = piece(env);
    loop {
        let begin = env.now();
        if begin >= end {
            return Ok(());
        }
        let block = match kind {
            Kind::RandomRead => env.random_u64() % blocks,
            _ => shared.next.replace(shared.next.get() + 1) % blocks,
        };
        let result = match kind {
            Kind::Write => {
                let (result, back) = file.write_all_at(buf, block * len).await;
                buf = back;
                result
            }
            _ => {
                let (result, back) = file.read_exact_at(buf, block * len, len as usize).await;
                buf = back;
                result
            }
        };
        result?;
        let (done, times) = &mut *shared.done.borrow_mut();
        done.count += 1;
        done.bytes += len;
        if times.len() < TIMES_MAX {
            times.push(nanos(env.now() - begin));
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Appends and syncs, one after the other.
async fn appends(env: &Env, file: &File, each: Duration) -> io::Result<(Done, Vec<u64>)> {
    let (mut done, mut times) = (Done::default(), Vec::new());
    let begin = env.now();
    let mut buf = AlignedBuf::zeroed(BLOCK_BYTES as usize);
    env.fill_random(&mut buf);
    while env.now() - begin < each && times.len() < TIMES_MAX {
        let start = env.now();
        let (result, back) = file.write_all_at(buf, done.bytes % APPENDED_BYTES_MAX).await;
        buf = back;
        result?;
        file.sync_data().await?;
        times.push(nanos(env.now() - start));
        done.count += 1;
        done.bytes += BLOCK_BYTES;
    }
    done.seconds = (env.now() - begin).as_secs_f64();
    Ok((done, times))
}
