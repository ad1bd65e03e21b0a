//! What `load ring` is asked for.

use std::time::Duration;

use scylla::statement::Consistency;

use crate::Outcome;
use crate::options::Options;
use crate::session;

/// In place of seconds: until the standard input ends.
const UNTIL_INPUT_ENDS: &str = "-";
const OPTIONS: [&str; 9] =
    ["rows", "rate", "threads", "writes", "name", "through", "level", "keep", "only"];

/// What is asked for.
pub struct Wanted {
    /// None: until the standard input ends.
    pub seconds: Option<Duration>,
    pub hosts: Vec<String>,
    /// Through whom all is compared.
    pub through: Vec<String>,
    pub rows: usize,
    /// Operations a second.
    pub rate: f64,
    /// Operations at a time.
    pub tasks: usize,
    /// Their share.
    pub writes: f64,
    pub name: String,
    pub level: Consistency,
    /// The rows are there already, with another's numbers.
    pub keeps: bool,
    pub runs: bool,
    pub compares: bool,
}

impl Wanted {
    pub fn parse(words: &[String]) -> Outcome<Self> {
        let options = Options::parse(words, &OPTIONS)?;
        let [seconds, hosts @ ..] = options.plain.as_slice() else {
            return Err("for how long, and which hosts? load ring SECONDS|- HOST...".into());
        };
        let seconds = match seconds.as_str() {
            UNTIL_INPUT_ENDS => None,
            seconds => Some(Duration::try_from_secs_f64(seconds.parse()?)?),
        };
        let only: String = options.one("only", String::new())?;
        if !["", "run", "compare"].contains(&only.as_str()) {
            return Err(format!("--only run or compare, not {only}").into());
        }
        let through = if options.has("through") { options.all("through") } else { hosts };
        let wanted = Self {
            seconds,
            hosts: hosts.to_vec(),
            through: through.to_vec(),
            rows: options.one("rows", 5000)?,
            rate: options.one("rate", 300.0)?,
            tasks: options.one("threads", 24)?,
            writes: options.one("writes", 0.5)?,
            name: options.one("name", "user".to_owned())?,
            level: session::level(&options.one("level", "LOCAL_QUORUM".to_owned())?)?,
            keeps: options.has("keep"),
            runs: only != "compare",
            compares: only != "run",
        };
        if wanted.hosts.is_empty() || wanted.tasks == 0 || wanted.rows < wanted.tasks {
            return Err("a host, a thread, and a row for each thread are the least".into());
        }
        if wanted.rate.is_nan() || wanted.rate <= 0.0 {
            return Err("--rate wants more than nothing".into());
        }
        Ok(wanted)
    }

    /// Between two operations of a task.
    pub fn pause(&self) -> Duration {
        Duration::from_secs_f64(self.tasks as f64 / self.rate)
    }
}
