//! The verbs about hints.

use super::args::Args;
use super::compactions::number;
use super::{Verb, VerbError, refused};
use crate::operator::HandoffChange;

/// `enablehintsfordc`, `disablehintsfordc`
pub(super) fn for_center(args: &mut Args, verb: &str, is_enabled: bool) -> Result<Verb, VerbError> {
    match (args.take(), args.take()) {
        (Some(center), None) => Ok(Verb::SetHandoff(HandoffChange::Center(center, is_enabled))),
        _ => refused(format!("{verb} requires exactly one data center")),
    }
}

/// `sethintedhandoffthrottlekb`
pub(super) fn throttle(args: &mut Args) -> Result<Verb, VerbError> {
    match u64::try_from(number(args, "throttle_in_kb")?) {
        Ok(kib) => Ok(Verb::SetHandoff(HandoffChange::Throttle(kib << 10))),
        Err(_) => refused("throttle_in_kb must not be negative"),
    }
}

/// `setmaxhintwindow`
pub(super) fn window(args: &mut Args) -> Result<Verb, VerbError> {
    match u64::try_from(number(args, "max_hint_window")?) {
        Ok(millis) => Ok(Verb::SetHandoff(HandoffChange::Window(millis))),
        Err(_) => refused("max_hint_window must not be negative"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::parse;

    #[test]
    fn takes_what_cassandra_takes() {
        let set = |change| Ok(Verb::SetHandoff(change));
        let center = |is_enabled| set(HandoffChange::Center("dc2".into(), is_enabled));
        assert_eq!(parse("disablehandoff"), set(HandoffChange::Enabled(false)));
        assert_eq!(parse("enablehintsfordc dc2"), center(true));
        assert_eq!(parse("disablehintsfordc dc2"), center(false));
        assert_eq!(parse("sethintedhandoffthrottlekb 2"), set(HandoffChange::Throttle(2048)));
        assert_eq!(parse("setmaxhintwindow 5000"), set(HandoffChange::Window(5000)));
        assert_eq!(
            parse("truncatehints 10.0.0.1"),
            Ok(Verb::TruncateHints(Some("10.0.0.1".into())))
        );
        for wrong in ["enablehintsfordc", "disablehintsfordc a b", "setmaxhintwindow x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
