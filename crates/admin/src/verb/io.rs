//! The verb about I/O.

use super::args::Args;
use super::{Verb, VerbError};

/// Seconds of which windows are kept.
const KEPT_SECONDS: u64 = env::IO_WINDOWS as u64 * env::IO_WINDOW.as_millis() as u64 / 1000;

/// `iostats [-s <seconds>] [-F json [--windows]]`
pub(super) fn stats(args: &mut Args) -> Result<Verb, VerbError> {
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
                VerbError::Arguments(format!("seconds are 1 to {KEPT_SECONDS}, not {text}"))
            })?
        }
    };
    Ok(Verb::IoStats { seconds, json, windows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::parse;

    #[test]
    fn takes_a_time_and_a_form() {
        let stats = |seconds, json, windows| Ok(Verb::IoStats { seconds, json, windows });
        assert_eq!(parse("iostats"), stats(60, false, false));
        assert_eq!(parse("iostats -s 5 -F json --windows"), stats(5, true, true));
        for wrong in ["iostats -s 0", "iostats -s 61", "iostats -s x", "iostats -F yaml"] {
            assert!(matches!(parse(wrong), Err(VerbError::Arguments(_))), "{wrong}");
        }
        assert!(parse("iostats ks").is_err());
    }
}
