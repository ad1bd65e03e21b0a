//! What a measurement found, as a line of JSON.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::latency::Latencies;
use crate::reasons::{Failure, Reasons};

/// Parts of a second in which the system counts the time of processes: so on each architecture that
/// we run on.
const TICKS: f64 = 100.0;
/// Where `/proc/self/stat` has the time in user mode, counted after the name in parentheses; the
/// time in the kernel follows.
const USER_TIME: usize = 11;

/// Of the operations that are measured; those before them only warm up.
pub struct Figures {
    /// What is due earlier is not counted.
    pub from: Instant,
    latencies: Latencies,
    failed: u64,
    reasons: Reasons,
    /// Of this process, when the measurement began.
    processor: Duration,
}

impl Figures {
    pub fn new(from: Instant) -> Outcome<Self> {
        Ok(Self {
            from,
            latencies: Latencies::new()?,
            failed: 0,
            reasons: Reasons::default(),
            processor: Duration::ZERO,
        })
    }

    /// It has warmed up.
    pub fn begin(&mut self) -> Outcome {
        self.processor = processor_time()?;
        Ok(())
    }

    /// An operation that began, or was due, then has ended; one that failed has no latency.
    pub fn count(&mut self, begun: Instant, outcome: Result<(), Failure>) {
        let took = begun.elapsed();
        if begun < self.from {
            return;
        }
        match outcome {
            Ok(()) => self.latencies.record(took),
            Err(failure) => {
                self.failed += 1;
                self.reasons.add(&failure);
            }
        }
    }

    /// What was found at the same time by another thread of this process.
    pub fn join(&mut self, other: Self) -> Outcome {
        self.failed += other.failed;
        self.reasons.join(other.reasons);
        self.latencies.add(&other.latencies)
    }

    /// All have ended: what was found, with a figure more if there is one. Latencies are in
    /// microseconds.
    pub fn say(&self, more: &str) -> Outcome<bool> {
        let seconds = self.from.elapsed().as_secs_f64();
        let processor = processor_time()?.saturating_sub(self.processor).as_secs_f64();
        let (all, done) = (&self.latencies, self.latencies.count());
        let percentiles: Vec<String> = [50.0, 99.0, 99.9, 99.99]
            .iter()
            .map(|percent| format!("\"p{percent}\": {}", all.percentile(*percent)))
            .collect();
        println!(
            "{{\"operations\": {done}, \"seconds\": {seconds:.3}, \"per_second\": {:.1}, {more}{}, \"max\": {}, \
             \"failed\": {}, \"reasons\": {}, \"processor_seconds\": {processor:.2}}}",
            done as f64 / seconds,
            percentiles.join(", "),
            all.worst(),
            self.failed,
            self.reasons.json(),
        );
        Ok(self.failed == 0)
    }
}

/// The measurement begins, once it is time.
pub async fn warmed_up(figures: &RefCell<Figures>) -> Outcome {
    let from = figures.borrow().from;
    tokio::time::sleep_until(from.into()).await;
    figures.borrow_mut().begin()
}

/// How long this process has run on a processor, all its threads.
fn processor_time() -> Outcome<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let (_, fields) = stat.rsplit_once(')').ok_or("/proc/self/stat has no name")?;
    let times = fields.split_whitespace().skip(USER_TIME).take(2);
    let ticks = times.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_secs_f64(ticks as f64 / TICKS))
}

#[cfg(test)]
mod tests {
    use super::processor_time;

    #[test]
    fn the_process_has_run_for_less_than_a_day() {
        assert!(processor_time().expect("a Linux").as_secs() < 86_400);
    }
}
