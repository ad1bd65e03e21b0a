//! Verbs of compaction: `tools.nodetool.Compact`, `Stop`, `SetCompactionThroughput` and their kin.

use super::args::Args;
use super::network::NEGATIVE_RATE;
use super::{Selection, StatsFormat, VerbError, number, refused, selection, stats_format, table};
use crate::model::{TableName, Thresholds};
use crate::operator::StopWhich;

/// Kinds of compactions as the operator writes them and as they are shown (`OperationType`).
const KINDS: &[(&str, &str)] = &[
    ("ANTICOMPACTION", "Anticompaction after repair"),
    ("CLEANUP", "Cleanup"),
    ("COMPACTION", "Compaction"),
    ("GARBAGE_COLLECT", "Remove deleted data"),
    ("INDEX_BUILD", "Secondary index build"),
    ("INDEX_SUMMARY", "Index summary redistribution"),
    ("MAJOR_COMPACTION", "Major compaction"),
    ("RELOCATE", "Relocate sstables to correct disk"),
    ("SCRUB", "Scrub"),
    ("TOMBSTONE_COMPACTION", "Tombstone Compaction"),
    ("UPGRADE_SSTABLES", "Upgrade sstables"),
    ("VALIDATION", "Validation"),
    ("VERIFY", "Verify"),
    ("VIEW_BUILD", "View build"),
];

/// A verb of compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionVerb {
    /// `compact`: merges the SSTables of tables into few.
    Compact {
        /// Which.
        of: Selection,
        /// Several files where the strategy would make one.
        split: bool,
    },
    /// `compact --user-defined`: merges the SSTables of these data files.
    CompactFiles(Vec<String>),
    /// `compactionhistory`: the compactions of the last week.
    History {
        /// Of `-F`.
        format: Option<StatsFormat>,
    },
    /// `compactionstats`: what compaction did and does.
    Stats {
        /// Sizes with units.
        human_readable: bool,
        /// Columns as in `system_views.sstable_tasks`.
        vtable: bool,
    },
    /// `stop`: stops compactions under way.
    Stop(StopWhich),
    /// `getcompactionthreshold`: how few and how many SSTables of a table are compacted at once.
    GetThreshold(TableName),
    /// `setcompactionthreshold`: sets that until the next start.
    SetThreshold {
        /// Of which table.
        of: TableName,
        /// How few, and how many.
        thresholds: Thresholds,
    },
    /// `getcompactionthroughput`: how fast compactions may write.
    GetThroughput {
        /// As a number with a fraction.
        precise: bool,
    },
    /// `setcompactionthroughput`: sets that until the next start.
    SetThroughput {
        /// A second; 0 is no limit.
        mebibytes: u64,
    },
    /// `getconcurrentcompactors`: how many compactions may run at a time.
    GetConcurrent,
    /// `setconcurrentcompactors`: sets that until the next start.
    SetConcurrent(u64),
    /// `statusautocompaction`: whether tables are compacted by themselves.
    StatusAuto {
        /// Which.
        of: Selection,
        /// Each on a line.
        all: bool,
    },
    /// `enableautocompaction`, or `disableautocompaction`
    SetAuto {
        /// Which.
        of: Selection,
        /// Whether.
        enabled: bool,
    },
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<CompactionVerb>, VerbError> {
    Ok(Some(match name {
        "compact" => compact(args)?,
        "compactionhistory" => {
            let format = stats_format(args, "arguments for -F are json,yaml only.")?;
            CompactionVerb::History { format }
        }
        "compactionstats" => CompactionVerb::Stats {
            human_readable: args.flag(&["-H", "--human-readable"]),
            vtable: args.flag(&["-V", "--vtable"]),
        },
        "disableautocompaction" => set_auto(args, false),
        "enableautocompaction" => set_auto(args, true),
        "getcompactionthreshold" => get_thresholds(args)?,
        "getcompactionthroughput" => {
            CompactionVerb::GetThroughput { precise: args.flag(&["-d", "--precise-mib"]) }
        }
        "getconcurrentcompactors" => CompactionVerb::GetConcurrent,
        "setcompactionthreshold" => set_thresholds(args)?,
        "setcompactionthroughput" => set_throughput(args)?,
        "setconcurrentcompactors" => set_concurrent(args)?,
        "statusautocompaction" => status_auto(args),
        "stop" => stop(args)?,
        _ => return Ok(None),
    }))
}

fn compact(args: &mut Args) -> Result<CompactionVerb, VerbError> {
    args.not_served(&["-st", "--start-token"])?;
    args.not_served(&["-et", "--end-token"])?;
    args.not_served(&["--partition"])?;
    let split = args.flag(&["-s", "--split-output"]);
    if args.flag(&["--user-defined"]) {
        return match split {
            true => Err(VerbError::Failed(
                "Invalid option combination: Can not use split-output here".to_owned(),
            )),
            false => Ok(CompactionVerb::CompactFiles(args.rest())),
        };
    }
    Ok(CompactionVerb::Compact { of: selection(args), split })
}

fn stop(args: &mut Args) -> Result<CompactionVerb, VerbError> {
    if let Some(id) = args.value(&["-id", "--compaction-id"])? {
        return Ok(CompactionVerb::Stop(StopWhich::Id(id)));
    }
    let Some(name) = args.take() else { return Ok(CompactionVerb::Stop(StopWhich::Kind(None))) };
    match KINDS.iter().find(|(known, _)| *known == name) {
        Some((_, shown)) => Ok(CompactionVerb::Stop(StopWhich::Kind(Some((*shown).to_owned())))),
        None => refused(format!("compaction_type: can not convert \"{name}\" to a OperationType")),
    }
}

fn set_throughput(args: &mut Args) -> Result<CompactionVerb, VerbError> {
    let mebibytes = number(args, "compaction_throughput")?;
    match u64::try_from(mebibytes) {
        Ok(mebibytes) => Ok(CompactionVerb::SetThroughput { mebibytes }),
        Err(_) => refused(NEGATIVE_RATE),
    }
}

fn set_concurrent(args: &mut Args) -> Result<CompactionVerb, VerbError> {
    match number(args, "concurrent_compactors")? {
        count @ 1.. => Ok(CompactionVerb::SetConcurrent(count.unsigned_abs().into())),
        _ => refused("concurrent_compactors should be great than 0."),
    }
}

fn status_auto(args: &mut Args) -> CompactionVerb {
    let all = args.flag(&["-a", "--all"]);
    CompactionVerb::StatusAuto { of: selection(args), all }
}

fn set_auto(args: &mut Args, enabled: bool) -> CompactionVerb {
    CompactionVerb::SetAuto { of: selection(args), enabled }
}

fn get_thresholds(args: &mut Args) -> Result<CompactionVerb, VerbError> {
    let (of, []) = table(args, "getcompactionthreshold requires ks and cf args")?;
    Ok(CompactionVerb::GetThreshold(of))
}

fn set_thresholds(args: &mut Args) -> Result<CompactionVerb, VerbError> {
    let otherwise = "setcompactionthreshold requires ks, cf, min, and max threshold args.";
    let (of, [min, max]) = table(args, otherwise)?;
    let number = |text: &str| match text.parse::<i32>() {
        Ok(number) => Ok(number),
        Err(_) => refused(format!("For input string: \"{text}\"")),
    };
    let (min, max) = (number(&min)?, number(&max)?);
    let (Ok(least), Ok(most)) = (u32::try_from(min), u32::try_from(max)) else {
        return refused("Thresholds must be positive integers");
    };
    match (least <= most, least >= 2 || most == 0) {
        (false, _) => refused("Min threshold cannot be greater than max."),
        (true, false) => refused("Min threshold must be at least 2"),
        (true, true) => Ok(CompactionVerb::SetThreshold {
            of,
            thresholds: Thresholds { min: least, max: most },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<CompactionVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Compaction(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_to_compact() {
        let of = Selection { keyspace: Some("ks".into()), tables: vec!["t".into()] };
        assert_eq!(parse("compact -s ks t"), Ok(CompactionVerb::Compact { of, split: true }));
        let files = vec!["a-Data.db".to_owned(), "b-Data.db".to_owned()];
        assert_eq!(
            parse("compact --user-defined a-Data.db b-Data.db"),
            Ok(CompactionVerb::CompactFiles(files))
        );
        let refused = parse("compact -s --user-defined a").unwrap_err();
        assert_eq!(refused.exit_code(), 2);
    }

    #[test]
    fn what_to_stop() {
        assert_eq!(parse("stop"), Ok(CompactionVerb::Stop(StopWhich::Kind(None))));
        let kind = StopWhich::Kind(Some("Compaction".to_owned()));
        assert_eq!(parse("stop COMPACTION"), Ok(CompactionVerb::Stop(kind)));
        assert_eq!(parse("stop -id x"), Ok(CompactionVerb::Stop(StopWhich::Id("x".into()))));
        assert!(parse("stop NOTHING").is_err());
    }

    #[test]
    fn numbers_must_be_some() {
        let text = |line: &str| parse(line).unwrap_err().to_string();
        assert_eq!(
            text("setcompactionthroughput"),
            "Required parameters are missing: compaction_throughput"
        );
        assert_eq!(
            text("setcompactionthroughput x"),
            "compaction_throughput: can not convert \"x\" to a Integer"
        );
        assert_eq!(
            text("setconcurrentcompactors 0"),
            "concurrent_compactors should be great than 0."
        );
        assert_eq!(parse("setconcurrentcompactors 3"), Ok(CompactionVerb::SetConcurrent(3)));
    }

    #[test]
    fn thresholds_must_make_sense() {
        let text = |line: &str| parse(line).unwrap_err().to_string();
        let requires = "setcompactionthreshold requires ks, cf, min, and max threshold args.";
        assert_eq!(text("setcompactionthreshold ks t 4"), requires);
        assert_eq!(text("setcompactionthreshold ks t x 4"), "For input string: \"x\"");
        assert_eq!(
            text("setcompactionthreshold ks t -- -1 4"),
            "Thresholds must be positive integers"
        );
        assert_eq!(
            text("setcompactionthreshold ks t 5 4"),
            "Min threshold cannot be greater than max."
        );
        assert_eq!(text("setcompactionthreshold ks t 1 4"), "Min threshold must be at least 2");
        assert_eq!(
            text("getcompactionthreshold ks"),
            "getcompactionthreshold requires ks and cf args"
        );
        assert!(matches!(
            parse("setcompactionthreshold ks t 2 4"),
            Ok(CompactionVerb::SetThreshold { thresholds: Thresholds { min: 2, max: 4 }, .. })
        ));
    }
}
