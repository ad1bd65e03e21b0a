//! Options of both logs from the configuration.

use std::io;
use std::path::PathBuf;

use audit::{AuditOptions, LISTS, QueueOptions};
use config::Config;

/// The audit log's directory within that of the log.
const AUDIT: &str = "audit";

fn queue(config: &Config, section: &str, directory: String) -> QueueOptions {
    let lookup = config.lookup();
    let name = |key: &str| format!("{section}.{key}");
    QueueOptions {
        directory,
        archive_command: lookup.word(&name("archive_command")),
        allow_archive_command: lookup.flag(&name("allow_nodetool_archive_command")),
        roll_cycle: lookup.word(&name("roll_cycle")).to_uppercase(),
        block: lookup.flag(&name("block")),
        max_queue_weight: lookup.number(&name("max_queue_weight")),
        max_log_size: lookup.number(&name("max_log_size")),
        max_archive_retries: lookup.number(&name("max_archive_retries")),
    }
}

/// Those of the audit log.
pub(crate) fn audit_options(config: &Config) -> AuditOptions {
    let section = "audit_logging_options";
    let lookup = config.lookup();
    let directory = match config.is_set("audit_logging_options.audit_logs_dir") {
        true => lookup.word("audit_logging_options.audit_logs_dir"),
        false if config.is_set("log_directory") => {
            PathBuf::from(lookup.word("log_directory")).join(AUDIT).display().to_string()
        }
        // there is none
        false => String::new(),
    };
    let list = |key: &str| lookup.word(&format!("{section}.{key}"));
    AuditOptions {
        logger: lookup.word("audit_logging_options.logger.class_name"),
        lists: LISTS.map(list),
        queue: queue(config, section, directory),
    }
}

/// Those of the full query log.
pub(crate) fn query_options(config: &Config) -> QueueOptions {
    let directory = config.lookup().word("full_query_logging_options.log_dir");
    queue(config, "full_query_logging_options", directory)
}

/// Is the audit log on from the start?
pub(crate) fn starts_audited(config: &Config) -> bool {
    config.lookup().flag("audit_logging_options.enabled")
}

/// Can the audit log be written as the configuration says?
///
/// # Errors
/// If not, with what to change.
pub(crate) fn check_audit(options: &AuditOptions) -> io::Result<()> {
    let bad = |what: String| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    if let Some(option) = options.bad_option() {
        return bad(format!(
            "audit_logging_options.{} is \"{}\": set it to {}",
            option.name, option.value, option.instead
        ));
    }
    if options.queue.directory.is_empty() {
        return bad(NO_DIRECTORY.to_owned());
    }
    Ok(())
}

/// What is said where nobody said where the audit log is to be.
pub(crate) const NO_DIRECTORY: &str =
    "the audit log has no directory: set log_directory or audit_logging_options.audit_logs_dir";
