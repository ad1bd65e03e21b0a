//! Verbs of snapshots: `tools.nodetool.Snapshot`, `ListSnapshots`, `ClearSnapshot`.

use types::CqlType;

use super::args::Args;
use super::{VerbError, refused};
use crate::model::{Refusal, TableName};
use crate::operator::Snapshots;

/// The shortest time that a snapshot may be told to stay, in seconds.
const MIN_TTL_SECONDS: u64 = 60;
/// Units of durations with seconds in each (`DurationSpec`).
const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

/// Their names, with those that are too short to be of use.
const UNIT_NAMES: [&str; 7] =
    ["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"];
/// The longest name of a file.
const NAME_BYTES_MAX: usize = 255;

/// A verb of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotsVerb {
    /// `snapshot`: takes one.
    Snapshot {
        /// Of what.
        of: Snapshots,
        /// The same as the operator wrote it.
        label: String,
        /// Its name; the time in milliseconds, if there is none.
        name: Option<String>,
        /// With what is in memtables.
        flush: bool,
        /// Seconds until it goes by itself.
        ttl: Option<u64>,
        /// The same as the operator wrote it.
        ttl_text: Option<String>,
    },
    /// `listsnapshots`
    List {
        /// Those that go by themselves too.
        ttl: bool,
        /// Those of repairs too.
        ephemeral: bool,
    },
    /// `clearsnapshot`: removes snapshots.
    Clear {
        /// Of which keyspaces; of all, if empty.
        keyspaces: Vec<String>,
        /// Which; all, if there is none.
        name: Option<String>,
        /// Only those older than so many seconds.
        older_than: Option<u64>,
        /// Only those made before, in milliseconds since the epoch.
        before: Option<i64>,
        /// The same as the operator wrote it.
        before_text: Option<String>,
    },
    /// `statusbackup`: whether links to what is flushed are kept.
    StatusBackup,
    /// `enablebackup`, or `disablebackup`
    SetBackup(bool),
}

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<SnapshotsVerb>, VerbError> {
    Ok(Some(match name {
        "clearsnapshot" => clear(args)?,
        "disablebackup" => SnapshotsVerb::SetBackup(false),
        "enablebackup" => SnapshotsVerb::SetBackup(true),
        "listsnapshots" => list(args),
        "snapshot" => snapshot(args)?,
        "statusbackup" => SnapshotsVerb::StatusBackup,
        _ => return Ok(None),
    }))
}

fn snapshot(args: &mut Args) -> Result<SnapshotsVerb, VerbError> {
    let table = args.value(&["-cf", "--column-family", "--table"])?;
    let name = args.value(&["-t", "--tag"])?;
    let list = args.value(&["-kt", "--kt-list", "-kc", "--kc.list"])?;
    let flush = !args.flag(&["-sf", "--skip-flush"]);
    let ttl_text = args.value(&["--ttl"])?;
    let ttl = ttl_text.as_deref().map(|text| seconds(text, &UNIT_NAMES)).transpose()?;
    let keyspaces = args.rest();
    let list = list.map(|list| list.replace(' ', ""));
    let label = match &list {
        Some(list) => list.clone(),
        None if keyspaces.is_empty() => "all keyspaces".to_owned(),
        None => keyspaces.join(", "),
    };
    let of = match (list, table) {
        (Some(list), None) if keyspaces.is_empty() => tables(&list)?,
        (Some(_), _) => {
            return refused(
                "When specifying the Keyspace table list (using -kt,--kt-list,-kc,--kc.list), you must not also specify \
                 keyspaces to snapshot",
            );
        }
        (None, None) => Snapshots::Keyspaces(keyspaces),
        (None, Some(table)) => match keyspaces.as_slice() {
            [keyspace] => Snapshots::Tables(vec![TableName { keyspace: keyspace.clone(), table }]),
            _ => {
                return refused(
                    "When specifying the table for a snapshot, you must specify one and only one keyspace",
                );
            }
        },
    };
    Ok(SnapshotsVerb::Snapshot { of, label, name, flush, ttl, ttl_text })
}

/// Why a snapshot of this kind is not taken, in the words of Cassandra's node: after what nodetool
/// says first.
pub(crate) fn check(name: &str, ttl: Option<u64>) -> Result<(), Refusal> {
    if name.is_empty() {
        return Err(Refusal::Failed("You must supply a snapshot name.".to_owned()));
    }
    if name.contains(['/', '\0']) {
        return Err(Refusal::Failed("Snapshot name cannot contain /".to_owned()));
    }
    if matches!(name, "." | "..") {
        return Err(Refusal::BadUse(format!("Snapshot name '{name}' is reserved")));
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(Refusal::BadUse(format!(
            "Snapshot name must not be more than {NAME_BYTES_MAX} characters long for resolved snapshot name (got {} \
             characters for \"{name}\")",
            name.chars().count()
        )));
    }
    if ttl.is_some_and(|ttl| ttl < MIN_TTL_SECONDS) {
        let text = format!("ttl for snapshot must be at least {MIN_TTL_SECONDS} seconds");
        return Err(Refusal::BadUse(text));
    }
    Ok(())
}

fn list(args: &mut Args) -> SnapshotsVerb {
    let ttl = !args.flag(&["-nt", "--no-ttl"]);
    SnapshotsVerb::List { ttl, ephemeral: args.flag(&["-e", "--ephemeral"]) }
}

fn clear(args: &mut Args) -> Result<SnapshotsVerb, VerbError> {
    let name = args.value(&["-t"])?;
    let all = args.flag(&["--all"]);
    let older_than = args.value(&["--older-than"])?;
    let before_text = args.value(&["--older-than-timestamp"])?;
    match (&name, all, &older_than, &before_text) {
        (None, false, ..) => return refused("Specify snapshot name or --all"),
        (Some(_), true, ..) => return refused("Specify only one of snapshot name or --all"),
        (_, _, Some(_), Some(_)) => {
            return refused("Specify only one of --older-than or --older-than-timestamp");
        }
        (Some(_), _, Some(_), _) => {
            return refused(
                "Specifying snapshot name together with --older-than flag is not allowed",
            );
        }
        (Some(_), _, _, Some(_)) => {
            return refused(
                "Specifying snapshot name together with --older-than-timestamp flag is not allowed",
            );
        }
        _ => {}
    }
    let Some(before) = before_text.as_deref().map(instant).transpose().ok() else {
        return refused(
            "Parameter --older-than-timestamp has to be a valid instant in ISO format.",
        );
    };
    let older_than = older_than.as_deref();
    let older_than = older_than.map(|text| seconds(text, &UNIT_NAMES[3..])).transpose()?;
    Ok(SnapshotsVerb::Clear { keyspaces: args.rest(), name, older_than, before, before_text })
}

/// `ks.a,ks.b`; where the first has no point, they are keyspaces.
fn tables(list: &str) -> Result<Snapshots, VerbError> {
    let names: Vec<&str> = list.split(',').collect();
    if names.first().is_none_or(|name| !name.contains('.')) {
        return Ok(Snapshots::Keyspaces(names.into_iter().map(str::to_owned).collect()));
    }
    let table = |text: &&str| match text.split('.').collect::<Vec<_>>().as_slice() {
        [keyspace, table] if !keyspace.is_empty() && !table.is_empty() => {
            Ok(TableName { keyspace: (*keyspace).to_owned(), table: (*table).to_owned() })
        }
        _ => refused(
            "Cannot take a snapshot on secondary index or invalid column family name. You must supply a column family \
             name in the form of keyspace.columnfamily",
        ),
    };
    Ok(Snapshots::Tables(names.iter().map(table).collect::<Result<_, _>>()?))
}

/// A duration of at least seconds, in seconds.
fn seconds(text: &str, accepted: &[&str]) -> Result<u64, VerbError> {
    let parsed = UNITS.iter().find_map(|(unit, seconds)| {
        let amount: u64 = text.strip_suffix(unit)?.parse().ok()?;
        amount.checked_mul(*seconds)
    });
    parsed.ok_or_else(|| {
        VerbError::Arguments(format!(
            "Invalid duration: {text} Accepted units:[{}] where case matters and only non-negative values.",
            accepted.join(", ")
        ))
    })
}

/// A moment such as `2022-12-03T10:15:30Z`, in milliseconds since the epoch.
fn instant(text: &str) -> Result<i64, ()> {
    let iso = text.contains('T') && text.ends_with('Z');
    let bytes = CqlType::Timestamp.parse_text(text, 0).ok().filter(|_| iso).ok_or(())?;
    bytes.try_into().map(i64::from_be_bytes).map_err(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb::{self, Verb};

    fn parse(line: &str) -> Result<SnapshotsVerb, VerbError> {
        match verb::parse(line)? {
            Verb::Snapshots(verb) => Ok(verb),
            other => panic!("{other:?}"),
        }
    }

    fn text(line: &str) -> String {
        parse(line).unwrap_err().to_string()
    }

    #[test]
    fn a_snapshot_is_of_keyspaces_or_of_tables() {
        let of = |line: &str| match parse(line).unwrap() {
            SnapshotsVerb::Snapshot { of, .. } => of,
            other => panic!("{other:?}"),
        };
        let table = |keyspace: &str, table: &str| TableName {
            keyspace: keyspace.to_owned(),
            table: table.to_owned(),
        };
        assert_eq!(of("snapshot"), Snapshots::Keyspaces(vec![]));
        assert_eq!(of("snapshot -t x a b"), Snapshots::Keyspaces(vec!["a".into(), "b".into()]));
        assert_eq!(of("snapshot --table t ks"), Snapshots::Tables(vec![table("ks", "t")]));
        let two = vec![table("a", "b"), table("c", "d")];
        assert_eq!(of("snapshot -kt a.b,c.d"), Snapshots::Tables(two));
        assert_eq!(of("snapshot -kt ks"), Snapshots::Keyspaces(vec!["ks".into()]));
        assert!(text("snapshot -kt a.b ks").starts_with("When specifying the Keyspace table list"));
        assert!(text("snapshot --table t").starts_with("When specifying the table"));
        assert!(text("snapshot -kt a.b.c").starts_with("Cannot take a snapshot on"));
    }

    #[test]
    fn names_stay_inside_their_directory() {
        for name in ["", "../x", "a/b", "..", ".", "a\0", &"n".repeat(300)] {
            assert!(check(name, None).is_err(), "{name}");
        }
        for name in ["before-5.0+1_x", "a*b", "...", &"n".repeat(255)] {
            assert_eq!(check(name, None), Ok(()));
        }
    }

    #[test]
    fn a_snapshot_stays_a_minute_at_least() {
        let short = Refusal::BadUse("ttl for snapshot must be at least 60 seconds".to_owned());
        assert_eq!(check("a", Some(59)), Err(short));
        assert_eq!(check("a", Some(60)), Ok(()));
        assert!(matches!(
            parse("snapshot --ttl 2h"),
            Ok(SnapshotsVerb::Snapshot { ttl: Some(7200), .. })
        ));
        assert_eq!(
            text("snapshot --ttl 5x"),
            "Invalid duration: 5x Accepted units:[NANOSECONDS, MICROSECONDS, MILLISECONDS, SECONDS, MINUTES, HOURS, \
             DAYS] where case matters and only non-negative values."
        );
        assert!(parse(&format!("snapshot --ttl {}d", u64::MAX)).is_err());
    }

    #[test]
    fn what_to_clear_must_be_said() {
        assert_eq!(text("clearsnapshot"), "Specify snapshot name or --all");
        assert_eq!(text("clearsnapshot -t a --all"), "Specify only one of snapshot name or --all");
        assert_eq!(
            text("clearsnapshot --all --older-than-timestamp monday"),
            "Parameter --older-than-timestamp has to be a valid instant in ISO format."
        );
        let before = parse("clearsnapshot --all --older-than-timestamp 1970-01-01T00:00:01Z ks");
        assert!(
            matches!(before, Ok(SnapshotsVerb::Clear { before: Some(1000), .. })),
            "{before:?}"
        );
        let older = parse("clearsnapshot --all --older-than 1m");
        assert!(
            matches!(older, Ok(SnapshotsVerb::Clear { older_than: Some(60), .. })),
            "{older:?}"
        );
    }
}
