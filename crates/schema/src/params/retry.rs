//! When a request asks a further replica (`service.reads.SpeculativeRetryPolicy`).

use std::fmt;

use crate::error::SchemaError;

/// Which of two thresholds counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCombination {
    /// The smaller one.
    Min,
    /// The larger one.
    Max,
}

/// When a request asks a further replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeculativeRetry {
    /// Never, unless a replica fails.
    Never,
    /// At once.
    Always,
    /// After so many milliseconds.
    Fixed(i32),
    /// After the latency that this percentile of the table's requests stays within.
    Percentile(f64),
    /// After one of the two.
    Hybrid {
        /// Which.
        combination: RetryCombination,
        /// As in [`SpeculativeRetry::Percentile`].
        percentile: f64,
        /// As in [`SpeculativeRetry::Fixed`].
        millis: i32,
    },
}

impl SpeculativeRetry {
    /// `99p`.
    pub const DEFAULT: Self = Self::Percentile(99.0);
}

impl SpeculativeRetry {
    /// Reads `NONE`, `ALWAYS`, `99p`, `99PERCENTILE`, `50ms`, `MIN(99p,50ms)`, in any case. Errors
    /// name option `speculative_retry`, whichever it is, as Cassandra's do.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let lower = text.to_ascii_lowercase();
        match lower.as_str() {
            "always" => return Ok(Self::Always),
            "never" | "none" => return Ok(Self::Never),
            _ => {}
        }
        let number = |suffix: &str| {
            let digits = lower.strip_suffix(suffix)?;
            let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            (plain && !digits.is_empty()).then_some(digits)
        };
        if let Some(digits) = number("percentile").or_else(|| number("p")) {
            return Self::percentile(text, digits);
        }
        if let Some(digits) = number("ms") {
            // read as a double, kept as an int
            let millis: f64 = digits.parse().or_else(|_| SchemaError::config(invalid(text)))?;
            return Ok(Self::Fixed(millis as i32));
        }
        let (combination, rest) = match (lower.strip_prefix("min("), lower.strip_prefix("max(")) {
            (Some(rest), _) => (RetryCombination::Min, rest),
            (_, Some(rest)) => (RetryCombination::Max, rest),
            _ => return SchemaError::config(invalid(text)),
        };
        Self::hybrid(text, combination, rest)
    }

    fn percentile(text: &str, digits: &str) -> Result<Self, SchemaError> {
        let value: f64 = digits.parse().or_else(|_| SchemaError::config(invalid(text)))?;
        if value <= 0.0 || value >= 100.0 {
            return SchemaError::config(format!(
                "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
            ));
        }
        // four digits are what is stored, so no more are kept
        Ok(Self::Percentile(four_digits(value).parse().unwrap_or(value)))
    }

    fn hybrid(text: &str, combination: RetryCombination, rest: &str) -> Result<Self, SchemaError> {
        let refuse = || SchemaError::Config(invalid(text));
        let (a, b) = rest.strip_suffix(')').and_then(|r| r.split_once(',')).ok_or_else(refuse)?;
        let (a, b) = (a.trim_end(), b.trim_start());
        let simple = |t: &str| match Self::parse(t) {
            Ok(p @ (Self::Fixed(_) | Self::Percentile(_))) => Ok(p),
            _ => Err(refuse()),
        };
        match (simple(a)?, simple(b)?) {
            (Self::Percentile(percentile), Self::Fixed(millis))
            | (Self::Fixed(millis), Self::Percentile(percentile)) => {
                Ok(Self::Hybrid { combination, percentile, millis })
            }
            (first, _) => {
                let kind = if matches!(first, Self::Fixed(_)) { "FIXED" } else { "PERCENTILE" };
                SchemaError::config(format!(
                    "{}: MIN()/MAX() arguments should be of different types, but both are of type {kind}",
                    invalid(text)
                ))
            }
        }
    }
}

fn invalid(text: &str) -> String {
    format!("Invalid value {text} for option 'speculative_retry'")
}

/// `DecimalFormat("#.####")`: up to four digits after the point, half to even.
fn four_digits(value: f64) -> String {
    let text = format!("{value:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text.strip_prefix("0.") {
        Some(fraction) => format!(".{fraction}"),
        None => text.to_owned(),
    }
}

impl fmt::Display for SpeculativeRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("NEVER"),
            Self::Always => f.write_str("ALWAYS"),
            Self::Fixed(millis) => write!(f, "{millis}ms"),
            Self::Percentile(percentile) => write!(f, "{}p", four_digits(*percentile)),
            Self::Hybrid { combination, percentile, millis } => {
                let name = match combination {
                    RetryCombination::Min => "MIN",
                    RetryCombination::Max => "MAX",
                };
                write!(f, "{name}({}p,{millis}ms)", four_digits(*percentile))
            }
        }
    }
}
