//! Verbs that go through the SSTables of tables one by one: `tools.nodetool.Scrub`, `Verify`, `GarbageCollect`,
//! `Cleanup`, `RelocateSSTables`.

use super::args::Args;
use super::{Verb, VerbError, refused, selection};
use crate::operator::{Scrub, TableName, Verify};

/// What is said where `verify` is not forced.
const VERIFY_DISABLED: &str = "verify is disabled unless a [-f|--force] override flag is provided. See CASSANDRA-9947 and \
     CASSANDRA-17017 for details.";
/// What is said where tokens are to be checked and rows are not.
const TOKENS_OF_ROWS: &str = "Token verification requires --extended-verify";

/// Whether a cell goes where another was written over it, or only where it was deleted.
const GRANULARITIES: [&str; 2] = ["ROW", "CELL"];

/// How many SSTables to work on at a time: `concurrent_compactors` alone says that here, but for what nodetool says of it.
fn jobs(args: &mut Args, default: i64) -> Result<i64, VerbError> {
    let Some(text) = args.value(&["-j", "--jobs"])? else { return Ok(default) };
    let number = text.parse::<i32>().map(i64::from);
    number.map_err(|_| VerbError::Arguments(format!("jobs: can not convert \"{text}\" to a int")))
}

pub(super) fn scrub(args: &mut Args) -> Result<Verb, VerbError> {
    args.not_served(&["-r", "--reinsert-overflowed-ttl"])?;
    let how = Scrub {
        snapshot: !args.flag(&["-ns", "--no-snapshot"]),
        skip_corrupted: args.flag(&["-s", "--skip-corrupted"]),
        validate: !args.flag(&["-n", "--no-validate"]),
    };
    let jobs = jobs(args, 2)?;
    Ok(Verb::Scrub { of: selection(args), how, jobs })
}

pub(super) fn verify(args: &mut Args) -> Result<Verb, VerbError> {
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
        (true, false) => Ok(Verb::Verify { of, how }),
    }
}

pub(super) fn garbage_collect(args: &mut Args) -> Result<Verb, VerbError> {
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
    Ok(Verb::GarbageCollect { of: selection(args), cells, jobs })
}

pub(super) fn cleanup(args: &mut Args) -> Result<Verb, VerbError> {
    let jobs = jobs(args, 2)?;
    Ok(Verb::Cleanup { of: selection(args), jobs })
}

pub(super) fn relocate(args: &mut Args) -> Result<Verb, VerbError> {
    jobs(args, 2)?;
    Ok(Verb::RelocateSSTables(selection(args)))
}

/// The table of `ks table`, and what follows.
fn table<const N: usize>(
    args: &mut Args,
    otherwise: &str,
) -> Result<(TableName, [String; N]), VerbError> {
    let mut words = args.rest();
    if words.len() != N + 2 {
        return refused(otherwise);
    }
    let rest = words.split_off(2);
    let (Ok([keyspace, table]), Ok(rest)) = (<[String; 2]>::try_from(words), rest.try_into())
    else {
        return refused(otherwise);
    };
    Ok((TableName { keyspace, table }, rest))
}

pub(super) fn get_thresholds(args: &mut Args) -> Result<Verb, VerbError> {
    let (of, []) = table(args, "getcompactionthreshold requires ks and cf args")?;
    Ok(Verb::GetCompactionThreshold(of))
}

pub(super) fn set_thresholds(args: &mut Args) -> Result<Verb, VerbError> {
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
        (true, true) => Ok(Verb::SetCompactionThreshold { of, min: least, max: most }),
    }
}

pub(super) fn histograms(args: &mut Args) -> Result<Verb, VerbError> {
    let words = args.rest();
    let name = |keyspace: &str, table: &str| {
        let (keyspace, table) = (keyspace.to_owned(), table.to_owned());
        Ok(Verb::TableHistograms(Some(TableName { keyspace, table })))
    };
    match words.as_slice() {
        [] => Ok(Verb::TableHistograms(None)),
        [keyspace, table] if !keyspace.contains('.') && !table.contains('.') => {
            name(keyspace, table)
        }
        [word] => match word.split('.').collect::<Vec<_>>()[..] {
            [keyspace, table] => name(keyspace, table),
            _ => refused("tablehistograms requires keyspace and table name arguments"),
        },
        _ => refused(
            "tablehistograms requires <keyspace> <table> or <keyspace.table> format argument.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::Selection;
    use crate::verb::parse;

    #[test]
    fn how_to_scrub() {
        let of = Selection { keyspace: Some("ks".into()), tables: vec!["t".into()] };
        let how = Scrub { snapshot: true, skip_corrupted: false, validate: true };
        assert_eq!(parse("scrub ks t"), Ok(Verb::Scrub { of: of.clone(), how, jobs: 2 }));
        let how = Scrub { snapshot: false, skip_corrupted: true, validate: false };
        assert_eq!(parse("scrub -ns -s -n -j 0 ks t"), Ok(Verb::Scrub { of, how, jobs: 0 }));
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
        assert_eq!(parse("verify -f -t -e -c -r"), Ok(Verb::Verify { of, how }));
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
            Ok(Verb::SetCompactionThreshold { min: 2, max: 4, .. })
        ));
    }

    #[test]
    fn histograms_of_one_table_or_of_all() {
        let of = TableName { keyspace: "ks".into(), table: "t".into() };
        for line in ["tablehistograms ks t", "tablehistograms ks.t"] {
            assert_eq!(parse(line), Ok(Verb::TableHistograms(Some(of.clone()))));
        }
        assert_eq!(parse("tablehistograms"), Ok(Verb::TableHistograms(None)));
        assert!(parse("tablehistograms ks").is_err());
        assert!(parse("tablehistograms a.b c").is_err());
    }

    #[test]
    fn rows_or_cells_are_collected() {
        let cells = |line: &str| match parse(line) {
            Ok(Verb::GarbageCollect { cells, .. }) => cells,
            other => panic!("{other:?}"),
        };
        assert!(!cells("garbagecollect"));
        assert!(cells("garbagecollect -g CELL ks"));
        assert_eq!(parse("garbagecollect -g cell").unwrap_err().exit_code(), 1);
    }
}
