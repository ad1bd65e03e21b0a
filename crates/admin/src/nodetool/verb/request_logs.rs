//! Verbs of the audit log and of the full query log: `tools.nodetool.EnableAuditLog`,
//! `EnableFullQueryLog` and their kin.

use audit::Changes;

use super::VerbError;
use super::args::Args;

/// A verb of the audit log or of the full query log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestLogsVerb {
    /// `enableauditlog`: turns it on, or changes which requests it has.
    EnableAudit(Box<Changes>),
    /// `disableauditlog`: turns it off.
    DisableAudit,
    /// `getauditlog`: shows its options.
    Audit,
    /// `enablefullquerylog`: turns it on.
    EnableQueries(Box<Changes>),
    /// `disablefullquerylog`: turns it off.
    DisableQueries,
    /// `getfullquerylog`: shows its options.
    Queries,
    /// `resetfullquerylog`: turns it off and removes its files.
    ResetQueries,
}

/// Options that are lists of names, with their titles.
const LISTS: [(&str, &str); 6] = [
    ("--included-keyspaces", "included_keyspaces"),
    ("--excluded-keyspaces", "excluded_keyspaces"),
    ("--included-categories", "included_categories"),
    ("--excluded-categories", "excluded_categories"),
    ("--included-users", "included_users"),
    ("--excluded-users", "excluded_users"),
];

/// The verb of that name, if it is one of these.
pub(super) fn parse(name: &str, args: &mut Args) -> Result<Option<RequestLogsVerb>, VerbError> {
    Ok(Some(match name {
        "enableauditlog" => RequestLogsVerb::EnableAudit(Box::new(audit(args)?)),
        "disableauditlog" => RequestLogsVerb::DisableAudit,
        "getauditlog" => RequestLogsVerb::Audit,
        "enablefullquerylog" => RequestLogsVerb::EnableQueries(Box::new(queries(args)?)),
        "disablefullquerylog" => RequestLogsVerb::DisableQueries,
        "getfullquerylog" => RequestLogsVerb::Queries,
        "resetfullquerylog" => RequestLogsVerb::ResetQueries,
        _ => return Ok(None),
    }))
}

fn audit(args: &mut Args) -> Result<Changes, VerbError> {
    let logger = args.titled(&["--logger"], "logger")?;
    let mut lists = [const { None }; 6];
    for (list, (name, title)) in lists.iter_mut().zip(LISTS) {
        *list = args.titled(&[name], title)?;
    }
    Ok(Changes { logger, lists, ..queue(args)? })
}

fn queries(args: &mut Args) -> Result<Changes, VerbError> {
    let path = args.titled(&["--path"], "path")?;
    Ok(Changes { path, ..queue(args)? })
}

fn queue(args: &mut Args) -> Result<Changes, VerbError> {
    let mut number = |name, title: &str, java, least: i64, most: i64| {
        let Some(text) = args.titled(&[name], title)? else { return Ok(None) };
        let parsed = text.parse().ok().filter(|number| (least..=most).contains(number));
        let wrong =
            || VerbError::Arguments(format!("{title}: can not convert \"{text}\" to a {java}"));
        let number: i64 = parsed.ok_or_else(wrong)?;
        // what nodetool has for none
        Ok::<_, VerbError>(Some(number).filter(|number| *number != least))
    };
    let int = (i64::from(i32::MIN), i64::from(i32::MAX));
    let max_queue_weight = number("--max-queue-weight", "max_queue_weight", "int", int.0, int.1)?;
    let max_log_size = number("--max-log-size", "max_log_size", "long", i64::MIN, i64::MAX)?;
    let max_archive_retries =
        number("--max-archive-retries", "archive_retries", "int", int.0, int.1)?;
    let roll_cycle = args.titled(&["--roll-cycle"], "roll_cycle")?;
    let archive_command = args.titled(&["--archive-command"], "archive_command")?;
    let block = match args.titled(&["--blocking"], "blocking")? {
        None => None,
        Some(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Some(word) if word.eq_ignore_ascii_case("false") => Some(false),
        Some(word) => {
            return Err(VerbError::Arguments(format!(
                "Invalid [{word}]. Blocking only accepts 'true' or 'false'."
            )));
        }
    };
    Ok(Changes {
        archive_command,
        roll_cycle,
        block,
        max_queue_weight,
        max_log_size,
        max_archive_retries,
        ..Changes::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodetool::verb;

    /// As nodetool 5.0.9 took them.
    #[test]
    fn options_are_those_of_nodetool() {
        let line = "enableauditlog --included-keyspaces a,b --excluded-users u --blocking FALSE \
                    --max-queue-weight 77 --roll-cycle daily --logger FileAuditLogger";
        let some = |text: &str| Some(text.to_owned());
        let changes = Changes {
            logger: some("FileAuditLogger"),
            lists: [some("a,b"), None, None, None, None, some("u")],
            roll_cycle: some("daily"),
            block: Some(false),
            max_queue_weight: Some(77),
            ..Changes::default()
        };
        let enable = RequestLogsVerb::EnableAudit(Box::new(changes));
        assert_eq!(verb::parse(line), Ok(enable.into()));
        let changes = Changes { path: some("/p"), max_log_size: Some(5), ..Changes::default() };
        let enable = RequestLogsVerb::EnableQueries(Box::new(changes));
        assert_eq!(verb::parse("enablefullquerylog --path /p --max-log-size 5"), Ok(enable.into()));
        for (line, said) in [
            (
                "enableauditlog --blocking maybe",
                "Invalid [maybe]. Blocking only accepts 'true' or 'false'.",
            ),
            ("enableauditlog extra", "Found unexpected parameters: [extra]"),
            (
                "enablefullquerylog --max-queue-weight x",
                "max_queue_weight: can not convert \"x\" to a int",
            ),
        ] {
            let error = verb::parse(line).unwrap_err();
            assert_eq!((error.exit_code(), error.to_string()), (1, said.to_owned()));
        }
    }
}
