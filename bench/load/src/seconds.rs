//! How each second of a measurement went, as lines of a file that grows: what ended in it.

use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

use crate::Outcome;
use crate::latency::Latencies;

/// The columns; latencies are in milliseconds, and those of what failed are among them.
const HEAD: &str = "second,done,failed,p50,p99,max";

pub struct Seconds {
    file: File,
    second: u32,
    latencies: Latencies,
    failed: u64,
}

impl Seconds {
    /// Into a new file.
    pub fn create(path: &str) -> Outcome<Self> {
        let mut file = File::create(path).map_err(|e| format!("{path}: {e}"))?;
        writeln!(file, "{HEAD}")?;
        Ok(Self { file, second: 0, latencies: Latencies::new()?, failed: 0 })
    }

    /// An operation ended.
    pub fn count(&mut self, took: Duration, is_done: bool) {
        self.latencies.record(took);
        self.failed += u64::from(!is_done);
    }

    /// A second ended.
    pub fn end_one(&mut self) -> Outcome {
        let Self { file, second, latencies, failed } = self;
        let done = latencies.count() - *failed;
        let [p50, p99] = [50.0, 99.0].map(|percent| latencies.percentile_ms(percent));
        writeln!(file, "{second},{done},{failed},{p50:.2},{p99:.2},{:.2}", latencies.worst_ms())?;
        *second += 1;
        *failed = 0;
        latencies.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{HEAD, Seconds};

    #[test]
    fn each_second_has_a_line() {
        let path = std::env::temp_dir().join(format!("seconds-{}", std::process::id()));
        let path = path.to_str().expect("a path of text");
        let mut seconds = Seconds::create(path).expect("a file");
        seconds.count(Duration::from_millis(2), true);
        seconds.count(Duration::from_millis(4), false);
        seconds.end_one().expect("a line");
        seconds.end_one().expect("a line");
        let text = std::fs::read_to_string(path).expect("the file");
        assert_eq!(text, format!("{HEAD}\n0,1,1,2.00,4.00,4.00\n1,0,0,0.00,0.00,0.00\n"));
        std::fs::remove_file(path).expect("the file");
    }
}
