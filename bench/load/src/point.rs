//! `load point`: one node and a fixed number of requests in flight; an answer is followed by the next request.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt as _};

use crate::Outcome;
use crate::figures::{Figures, warmed_up};
use crate::mix::Mix;
use crate::options::Options;
use crate::session::{self, Pool};
use crate::table::{self, Table};
use crate::times::Times;

/// `point HOST [OPTIONS]`
pub async fn run(words: &[String]) -> Outcome<bool> {
    let known =
        [&["depth", "level"], &table::OPTIONS[..], &Mix::OPTIONS, &Times::OPTIONS, &Pool::OPTIONS];
    let options = Options::parse(words, &known.concat())?;
    let [_] = options.plain.as_slice() else { return Err("which host? load point HOST".into()) };
    let mix = Mix::parse(&options)?;
    let depth = options.one("depth", NonZeroUsize::MIN)?;
    let level = session::level(&options.one("level", "ONE".to_owned())?)?;
    let times = Times::parse(&options)?;
    let session = session::plain(&options.plain, true, level, &Pool::parse(&options)?).await?;
    let mut rng = table::rng();
    let table = Table::open(session, &options, 1, &mut rng).await?;

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
    let requests: FuturesUnordered<_> = (0..depth.get()).map(|_| one_after_another()).collect();
    let (begun, ()) = tokio::join!(warmed_up(&figures), requests.collect::<()>());
    begun?;
    figures.into_inner().say("")
}
