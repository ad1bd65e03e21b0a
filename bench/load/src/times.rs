//! How long a measurement takes.

use std::time::Duration;

use crate::Outcome;
use crate::options::Options;

pub struct Times {
    /// How long requests are made before those that are measured.
    pub warm: Duration,
    /// How long those are made.
    pub measured: Duration,
}

impl Times {
    pub const OPTIONS: [&str; 2] = ["warm", "seconds"];

    pub fn parse(options: &Options) -> Outcome<Self> {
        Ok(Self {
            warm: Duration::try_from_secs_f64(options.one("warm", 5.0)?)?,
            measured: Duration::try_from_secs_f64(options.one("seconds", 30.0)?)?,
        })
    }
}
