//! Verbs of hints: `tools.nodetool.StatusHandoff`, `ListPendingHints` and their kin.

use super::args::Args;
use super::{VerbError, number, refused};
use crate::operator::HandoffChange;

/// A verb of hints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HintsVerb {
    /// `statushandoff`
    StatusHandoff,
    /// `getmaxhintwindow`
    GetMaxHintWindow,
    /// `enablehandoff`, `disablehandoff`, those for a data center, `sethintedhandoffthrottlekb`,
    /// `setmaxhintwindow`
    SetHandoff(HandoffChange),
    /// `pausehandoff`, or `resumehandoff`
    PauseHandoff(bool),
    /// `listpendinghints`
    ListPendingHints {
        /// With ports.
        print_port: bool,
    },
    /// `truncatehints`: all, or those for the node of an address.
    TruncateHints(Option<String>),
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<HintsVerb>, VerbError> {
    Ok(Some(match name {
        "disablehandoff" => HintsVerb::SetHandoff(HandoffChange::Enabled(false)),
        "disablehintsfordc" => for_center(args, name, false)?,
        "enablehandoff" => HintsVerb::SetHandoff(HandoffChange::Enabled(true)),
        "enablehintsfordc" => for_center(args, name, true)?,
        "getmaxhintwindow" => HintsVerb::GetMaxHintWindow,
        "listpendinghints" => HintsVerb::ListPendingHints { print_port: args.print_port },
        "pausehandoff" => HintsVerb::PauseHandoff(true),
        "resumehandoff" => HintsVerb::PauseHandoff(false),
        "sethintedhandoffthrottlekb" => throttle(args)?,
        "setmaxhintwindow" => window(args)?,
        "statushandoff" => HintsVerb::StatusHandoff,
        "truncatehints" => HintsVerb::TruncateHints(args.take()),
        _ => return Ok(None),
    }))
}

/// `enablehintsfordc`, `disablehintsfordc`
fn for_center(args: &mut Args, verb: &str, is_enabled: bool) -> Result<HintsVerb, VerbError> {
    match (args.take(), args.take()) {
        (Some(center), None) => {
            Ok(HintsVerb::SetHandoff(HandoffChange::Center(center, is_enabled)))
        }
        _ => refused(format!("{verb} requires exactly one data center")),
    }
}

/// `sethintedhandoffthrottlekb`
fn throttle(args: &mut Args) -> Result<HintsVerb, VerbError> {
    match u64::try_from(number(args, "throttle_in_kb")?) {
        Ok(kib) => Ok(HintsVerb::SetHandoff(HandoffChange::Throttle(kib << 10))),
        Err(_) => refused("Invalid data storage: value must be non-negative"),
    }
}

/// `setmaxhintwindow`
fn window(args: &mut Args) -> Result<HintsVerb, VerbError> {
    match u64::try_from(number(args, "max_hint_window")?) {
        Ok(millis) => Ok(HintsVerb::SetHandoff(HandoffChange::Window(millis))),
        Err(_) => refused("Invalid duration: value must be non-negative"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<HintsVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Hints(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn takes_what_cassandra_takes() {
        let set = |change| Ok(HintsVerb::SetHandoff(change));
        let center = |is_enabled| set(HandoffChange::Center("dc2".into(), is_enabled));
        assert_eq!(parse("disablehandoff"), set(HandoffChange::Enabled(false)));
        assert_eq!(parse("enablehintsfordc dc2"), center(true));
        assert_eq!(parse("disablehintsfordc dc2"), center(false));
        assert_eq!(parse("sethintedhandoffthrottlekb 2"), set(HandoffChange::Throttle(2048)));
        assert_eq!(parse("setmaxhintwindow 5000"), set(HandoffChange::Window(5000)));
        assert_eq!(
            parse("truncatehints 10.0.0.1"),
            Ok(HintsVerb::TruncateHints(Some("10.0.0.1".into())))
        );
        for wrong in ["enablehintsfordc", "disablehintsfordc a b", "setmaxhintwindow x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
