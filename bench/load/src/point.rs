//! `load point`: one node and a fixed number of requests in flight; an answer is followed by the
//! next request.

use std::cell::RefCell;
use std::error::Error;
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt as _};
use rand::rngs::StdRng;

use crate::Outcome;
use crate::figures::{Figures, warmed_up};
use crate::mix::Mix;
use crate::options::Options;
use crate::session::{self, Pool, Retries};
use crate::table::{self, Table};
use crate::times::Times;

/// `point HOST [OPTIONS]`
pub fn run(words: &[String]) -> Outcome<bool> {
    let known = [
        &["depth", "level", "threads"],
        &table::OPTIONS[..],
        &Mix::OPTIONS,
        &Times::OPTIONS,
        &Pool::OPTIONS,
    ];
    let options = Options::parse(words, &known.concat())?;
    let [_] = options.plain.as_slice() else { return Err("which host? load point HOST".into()) };
    let threads = options.one("threads", NonZeroUsize::MIN)?.get();
    let depth = options.one("depth", NonZeroUsize::MIN)?.get();
    if threads > 1 && (options.has("load") || options.has("inserts")) {
        return Err("rows are made by one thread: --load and --inserts without --threads".into());
    }
    if depth < threads {
        return Err("each thread has a request in flight: --depth is not below --threads".into());
    }
    // what makes no sense is told before rows are made
    let work = (Mix::parse(&options)?, Times::parse(&options)?);
    let (options, work, begin) = (&options, &work, &Barrier::new(threads));
    let all = thread::scope(|scope| {
        let threads = (0..threads).map(|number| {
            // the first ones have those that cannot be shared evenly
            let depth = (depth + threads - 1 - number) / threads;
            scope.spawn(move || requests(options, work, (number as u64, depth), begin))
        });
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread failed"));
        ended.collect::<Vec<_>>()
    });
    let mut figures: Option<Figures> = None;
    for ended in all {
        let more = ended??;
        match &mut figures {
            Some(figures) => figures.join(more)?,
            none => *none = Some(more),
        }
    }
    figures.ok_or("no thread")?.say("")
}

/// What one thread does: so many requests at a time.
fn requests(
    options: &Options,
    work: &(Mix, Times),
    (number, depth): (u64, usize),
    begin: &Barrier,
) -> Result<Figures, String> {
    let told = |e: Box<dyn Error>| e.to_string();
    let runtime = crate::runtime().map_err(told)?;
    let opened = runtime.block_on(open(options, number));
    // all of them wait for all, those too that could not open it
    begin.wait();
    let (table, rng) = opened.map_err(told)?;
    runtime.block_on(one_after_another(work, &table, rng, depth)).map_err(told)
}

async fn open(options: &Options, number: u64) -> Outcome<(Table, StdRng)> {
    let level = session::level(&options.one("level", "ONE".to_owned())?)?;
    let pool = Pool::parse(options)?;
    let session = session::plain(&options.plain, true, level, &pool, Retries::None).await?;
    let mut rng = table::rng(options, number)?;
    let table = Table::open(session, options, 1, &mut rng).await?;
    Ok((table, rng))
}

async fn one_after_another(
    (mix, times): &(Mix, Times),
    table: &Table,
    rng: StdRng,
    depth: usize,
) -> Outcome<Figures> {
    let from = Instant::now() + times.warm;
    let end = from + times.measured;
    let (figures, rng) = (RefCell::new(Figures::new(from)?), RefCell::new(rng));
    let one_after_another = || async {
        loop {
            let begun = Instant::now();
            if begun >= end {
                return;
            }
            let operation = {
                let rng = &mut rng.borrow_mut();
                table.any(mix.any(rng), rng)
            };
            let outcome = table.run(&operation).await;
            figures.borrow_mut().count(begun, outcome);
        }
    };
    let requests: FuturesUnordered<_> = (0..depth).map(|_| one_after_another()).collect();
    let (begun, ()) = tokio::join!(warmed_up(&figures), requests.collect::<()>());
    begun?;
    Ok(figures.into_inner())
}
