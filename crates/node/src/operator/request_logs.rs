//! The audit log and the full query log.

use admin::{Answer, Refusal, RequestLog, RequestLogsOperator, Setting};
use audit::{Changes, LISTS, QueueOptions, Refused};

use super::{Operations, failed};
use crate::request_logs::VerbRefused;

impl From<VerbRefused> for Refusal {
    fn from(refused: VerbRefused) -> Self {
        match refused {
            VerbRefused::Options(Refused::BadUse(text)) => Self::BadUse(text),
            VerbRefused::Options(Refused::Failed(text)) => Self::Failed(text),
            VerbRefused::Stopping => failed("nothing writes logs of requests, or the node ends"),
        }
    }
}

fn option(name: &str, value: impl ToString) -> Setting {
    Setting { name: name.to_owned(), value: Some(value.to_string()) }
}

fn queue(directory: &str, of: &QueueOptions) -> Vec<Setting> {
    vec![
        option(directory, &of.directory),
        option("archive_command", &of.archive_command),
        option("roll_cycle", &of.roll_cycle),
        option("block", of.block),
        option("max_log_size", of.max_log_size),
        option("max_queue_weight", of.max_queue_weight),
        option("max_archive_retries", of.max_archive_retries),
    ]
}

impl RequestLogsOperator for Operations {
    async fn enable_audit_log(&self, of: &Changes) -> Answer<()> {
        Ok(self.request_logs.enable_audit(of).await?)
    }

    async fn disable_audit_log(&self) -> Answer<()> {
        Ok(self.request_logs.disable_audit().await?)
    }

    async fn audit_log(&self) -> Answer<RequestLog> {
        let (enabled, of) = self.request_logs.audit_settings();
        let name = match of.logger() {
            Ok(logger) => logger.name(),
            Err(_) => &of.logger,
        };
        let mut options = vec![option("logger", name)];
        options.extend(queue("audit_logs_dir", &of.queue));
        options.extend(LISTS.iter().zip(&of.lists).map(|(name, list)| option(name, list)));
        Ok(RequestLog { enabled, options })
    }

    async fn enable_full_query_log(&self, of: &Changes) -> Answer<()> {
        Ok(self.request_logs.enable_queries(of).await?)
    }

    async fn disable_full_query_log(&self) -> Answer<()> {
        Ok(self.request_logs.disable_queries().await?)
    }

    async fn full_query_log(&self) -> Answer<RequestLog> {
        let (enabled, of) = self.request_logs.query_settings();
        Ok(RequestLog { enabled, options: queue("log_dir", &of) })
    }

    async fn reset_full_query_log(&self) -> Answer<()> {
        Ok(self.request_logs.reset_queries().await?)
    }
}
