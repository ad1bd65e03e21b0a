//! Verbs of the node itself: `tools.nodetool.Info`, `Version`, `Drain` and their kin, and
//! `iostats` and `doctor`, which are ours.

use super::VerbError;
use super::args::Args;

/// A verb of the node itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeVerb {
    /// `version`: the release of Cassandra that the node is compatible with.
    Version {
        /// The commit it was built from too.
        verbose: bool,
    },
    /// `info`: identity, load, uptime, caches.
    Info {
        /// Every token on a line of its own.
        tokens: bool,
    },
    /// `iostats`: the pattern of I/O.
    IoStats {
        /// Of the last so many.
        seconds: u64,
        /// On one line, for programs.
        json: bool,
        /// With each window.
        windows: bool,
    },
    /// `doctor`: what to change on the machine and in the ring.
    Doctor {
        /// For programs.
        json: bool,
    },
    /// `drain`: stops accepting writes and flushes everything.
    Drain,
    /// `stopdaemon`: ends the node.
    StopDaemon,
    /// `statusbinary`: whether clients are served.
    StatusBinary,
    /// `enablebinary`: serves clients again.
    EnableBinary,
    /// `disablebinary`: stops serving clients.
    DisableBinary {
        /// Without waiting for requests that run.
        force: bool,
    },
}

/// Seconds of which windows are kept.
const KEPT_SECONDS: u64 = env::IO_WINDOWS as u64 * env::IO_WINDOW.as_millis() as u64 / 1000;

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<NodeVerb>, VerbError> {
    Ok(Some(match name {
        "disablebinary" => NodeVerb::DisableBinary { force: args.flag(&["-f", "--force"]) },
        "doctor" => NodeVerb::Doctor { json: args.flag(&["--json"]) },
        "drain" => NodeVerb::Drain,
        "enablebinary" => NodeVerb::EnableBinary,
        "info" => {
            args.not_served(&["-O", "--out-of-range-ops"])?;
            NodeVerb::Info { tokens: args.flag(&["-T", "--tokens"]) }
        }
        "iostats" => io_stats(args)?,
        "statusbinary" => NodeVerb::StatusBinary,
        "stopdaemon" => NodeVerb::StopDaemon,
        "version" => NodeVerb::Version { verbose: args.flag(&["-v", "--verbose"]) },
        _ => return Ok(None),
    }))
}

/// `iostats [-s <seconds>] [-F json [--windows]]`
fn io_stats(args: &mut Args) -> Result<NodeVerb, VerbError> {
    let windows = args.flag(&["--windows"]);
    let json = match args.value(&["-F", "--format"])?.as_deref() {
        None => false,
        Some("json") => true,
        Some(_) => return Err(VerbError::Arguments("arguments for -F are json only.".to_owned())),
    };
    let seconds = match args.value(&["-s", "--seconds"])? {
        None => KEPT_SECONDS,
        Some(text) => {
            let seconds = text.parse().ok().filter(|seconds| (1..=KEPT_SECONDS).contains(seconds));
            seconds.ok_or_else(|| {
                VerbError::Arguments(format!(
                    "-s must be from 1 to {KEPT_SECONDS} seconds, not {text}"
                ))
            })?
        }
    };
    Ok(NodeVerb::IoStats { seconds, json, windows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<NodeVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Node(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn takes_a_time_and_a_form() {
        let stats = |seconds, json, windows| Ok(NodeVerb::IoStats { seconds, json, windows });
        assert_eq!(parse("iostats"), stats(60, false, false));
        assert_eq!(parse("iostats -s 5 -F json --windows"), stats(5, true, true));
        for wrong in ["iostats -s 0", "iostats -s 61", "iostats -s x", "iostats -F yaml"] {
            assert!(matches!(parse(wrong), Err(VerbError::Arguments(_))), "{wrong}");
        }
        assert!(parse("iostats ks").is_err());
    }
}
