//! Options of both logs, as `cassandra.yaml` and nodetool have them, with Cassandra's refusals
//! (`AuditLogOptions`, `BinLogOptions`, `BinLog.Builder`).

use crate::filter::Filter;
use crate::kind::Category;
use crate::roll_cycle::RollCycle;

/// Where Cassandra's classes are.
const PACKAGE: &str = "org.apache.cassandra.audit.";

/// What writes the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logger {
    /// Text, a line each.
    File,
    /// A queue, which Cassandra's `auditlogviewer` reads.
    Bin,
}

impl Logger {
    /// The one of that name, with or without its package.
    pub fn of(name: &str) -> Option<Self> {
        match name.strip_prefix(PACKAGE).unwrap_or(name) {
            "FileAuditLogger" => Some(Self::File),
            "BinAuditLogger" => Some(Self::Bin),
            _ => None,
        }
    }

    /// Cassandra's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "FileAuditLogger",
            Self::Bin => "BinAuditLogger",
        }
    }
}

/// Why options are refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As Cassandra's `IllegalArgumentException` and `IllegalStateException`.
    BadUse(String),
    /// As its other exceptions.
    Failed(String),
}

/// An option that the configuration may not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadOption {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub instead: String,
}

/// Options of a queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueOptions {
    /// `audit_logs_dir`, `log_dir`: its directory.
    pub directory: String,
    /// `archive_command`: not supported.
    pub archive_command: String,
    /// `allow_nodetool_archive_command`.
    pub allow_archive_command: bool,
    /// `roll_cycle`.
    pub roll_cycle: String,
    /// `block`: do requests wait for room?
    pub block: bool,
    /// `max_queue_weight`: bytes that wait to be written, at most.
    pub max_queue_weight: i64,
    /// `max_log_size`: bytes of files that are not written any more, at most.
    pub max_log_size: i64,
    /// `max_archive_retries`.
    pub max_archive_retries: i64,
}

/// The options that list what the audit log includes and excludes, in the order of
/// [`AuditOptions::lists`].
pub const LISTS: [&str; 6] = [
    "included_keyspaces",
    "excluded_keyspaces",
    "included_categories",
    "excluded_categories",
    "included_users",
    "excluded_users",
];

/// Options of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditOptions {
    /// `logger.class_name`.
    pub logger: String,
    /// The values of [`LISTS`], with commas.
    pub lists: [String; 6],
    /// Those of its queue.
    pub queue: QueueOptions,
}

/// What nodetool sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// `--logger`.
    pub logger: Option<String>,
    /// `--included-keyspaces` and so on.
    pub lists: [Option<String>; 6],
    /// `--path`.
    pub path: Option<String>,
    /// `--archive-command`.
    pub archive_command: Option<String>,
    /// `--roll-cycle`.
    pub roll_cycle: Option<String>,
    /// `--blocking`.
    pub block: Option<bool>,
    /// `--max-queue-weight`.
    pub max_queue_weight: Option<i64>,
    /// `--max-log-size`.
    pub max_log_size: Option<i64>,
    /// `--max-archive-retries`.
    pub max_archive_retries: Option<i64>,
}

/// A list without blanks and empty names; none where nothing is left.
fn sanitized(list: &str) -> Option<String> {
    let names: Vec<&str> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    (!names.is_empty()).then(|| names.join(","))
}

impl QueueOptions {
    /// The cycle, if its name is one.
    pub fn cycle(&self) -> Option<RollCycle> {
        RollCycle::of(&self.roll_cycle)
    }

    fn changed(&self, changes: &Changes) -> Self {
        let text = |new: &Option<String>, old: &String| new.as_ref().unwrap_or(old).clone();
        Self {
            directory: text(&changes.path, &self.directory),
            archive_command: text(&changes.archive_command, &self.archive_command),
            allow_archive_command: self.allow_archive_command,
            roll_cycle: text(&changes.roll_cycle, &self.roll_cycle).to_uppercase(),
            block: changes.block.unwrap_or(self.block),
            max_queue_weight: changes.max_queue_weight.unwrap_or(self.max_queue_weight),
            max_log_size: changes.max_log_size.unwrap_or(self.max_log_size),
            max_archive_retries: changes.max_archive_retries.unwrap_or(self.max_archive_retries),
        }
    }

    /// Can a queue be written with these?
    ///
    /// # Errors
    /// If it cannot.
    pub fn check(&self) -> Result<RollCycle, Refused> {
        let bad = |text: &str| Err(Refused::BadUse(text.to_owned()));
        if self.directory.is_empty() {
            return bad("you might have forgotten to specify a directory to save logs");
        }
        let Some(cycle) = self.cycle() else {
            return Err(Refused::BadUse(format!(
                "No enum constant net.openhft.chronicle.queue.RollCycles.{}",
                self.roll_cycle
            )));
        };
        match (self.max_queue_weight > 0, self.max_log_size > 0) {
            (false, _) => bad("maxQueueWeight must be > 0"),
            (_, false) => bad("maxLogSize must be > 0"),
            _ if !self.archive_command.is_empty() => {
                bad("archive_command is not supported: move the rolled files from elsewhere")
            }
            _ => Ok(cycle),
        }
    }

    /// Those of the full query log, as nodetool changes them.
    ///
    /// # Errors
    /// If it may not.
    pub fn with(&self, changes: &Changes) -> Result<Self, Refused> {
        if changes.archive_command.is_some() && !self.allow_archive_command {
            return Err(Refused::Failed(
                "Can't enable full query log archiving via nodetool unless \
                 full_query_logging_options.allow_nodetool_archive_command is set to true"
                    .to_owned(),
            ));
        }
        Ok(self.changed(changes))
    }
}

impl AuditOptions {
    /// As nodetool changes them.
    ///
    /// # Errors
    /// If it may not, or what it says makes no sense.
    pub fn with(&self, changes: &Changes) -> Result<Self, Refused> {
        if changes.archive_command.is_some() && !self.queue.allow_archive_command {
            return Err(Refused::Failed(
                "Can't enable audit log archiving via nodetool unless \
                 audit_logging_options.allow_nodetool_archive_command is set to true"
                    .to_owned(),
            ));
        }
        let logger = changes.logger.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let mut new = Self {
            logger: logger.unwrap_or(&self.logger).to_owned(),
            lists: self.lists.clone(),
            queue: self.queue.changed(changes),
        };
        for (at, (list, change)) in new.lists.iter_mut().zip(&changes.lists).enumerate() {
            let Some(change) = change.as_deref().and_then(sanitized) else { continue };
            *list = if (2..=3).contains(&at) { change.to_uppercase() } else { change };
        }
        match new.unknown_category() {
            None => Ok(new),
            Some((_, name)) => Err(Refused::Failed(format!(
                "No enum constant {PACKAGE}AuditLogEntryCategory.{name}"
            ))),
        }
    }

    /// A category that is none, and the option that has it.
    fn unknown_category(&self) -> Option<(&'static str, &str)> {
        let [_, _, included, excluded, ..] = &self.lists;
        [("included_categories", included), ("excluded_categories", excluded)]
            .into_iter()
            .flat_map(|(option, list)| list.split(',').map(move |name| (option, name)))
            .find(|(_, name)| !name.is_empty() && Category::of(name).is_none())
    }

    /// What writes the log.
    ///
    /// # Errors
    /// If it is no class of Cassandra's that is served.
    pub fn logger(&self) -> Result<Logger, Refused> {
        let name = &self.logger;
        Logger::of(name).ok_or_else(|| {
            let package = if name.contains('.') { "" } else { PACKAGE };
            Refused::Failed(format!("{package}{name}"))
        })
    }

    /// Which entries are logged.
    pub fn filter(&self) -> Filter {
        let [a, b, c, d, e, f] = self.lists.each_ref().map(String::as_str);
        Filter::new([a, b], [c, d], [e, f])
    }

    /// What the configuration says and may not.
    pub fn bad_option(&self) -> Option<BadOption> {
        let bad = |name, value: &str, instead: &str| {
            Some(BadOption { name, value: value.to_owned(), instead: instead.to_owned() })
        };
        if Logger::of(&self.logger).is_none() {
            let instead = "FileAuditLogger or BinAuditLogger";
            return bad("logger.class_name", &self.logger, instead);
        }
        if let Some((option, name)) = self.unknown_category() {
            let instead = "QUERY, DML, DDL, DCL, OTHER, AUTH, ERROR or PREPARE";
            return bad(option, name, instead);
        }
        if self.queue.cycle().is_none() {
            let instead = "MINUTELY, HOURLY, DAILY, LARGE_DAILY, XLARGE_DAILY or HUGE_DAILY";
            return bad("roll_cycle", &self.queue.roll_cycle, instead);
        }
        for (name, value) in [
            ("max_queue_weight", self.queue.max_queue_weight),
            ("max_log_size", self.queue.max_log_size),
        ] {
            if value <= 0 {
                return bad(name, &value.to_string(), "more than 0");
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> AuditOptions {
        AuditOptions {
            logger: "BinAuditLogger".to_owned(),
            lists: ["", "system", "", "", "", ""].map(str::to_owned),
            queue: QueueOptions {
                directory: "audit".to_owned(),
                roll_cycle: "HOURLY".to_owned(),
                block: true,
                max_queue_weight: 1,
                max_log_size: 1,
                ..QueueOptions::default()
            },
        }
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    /// As nodetool 5.0.9 answered.
    #[test]
    fn what_nodetool_says_is_cleaned_and_checked() {
        let mut changes = Changes { logger: some(" FileAuditLogger "), ..Changes::default() };
        changes.lists = [some("a, b,system"), some(" "), None, some("query,Dml"), None, None];
        let changed = options().with(&changes).unwrap();
        assert_eq!(changed.logger(), Ok(Logger::File));
        assert_eq!(changed.lists, ["a,b,system", "system", "", "QUERY,DML", "", ""]);
        assert_eq!(changed.filter().lists()[..2], ["a,b", "system"]);
        changes.lists[2] = some("wrong");
        let text = "No enum constant org.apache.cassandra.audit.AuditLogEntryCategory.WRONG";
        assert_eq!(options().with(&changes), Err(Refused::Failed(text.to_owned())));
        let absent = AuditOptions { logger: "Absent".to_owned(), ..options() };
        let text = "org.apache.cassandra.audit.Absent";
        assert_eq!(absent.logger(), Err(Refused::Failed(text.to_owned())));
        assert_eq!(absent.bad_option().unwrap().name, "logger.class_name");
    }

    #[test]
    fn a_queue_has_a_cycle_and_room() {
        let with = |change: fn(&mut QueueOptions)| {
            let mut queue = options().queue;
            change(&mut queue);
            match queue.check() {
                Ok(cycle) => cycle.name.to_owned(),
                Err(Refused::BadUse(text) | Refused::Failed(text)) => text,
            }
        };
        assert_eq!(with(|_| {}), "HOURLY");
        let text = "No enum constant net.openhft.chronicle.queue.RollCycles.NEVER";
        assert_eq!(with(|queue| queue.roll_cycle = "NEVER".to_owned()), text);
        assert_eq!(with(|queue| queue.max_log_size = 0), "maxLogSize must be > 0");
        assert_eq!(with(|queue| queue.max_queue_weight = 0), "maxQueueWeight must be > 0");
        assert!(with(|queue| queue.archive_command = "x".to_owned()).contains("not supported"));
        let changes = Changes { archive_command: some("x %path"), ..Changes::default() };
        assert!(matches!(options().queue.with(&changes), Err(Refused::Failed(_))));
        assert!(matches!(options().with(&changes), Err(Refused::Failed(_))));
    }
}
