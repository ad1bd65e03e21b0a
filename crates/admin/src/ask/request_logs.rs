//! Verbs of the audit log and of the full query log.

use crate::model::Shown;
use crate::nodetool::RequestLogsVerb;
use crate::operator::{Answer, RequestLogsOperator};

pub(super) async fn ask(
    operator: &impl RequestLogsOperator,
    verb: RequestLogsVerb,
) -> Answer<Option<Shown>> {
    match verb {
        RequestLogsVerb::EnableAudit(changes) => operator.enable_audit_log(&changes).await?,
        RequestLogsVerb::DisableAudit => operator.disable_audit_log().await?,
        RequestLogsVerb::Audit => return Ok(Some(Shown::RequestLog(operator.audit_log().await?))),
        RequestLogsVerb::EnableQueries(changes) => operator.enable_full_query_log(&changes).await?,
        RequestLogsVerb::DisableQueries => operator.disable_full_query_log().await?,
        RequestLogsVerb::Queries => {
            return Ok(Some(Shown::RequestLog(operator.full_query_log().await?)));
        }
        RequestLogsVerb::ResetQueries => operator.reset_full_query_log().await?,
    }
    Ok(None)
}
