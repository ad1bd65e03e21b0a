//! Times at which the machine stood still while something was measured: a virtual one's host may
//! stop its processors for longer than any answer takes, and each server then seems to have paused.

use std::process::{Child, Command, Stdio};

use crate::machine::{self, Outcome};

/// A processor that is so many milliseconds late stood still.
const LEAST_MS: &str = "5";

/// Watches every processor until it is asked what it saw.
pub struct Stops(Option<Child>);

/// How often processors stood still, and for how many milliseconds at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopped {
    pub times: u64,
    pub longest_ms: f64,
}

impl Stops {
    pub fn begin() -> Outcome<Self> {
        let mut watch = Command::new("python3");
        watch.arg(machine::root().join("bench/stops/stops.py")).arg(LEAST_MS);
        let watch = watch.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        Ok(Self(Some(watch)))
    }

    /// # Errors
    /// If the processors could not be watched: that takes the right to run before others.
    pub fn end(mut self) -> Outcome<Stopped> {
        let watch = self.0.take().ok_or("the watch has ended")?;
        // its input ends with that
        let said = watch.wait_with_output()?;
        Stopped::parse(&String::from_utf8_lossy(&said.stdout))
    }
}

impl Drop for Stops {
    fn drop(&mut self) {
        if let Some(watch) = &mut self.0 {
            // it may have ended by itself
            let _ = watch.kill();
            let _ = watch.wait();
        }
    }
}

impl Stopped {
    /// The last line of `stops.py`.
    fn parse(said: &str) -> Outcome<Self> {
        let last = said.lines().last().and_then(|line| line.split_once(' '));
        let (times, longest) = last.ok_or("nobody says whether the machine stood still")?;
        Ok(Self { times: times.parse()?, longest_ms: longest.parse()? })
    }
}

#[cfg(test)]
mod tests {
    use super::Stopped;

    #[test]
    fn the_last_line_counts() {
        let said = "1795721337.586 1 40.5\n1795721337.587 0 31.9\n2 40.5\n";
        let stopped = Stopped::parse(said).expect("two were told of");
        assert_eq!(stopped, Stopped { times: 2, longest_ms: 40.5 });
        assert!(Stopped::parse("1795721337.586 1 40.5\n").is_err());
        assert!(Stopped::parse("").is_err());
    }
}
