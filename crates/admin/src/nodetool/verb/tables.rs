//! Verbs of keyspaces and tables: `tools.nodetool.TableStats`, `TableHistograms`, `DataPaths`,
//! `GetSSTables`.

use super::args::Args;
use super::{Selection, StatsFormat, VerbError, refused, stats_format};
use crate::model::TableName;
use crate::nodetool::sorted;

/// A verb of keyspaces and tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TablesVerb {
    /// `tablestats`: counters of tables.
    Stats {
        /// Which.
        filter: TableFilter,
        /// Sizes with units.
        human_readable: bool,
        /// By which figure they are sorted, and of how many that have the most of it; 0: of all.
        sort: Option<(String, u32)>,
        /// Of `-F`.
        format: Option<StatsFormat>,
    },
    /// `tablehistograms`: percentiles of a table, or of all.
    Histograms(Option<TableName>),
    /// `datapaths`: the directories of tables' files.
    DataPaths {
        /// Of which; of all tables, if empty.
        of: Vec<Selection>,
        /// Of `-F`.
        format: Option<StatsFormat>,
    },
    /// `getsstables`: the data files that may hold a partition.
    DataFiles {
        /// Of which table.
        of: TableName,
        /// The partition's key.
        key: String,
        /// Is the key in hexadecimal digits?
        hex: bool,
        /// With their levels.
        levels: bool,
    },
    /// `refreshsizeestimates`: estimates the sizes of all tables.
    RefreshSizeEstimates,
}

/// Tables to show, or not to show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFilter {
    /// `keyspace` or `keyspace.table`.
    pub names: Vec<String>,
    /// Show those not named.
    pub ignore: bool,
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<TablesVerb>, VerbError> {
    Ok(Some(match name {
        "datapaths" => data_paths(args)?,
        "getsstables" => data_files(args)?,
        "refreshsizeestimates" => TablesVerb::RefreshSizeEstimates,
        "tablehistograms" => histograms(args)?,
        "tablestats" => stats(args)?,
        _ => return Ok(None),
    }))
}

fn stats(args: &mut Args) -> Result<TablesVerb, VerbError> {
    let format = stats_format(args, "arguments for -F are json,yaml only.")?;
    args.not_served(&["-l", "--sstable-location-check"])?;
    let ignore = args.flag(&["-i"]);
    let human_readable = args.flag(&["-H", "--human-readable"]);
    let sort = sort(args)?;
    let filter = TableFilter { names: args.rest(), ignore };
    Ok(TablesVerb::Stats { filter, human_readable, sort, format })
}

fn sort(args: &mut Args) -> Result<Option<(String, u32)>, VerbError> {
    let key = args.titled(&["-s", "--sort"], "sort_key")?.filter(|key| !key.is_empty());
    let top = match args.titled(&["-t", "--top"], "top")? {
        None => 0,
        Some(text) => match text.parse::<i32>() {
            Ok(top) => top,
            Err(_) => return refused(format!("top: can not convert \"{text}\" to a int")),
        },
    };
    match (key, top) {
        (Some(key), _) if !sorted::is_key(&key) => refused(sorted::wanted()),
        (None, 1..) => refused("cannot filter top K tables without specifying a sort key."),
        (_, top) if top < 0 => refused("argument for top must be a positive integer."),
        (key, _) => Ok(key.map(|key| (key, top.unsigned_abs()))),
    }
}

/// `ks` and `ks.table`.
fn data_paths(args: &mut Args) -> Result<TablesVerb, VerbError> {
    let format = stats_format(args, "arguments for -F are yaml and json only.")?;
    let name = |word: String| match word.split_once('.') {
        Some((keyspace, table)) => {
            Selection { keyspace: Some(keyspace.to_owned()), tables: vec![table.to_owned()] }
        }
        None => Selection { keyspace: Some(word), tables: Vec::new() },
    };
    Ok(TablesVerb::DataPaths { of: args.rest().into_iter().map(name).collect(), format })
}

fn data_files(args: &mut Args) -> Result<TablesVerb, VerbError> {
    let hex = args.flag(&["-hf", "--hex-format"]);
    let levels = args.flag(&["-l", "--show-levels"]);
    match <[String; 3]>::try_from(args.rest()) {
        Ok([keyspace, table, key]) => {
            Ok(TablesVerb::DataFiles { of: TableName { keyspace, table }, key, hex, levels })
        }
        Err(_) => refused("getsstables requires ks, cf and key args"),
    }
}

fn histograms(args: &mut Args) -> Result<TablesVerb, VerbError> {
    let words = args.rest();
    let name = |keyspace: &str, table: &str| {
        let (keyspace, table) = (keyspace.to_owned(), table.to_owned());
        Ok(TablesVerb::Histograms(Some(TableName { keyspace, table })))
    };
    match words.as_slice() {
        [] => Ok(TablesVerb::Histograms(None)),
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
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<TablesVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Tables(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn tables_are_sorted_by_what_they_have() {
        let refused = |line: &str| parse(line).unwrap_err().to_string();
        let of = |line: &str| match parse(line) {
            Ok(TablesVerb::Stats { sort, .. }) => sort,
            other => panic!("{other:?}"),
        };
        assert_eq!(of("tablestats -s writes -t 3 ks"), Some(("writes".to_owned(), 3)));
        assert_eq!(of("tablestats ks"), None);
        assert!(refused("tablestats -s weather").starts_with("argument for sort must be one of: "));
        let none = "cannot filter top K tables without specifying a sort key.";
        assert_eq!(refused("tablestats -t 3"), none);
        let negative = "argument for top must be a positive integer.";
        assert_eq!(refused("tablestats -s writes -t -1"), negative);
    }

    #[test]
    fn data_files_are_of_a_partition() {
        let refused = parse("getsstables ks t").unwrap_err();
        assert_eq!(refused.to_string(), "getsstables requires ks, cf and key args");
    }

    #[test]
    fn histograms_of_one_table_or_of_all() {
        let of = TableName { keyspace: "ks".into(), table: "t".into() };
        for line in ["tablehistograms ks t", "tablehistograms ks.t"] {
            assert_eq!(parse(line), Ok(TablesVerb::Histograms(Some(of.clone()))));
        }
        assert_eq!(parse("tablehistograms"), Ok(TablesVerb::Histograms(None)));
        assert!(parse("tablehistograms ks").is_err());
        assert!(parse("tablehistograms a.b c").is_err());
    }
}
