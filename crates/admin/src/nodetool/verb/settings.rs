//! Verbs of settings: `tools.nodetool.GetTimeout`, `SetTraceProbability`, `GuardrailsConfigCommand`
//! and their kin.

use super::args::Args;
use super::{VerbError, number};
use crate::model::Timeout;
use crate::nodetool::guardrails::{Category, GuardrailFilter};

/// What is said where more than one guardrail is asked for.
const ONE_GUARDRAIL: &str = "Specify only one guardrail name to get the configuration of or no name to get the configuration of all of them.";
/// What is said where a guardrail is asked for by its category and by its name.
const NO_GUARDRAIL: &str = "Do not specify additional arguments when --category/-c is set.";

/// A verb of settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsVerb {
    /// `gettimeout`: says how long a timeout is.
    GetTimeout(Timeout),
    /// `settimeout`: sets a timeout until the next start.
    SetTimeout {
        /// Which.
        timeout: Timeout,
        /// Milliseconds.
        millis: u64,
    },
    /// `getguardrailsconfig`: shows guardrails as they stand.
    GetGuardrails(GuardrailFilter),
    /// `setguardrailsconfig`: sets a guardrail until the next start: its name and its values.
    SetGuardrails(Vec<String>),
    /// `getlogginglevels`: says which loggers have a level of their own.
    GetLoggingLevels,
    /// `setlogginglevel`: sets the level of a component or class until the next start; with neither
    /// all are as configured again.
    SetLoggingLevel {
        /// A component, or the name of a logger; empty for all.
        target: String,
        /// A level; empty for none of its own.
        level: String,
    },
    /// `getcolumnindexsize`: says how long the pages of an index of rows are.
    GetColumnIndexSize,
    /// `getdefaultrf`: says how many replicas a keyspace has by default.
    GetDefaultReplication,
    /// `setdefaultrf`: sets that until the next start.
    SetDefaultReplication(i32),
    /// `replaybatchlog`: writes the batches that are kept for too long.
    ReplayBatches,
    /// `getsnapshotthrottle`: says that snapshots have no limit.
    GetSnapshotThrottle,
    /// `gettraceprobability`: says which share of requests is traced.
    GetTraceProbability,
    /// `settraceprobability`: traces a share of all requests until the next start.
    SetTraceProbability(Share),
}

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share(pub f64);

// it is a number
impl Eq for Share {}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<SettingsVerb>, VerbError> {
    Ok(Some(match name {
        "getcolumnindexsize" => SettingsVerb::GetColumnIndexSize,
        "getdefaultrf" => SettingsVerb::GetDefaultReplication,
        "getsnapshotthrottle" => SettingsVerb::GetSnapshotThrottle,
        "getguardrailsconfig" => SettingsVerb::GetGuardrails(guardrails(args)?),
        "getlogginglevels" => SettingsVerb::GetLoggingLevels,
        "setlogginglevel" => set_logging_level(args.rest()),
        "gettimeout" => SettingsVerb::GetTimeout(get_timeout(&args.rest())?),
        "gettraceprobability" => SettingsVerb::GetTraceProbability,
        "replaybatchlog" => SettingsVerb::ReplayBatches,
        "setdefaultrf" => SettingsVerb::SetDefaultReplication(number(args, "default_rf")?),
        "setguardrailsconfig" => SettingsVerb::SetGuardrails(args.rest()),
        "settimeout" => set_timeout(&args.rest())?,
        "settraceprobability" => SettingsVerb::SetTraceProbability(share(args)?),
        _ => return Ok(None),
    }))
}

fn guardrails(args: &mut Args) -> Result<GuardrailFilter, VerbError> {
    let expand = args.flag(&["--expand"]);
    let category = match args.value(&["-c", "--category"])? {
        None => None,
        Some(name) => Some(Category::of(&name).ok_or(VerbError::UnknownCategory(name))?),
    };
    let mut names = args.rest();
    if names.len() > 1 {
        return Err(VerbError::Arguments(ONE_GUARDRAIL.to_owned()));
    }
    let name = names.pop();
    if name.is_some() && category.is_some() {
        return Err(VerbError::Arguments(NO_GUARDRAIL.to_owned()));
    }
    Ok(GuardrailFilter { category, expand, name })
}

/// With more than two arguments Cassandra takes the first and no level.
fn set_logging_level(args: Vec<String>) -> SettingsVerb {
    let has_level = args.len() == 2;
    let mut args = args.into_iter();
    let target = args.next().unwrap_or_default();
    let level = args.next().filter(|_| has_level).unwrap_or_default();
    SettingsVerb::SetLoggingLevel { target, level }
}

fn share(args: &mut Args) -> Result<Share, VerbError> {
    let refused = |text: &str| Err(VerbError::Arguments(text.to_owned()));
    let Some(text) = args.take() else {
        return refused("Required parameters are missing: trace_probability");
    };
    let Ok(value) = text.parse::<f64>() else {
        return refused(&format!("trace_probability: can not convert \"{text}\" to a Double"));
    };
    match (0.0..=1.0).contains(&value) {
        true => Ok(Share(value)),
        false => refused("Trace probability must be between 0 and 1"),
    }
}

fn get_timeout(args: &[String]) -> Result<Timeout, VerbError> {
    match args {
        [name] => Ok(name.parse()?),
        _ => Err(VerbError::Arguments(format!(
            "gettimeout requires a timeout type, one of ({})",
            Timeout::NAMES
        ))),
    }
}

fn set_timeout(args: &[String]) -> Result<SettingsVerb, VerbError> {
    if args.is_empty() {
        return Err(VerbError::Arguments("Required parameters are missing: args".to_owned()));
    }
    let [name, millis] = args else {
        return Err(VerbError::Arguments(format!(
            "Timeout type followed by value in ms (0 disables socket streaming timeout). Type \
             should be one of ({})",
            Timeout::NAMES
        )));
    };
    // Cassandra looks at the number first.
    let millis: i64 = millis
        .parse()
        .map_err(|_| VerbError::Arguments(format!("For input string: \"{millis}\"")))?;
    let millis = u64::try_from(millis)
        .map_err(|_| VerbError::Arguments("timeout must be non-negative".to_owned()))?;
    let timeout = name.parse()?;
    Ok(SettingsVerb::SetTimeout { timeout, millis })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<SettingsVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Settings(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    /// What the line prints, with its exit code.
    fn refused(line: &str) -> (u8, String) {
        let e = parse(line).unwrap_err();
        (e.exit_code(), e.text())
    }

    /// As nodetool 5.0.9 answered.
    #[test]
    fn reads_what_guardrails_to_show() {
        assert_eq!(
            parse("getguardrailsconfig"),
            Ok(SettingsVerb::GetGuardrails(GuardrailFilter::default()))
        );
        let category = Some(Category::Flags);
        let shown = GuardrailFilter { category, expand: true, name: None };
        assert_eq!(
            parse("getguardrailsconfig --expand -c flags"),
            Ok(SettingsVerb::GetGuardrails(shown))
        );
        assert!(refused("getguardrailsconfig a b").1.contains("Specify only one guardrail name"));
        let both = refused("getguardrailsconfig -c flags group_by_enabled").1;
        assert!(both.contains("Do not specify additional arguments"), "{both}");
        let unknown = "\nError: Illegal value for -c/--category used: 'bogus'. Supported values are values,thresholds,flags,others.\n";
        assert_eq!(refused("getguardrailsconfig -c bogus"), (1, unknown.to_owned()));
    }
}
