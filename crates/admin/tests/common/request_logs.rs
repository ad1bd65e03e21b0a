//! The fake node's audit log and full query log.

use admin::{Answer, RequestLog, RequestLogsOperator, Setting};
use audit::Changes;

use super::Fake;

impl RequestLogsOperator for Fake {
    async fn enable_audit_log(&self, changes: &Changes) -> Answer<()> {
        self.note(format!("audit {:?} {:?}", changes.logger, changes.lists))
    }

    async fn disable_audit_log(&self) -> Answer<()> {
        self.note("no audit".to_owned())
    }

    async fn audit_log(&self) -> Answer<RequestLog> {
        let option = |name: &str, value: &str| Setting {
            name: name.to_owned(),
            value: Some(value.to_owned()),
        };
        let options = vec![option("logger", "BinAuditLogger"), option("included_users", "")];
        Ok(RequestLog { enabled: true, options })
    }

    async fn enable_full_query_log(&self, changes: &Changes) -> Answer<()> {
        self.note(format!("queries {:?}", changes.path))
    }

    async fn disable_full_query_log(&self) -> Answer<()> {
        self.note("no queries".to_owned())
    }

    async fn full_query_log(&self) -> Answer<RequestLog> {
        Ok(RequestLog { enabled: false, options: Vec::new() })
    }

    async fn reset_full_query_log(&self) -> Answer<()> {
        self.note("queries removed".to_owned())
    }
}
