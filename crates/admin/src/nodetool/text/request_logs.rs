//! Options of the audit log and of the full query log: `tools.nodetool.GetAuditLog`,
//! `GetFullQueryLog`.

use super::columns::Columns;
use crate::model::RequestLog;

/// A table of options and their values.
pub(super) fn options(of: &RequestLog) -> String {
    let mut columns = Columns::default();
    columns.row(["enabled", if of.enabled { "true" } else { "false" }]);
    for option in &of.options {
        columns.row([&option.name, option.value.as_deref().unwrap_or_default()]);
    }
    columns.text(&columns.widths(), " ")
}
