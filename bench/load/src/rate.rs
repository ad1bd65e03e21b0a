//! `load rate`: requests at a fixed rate, whatever becomes of them. Latency counts from when a
//! request was due, and none is forgotten, so that a server that stops for a while is seen by each
//! request that was due meanwhile.

use std::cell::{Cell, RefCell};
use std::io::Read as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use crate::Outcome;
use crate::figures::{Figures, warmed_up};
use crate::mix::Mix;
use crate::options::Options;
use crate::seconds::Seconds;
use crate::session::{self, Pool, Retries};
use crate::table::{self, Table};
use crate::timer::Timer;
use crate::times::Times;

/// Requests in flight, unless told. One that is due while there are so many is sent later, and its
/// latency counts from when it was due all the same.
const IN_FLIGHT: u32 = 4096;

const SECOND: Duration = Duration::from_secs(1);

/// Tells when standard input has ended.
fn told() -> Arc<AtomicBool> {
    let is_over = Arc::new(AtomicBool::new(false));
    let tells = Arc::clone(&is_over);
    std::thread::spawn(move || {
        // what cannot be read has ended, too
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        tells.store(true, Ordering::Relaxed);
    });
    is_over
}

/// `rate HOST... [OPTIONS]`
pub async fn run(words: &[String]) -> Outcome<bool> {
    let known = [
        &["rate", "in-flight", "level", "retries", "until-told", "each-second", "closed"],
        &table::OPTIONS[..],
        &Mix::OPTIONS,
        &Times::OPTIONS,
        &Pool::OPTIONS,
    ];
    let options = Options::parse(words, &known.concat())?;
    if options.plain.is_empty() {
        return Err("which hosts? load rate HOST...".into());
    }
    let rate: f64 = options.one("rate", 1000.0)?;
    if rate.is_nan() || rate <= 0.0 {
        return Err("--rate wants more than nothing".into());
    }
    let is_closed = options.has("closed");
    let most: u32 = options.one("in-flight", IN_FLIGHT)?;
    let mix = Mix::parse(&options)?;
    let level = session::level(&options.one("level", "LOCAL_QUORUM".to_owned())?)?;
    let times = Times::parse(&options)?;
    let pool = Pool::parse(&options)?;
    let retries = if options.has("retries") { Retries::Default } else { Retries::None };
    let session = session::plain(&options.plain, false, level, &pool, retries).await?;
    let mut rng = table::rng(&options, 0)?;
    let table = Rc::new(Table::open(session, &options, 3, &mut rng).await?);
    let seconds = match options.has("each-second") {
        true => Some(Seconds::create(&options.one("each-second", String::new())?)?),
        false => None,
    };
    let seconds = Rc::new(RefCell::new(seconds));
    let is_over = if options.has("until-told") { told() } else { Arc::default() };

    let begin = Instant::now();
    let figures = Rc::new(RefCell::new(Figures::new(begin + times.warm)?));
    let room = Arc::new(Semaphore::new(most as usize));
    let mut timer = Timer::new()?;
    let has_ended = Cell::new(false);
    let send = async {
        let end = begin + times.warm + times.measured;
        // a closed load sends when there is room, and nothing is due before
        let due = |n: u32| match is_closed {
            true => Instant::now(),
            false => begin + Duration::from_secs_f64(f64::from(n) / rate),
        };
        for due in (0..).map(due).take_while(|due| *due < end && !is_over.load(Ordering::Relaxed)) {
            timer.until(due).await;
            let place = Arc::clone(&room).acquire_owned().await?;
            let due = if is_closed { Instant::now() } else { due };
            let operation = table.any(mix.any(&mut rng), &mut rng);
            let (table, figures) = (Rc::clone(&table), Rc::clone(&figures));
            let seconds = Rc::clone(&seconds);
            tokio::task::spawn_local(async move {
                let outcome = table.run(&operation).await;
                if let Some(seconds) = seconds.borrow_mut().as_mut() {
                    seconds.count(due.elapsed(), outcome.is_ok());
                }
                figures.borrow_mut().count(due, outcome);
                drop(place);
            });
        }
        // all have ended when all places are free
        drop(room.acquire_many(most).await?);
        has_ended.set(true);
        Outcome::Ok(())
    };
    let each = async {
        for n in 1.. {
            tokio::time::sleep_until((begin + SECOND * n).into()).await;
            match seconds.borrow_mut().as_mut() {
                Some(seconds) if !has_ended.get() => seconds.end_one()?,
                _ => break,
            }
        }
        Outcome::Ok(())
    };
    let (begun, sent, each) = tokio::join!(warmed_up(&figures), send, each);
    begun?;
    sent?;
    each?;
    figures.borrow().say(&format!("\"wanted_per_second\": {rate}, "))
}
