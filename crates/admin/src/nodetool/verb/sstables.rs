//! Verbs that go through the SSTables of tables one by one: `tools.nodetool.Scrub`, `Verify`,
//! `GarbageCollect`, `Cleanup`, `RelocateSSTables`.

use super::args::Args;
use super::{Selection, VerbError, refused, selection};
use crate::model::TableName;
use crate::operator::{NewImport, Scrub, Verify};

/// What is said where `verify` is not forced.
const VERIFY_DISABLED: &str = "verify is disabled unless a [-f|--force] override flag is provided. See CASSANDRA-9947 and \
     CASSANDRA-17017 for details.";
/// What is said where tokens are to be checked and rows are not.
const TOKENS_OF_ROWS: &str = "Token verification requires --extended-verify";

/// Whether a cell goes where another was written over it, or only where it was deleted.
const GRANULARITIES: [&str; 2] = ["ROW", "CELL"];

/// A verb that goes through SSTables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SSTablesVerb {
    /// `flush`: writes memtables to disk.
    Flush(Selection),
    /// `upgradesstables`: rewrites SSTables in the version that the node writes.
    Upgrade {
        /// Of which tables.
        of: Selection,
        /// Those that are of that version too.
        all: bool,
    },
    /// `scrub`: rewrites SSTables without what cannot be read.
    Scrub {
        /// Of which tables.
        of: Selection,
        /// How.
        how: Scrub,
        /// How many SSTables at a time.
        jobs: i64,
    },
    /// `verify`: looks for damage in SSTables.
    Verify {
        /// Of which tables.
        of: Selection,
        /// How.
        how: Verify,
    },
    /// `garbagecollect`: drops what is deleted or written over elsewhere.
    GarbageCollect {
        /// Of which tables.
        of: Selection,
        /// Single cells too.
        cells: bool,
        /// How many SSTables at a time.
        jobs: i64,
    },
    /// `cleanup`: drops what other nodes own.
    Cleanup {
        /// Of which tables.
        of: Selection,
        /// How many SSTables at a time.
        jobs: i64,
    },
    /// `relocatesstables`: puts SSTables into the directories where they belong.
    Relocate(Selection),
    /// `import`: takes over SSTables from directories.
    Import {
        /// Which, whereto and how.
        import: NewImport,
        /// Say that nothing is verified.
        quick: bool,
    },
    /// `refresh`: takes over what was put into the directories of a table: keyspace and table.
    Refresh(Vec<String>),
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<SSTablesVerb>, VerbError> {
    Ok(Some(match name {
        "cleanup" => cleanup(args)?,
        "flush" => SSTablesVerb::Flush(selection(args)),
        "garbagecollect" => garbage_collect(args)?,
        "import" => import(args)?,
        "refresh" => SSTablesVerb::Refresh(args.rest()),
        "relocatesstables" => relocate(args)?,
        "scrub" => scrub(args)?,
        "upgradesstables" => upgrade(args)?,
        "verify" => verify(args)?,
        _ => return Ok(None),
    }))
}

/// How many SSTables to work on at a time: `concurrent_compactors` alone says that here, but for
/// what nodetool says of it.
fn jobs(args: &mut Args, default: i64) -> Result<i64, VerbError> {
    let Some(text) = args.value(&["-j", "--jobs"])? else { return Ok(default) };
    let number = text.parse::<i32>().map(i64::from);
    number.map_err(|_| VerbError::Arguments(format!("jobs: can not convert \"{text}\" to a int")))
}

fn scrub(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
    args.not_served(&["-r", "--reinsert-overflowed-ttl"])?;
    let how = Scrub {
        snapshot: !args.flag(&["-ns", "--no-snapshot"]),
        skip_corrupted: args.flag(&["-s", "--skip-corrupted"]),
        validate: !args.flag(&["-n", "--no-validate"]),
    };
    let jobs = jobs(args, 2)?;
    Ok(SSTablesVerb::Scrub { of: selection(args), how, jobs })
}

fn verify(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
    args.not_served(&["-d", "--dfp"])?;
    let forced = args.flag(&["-f", "--force"]);
    let how = Verify {
        extended: args.flag(&["-e", "--extended-verify"]),
        check_version: args.flag(&["-c", "--check-version"]),
        mutate_repaired: args.flag(&["-r", "--rsc"]),
        quick: args.flag(&["-q", "--quick"]),
        check_tokens: args.flag(&["-t", "--check-tokens"]),
    };
    let of = selection(args);
    match (forced, how.check_tokens && !how.extended) {
        (false, _) => Err(VerbError::Said(VERIFY_DISABLED)),
        (true, true) => Err(VerbError::Said(TOKENS_OF_ROWS)),
        (true, false) => Ok(SSTablesVerb::Verify { of, how }),
    }
}

fn garbage_collect(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
    let granularity = args.value(&["-g", "--granularity"])?;
    let granularity = granularity.as_deref().unwrap_or("ROW");
    if !GRANULARITIES.contains(&granularity) {
        return Err(VerbError::Arguments(format!(
            "Value for option 'granularity' was given as '{granularity}' which is not in the list of allowed values: \
             [{}]",
            GRANULARITIES.join(", ")
        )));
    }
    let cells = granularity == "CELL";
    let jobs = jobs(args, 1)?;
    Ok(SSTablesVerb::GarbageCollect { of: selection(args), cells, jobs })
}

fn cleanup(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
    let jobs = jobs(args, 2)?;
    Ok(SSTablesVerb::Cleanup { of: selection(args), jobs })
}

fn relocate(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
    jobs(args, 2)?;
    Ok(SSTablesVerb::Relocate(selection(args)))
}

/// `import KEYSPACE TABLE DIRECTORY...`: what concerns caches, tokens of others, repairs and
/// indexes has nothing to do here.
fn import(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
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
    Ok(SSTablesVerb::Import {
        import: NewImport { of, directories, keep_level, copy, verify },
        quick,
    })
}

/// `upgradesstables`: how many run at a time is said by `concurrent_compactors` alone.
fn upgrade(args: &mut Args) -> Result<SSTablesVerb, VerbError> {
    args.not_served(&["-t", "--max-timestamp"])?;
    args.value(&["-j", "--jobs"])?;
    let all = args.flag(&["-a", "--include-all-sstables"]);
    Ok(SSTablesVerb::Upgrade { of: selection(args), all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<SSTablesVerb, VerbError> {
        match verb::parse(line)? {
            Verb::SSTables(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn how_to_scrub() {
        let of = Selection { keyspace: Some("ks".into()), tables: vec!["t".into()] };
        let how = Scrub { snapshot: true, skip_corrupted: false, validate: true };
        assert_eq!(parse("scrub ks t"), Ok(SSTablesVerb::Scrub { of: of.clone(), how, jobs: 2 }));
        let how = Scrub { snapshot: false, skip_corrupted: true, validate: false };
        assert_eq!(
            parse("scrub -ns -s -n -j 0 ks t"),
            Ok(SSTablesVerb::Scrub { of, how, jobs: 0 })
        );
        let refused = parse("scrub -j x").unwrap_err();
        assert_eq!(refused.to_string(), "jobs: can not convert \"x\" to a int");
    }

    #[test]
    fn verify_must_be_forced() {
        let refused = parse("verify ks").unwrap_err();
        assert_eq!((refused.exit_code(), refused.text()), (1, format!("{VERIFY_DISABLED}\n")));
        let refused = parse("verify -f -t").unwrap_err();
        assert_eq!((refused.exit_code(), refused.text()), (1, format!("{TOKENS_OF_ROWS}\n")));
        let how = Verify {
            extended: true,
            check_version: true,
            mutate_repaired: true,
            quick: false,
            check_tokens: true,
        };
        let of = Selection::default();
        assert_eq!(parse("verify -f -t -e -c -r"), Ok(SSTablesVerb::Verify { of, how }));
    }

    #[test]
    fn rows_or_cells_are_collected() {
        let cells = |line: &str| match parse(line) {
            Ok(SSTablesVerb::GarbageCollect { cells, .. }) => cells,
            other => panic!("{other:?}"),
        };
        assert!(!cells("garbagecollect"));
        assert!(cells("garbagecollect -g CELL ks"));
        assert_eq!(parse("garbagecollect -g cell").unwrap_err().exit_code(), 1);
    }
}
