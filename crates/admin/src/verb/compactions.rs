//! Verbs of compaction: `tools.nodetool.Compact`, `Stop`, `SetCompactionThroughput` and their kin.

use super::args::Args;
use super::{Selection, Verb, VerbError, refused, selection};
use crate::operator::{NewImport, StopWhich, TableName};

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

pub(super) fn compact(args: &mut Args) -> Result<Verb, VerbError> {
    args.not_served(&["-st", "--start-token"])?;
    args.not_served(&["-et", "--end-token"])?;
    args.not_served(&["--partition"])?;
    let split = args.flag(&["-s", "--split-output"]);
    if args.flag(&["--user-defined"]) {
        return match split {
            true => Err(VerbError::Failed(
                "Invalid option combination: Can not use split-output here".to_owned(),
            )),
            false => Ok(Verb::CompactFiles(args.rest())),
        };
    }
    Ok(Verb::Compact { of: selection(args), split })
}

pub(super) fn stop(args: &mut Args) -> Result<Verb, VerbError> {
    if let Some(id) = args.value(&["-id", "--compaction-id"])? {
        return Ok(Verb::Stop(StopWhich::Id(id)));
    }
    let Some(name) = args.take() else { return Ok(Verb::Stop(StopWhich::Kind(None))) };
    match KINDS.iter().find(|(known, _)| *known == name) {
        Some((_, shown)) => Ok(Verb::Stop(StopWhich::Kind(Some((*shown).to_owned())))),
        None => refused(format!("compaction_type: can not convert \"{name}\" to a OperationType")),
    }
}

/// `import KEYSPACE TABLE DIRECTORY...`: what concerns caches, tokens of others, repairs and indexes has nothing to do here.
pub(super) fn import(args: &mut Args) -> Result<Verb, VerbError> {
    let keep_level = args.flag(&["-l", "--keep-level"]);
    let quick = args.flag(&["-q", "--quick"]);
    let no_verify = args.flag(&["-v", "--no-verify"]);
    let copy = args.flag(&["-cd", "--copy-data"]);
    for names in [
        ["-r", "--keep-repaired"],
        ["-t", "--no-tokens"],
        ["-c", "--no-invalidate-caches"],
        ["-e", "--extended-verify"],
        ["-ri", "--require-index-components"],
        ["-niv", "--no-index-validation"],
    ] {
        args.flag(&names);
    }
    let mut words = args.rest();
    if words.len() < 3 {
        return refused("import requires keyspace, table name and directories");
    }
    let directories = words.split_off(2);
    let [keyspace, table] = <[String; 2]>::try_from(words).unwrap_or_default();
    let verify = !(quick || no_verify);
    let of = TableName { keyspace, table };
    Ok(Verb::Import { import: NewImport { of, directories, keep_level, copy, verify }, quick })
}

/// `upgradesstables`: how many run at a time is said by `concurrent_compactors` alone.
pub(super) fn upgrade(args: &mut Args) -> Result<Verb, VerbError> {
    args.not_served(&["-t", "--max-timestamp"])?;
    args.value(&["-j", "--jobs"])?;
    let all = args.flag(&["-a", "--include-all-sstables"]);
    Ok(Verb::UpgradeSSTables { of: selection(args), all })
}

/// A whole number that must be there.
pub(super) fn number(args: &mut Args, title: &str) -> Result<i32, VerbError> {
    let Some(text) = args.take() else {
        return refused(format!("Required parameters are missing: {title}"));
    };
    match text.parse() {
        Ok(number) => Ok(number),
        Err(_) => refused(format!("{title}: can not convert \"{text}\" to a Integer")),
    }
}

pub(super) fn set_throughput(args: &mut Args) -> Result<Verb, VerbError> {
    let mebibytes = number(args, "compaction_throughput")?;
    // Cassandra takes a negative rate for none at all.
    Ok(Verb::SetCompactionThroughput { mebibytes: u64::try_from(mebibytes).unwrap_or(0) })
}

pub(super) fn set_concurrent(args: &mut Args) -> Result<Verb, VerbError> {
    match number(args, "concurrent_compactors")? {
        count @ 1.. => Ok(Verb::SetConcurrentCompactors(count.unsigned_abs().into())),
        _ => refused("concurrent_compactors should be great than 0."),
    }
}

pub(super) fn status_auto(args: &mut Args) -> Verb {
    let all = args.flag(&["-a", "--all"]);
    Verb::StatusAutoCompaction { of: selection(args), all }
}

pub(super) fn set_auto(args: &mut Args, enabled: bool) -> Verb {
    Verb::SetAutoCompaction { of: selection(args), enabled }
}

/// `ks` and `ks.table`.
pub(super) fn data_paths(args: &mut Args) -> Result<Verb, VerbError> {
    args.not_served(&["-F", "--format"])?;
    let name = |word: String| match word.split_once('.') {
        Some((keyspace, table)) => {
            Selection { keyspace: Some(keyspace.to_owned()), tables: vec![table.to_owned()] }
        }
        None => Selection { keyspace: Some(word), tables: Vec::new() },
    };
    Ok(Verb::DataPaths(args.rest().into_iter().map(name).collect()))
}

pub(super) fn sstables(args: &mut Args) -> Result<Verb, VerbError> {
    let hex = args.flag(&["-hf", "--hex-format"]);
    let levels = args.flag(&["-l", "--show-levels"]);
    match <[String; 3]>::try_from(args.rest()) {
        Ok([keyspace, table, key]) => {
            Ok(Verb::SSTables { of: TableName { keyspace, table }, key, hex, levels })
        }
        Err(_) => refused("getsstables requires ks, cf and key args"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::parse;

    #[test]
    fn what_to_compact() {
        let of = Selection { keyspace: Some("ks".into()), tables: vec!["t".into()] };
        assert_eq!(parse("compact -s ks t"), Ok(Verb::Compact { of, split: true }));
        let files = vec!["a-Data.db".to_owned(), "b-Data.db".to_owned()];
        assert_eq!(
            parse("compact --user-defined a-Data.db b-Data.db"),
            Ok(Verb::CompactFiles(files))
        );
        let refused = parse("compact -s --user-defined a").unwrap_err();
        assert_eq!(refused.exit_code(), 2);
    }

    #[test]
    fn what_to_stop() {
        assert_eq!(parse("stop"), Ok(Verb::Stop(StopWhich::Kind(None))));
        let kind = StopWhich::Kind(Some("Compaction".to_owned()));
        assert_eq!(parse("stop COMPACTION"), Ok(Verb::Stop(kind)));
        assert_eq!(parse("stop -id x"), Ok(Verb::Stop(StopWhich::Id("x".into()))));
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
        assert_eq!(parse("setconcurrentcompactors 3"), Ok(Verb::SetConcurrentCompactors(3)));
        assert_eq!(text("getsstables ks t"), "getsstables requires ks, cf and key args");
    }
}
