//! Verbs that go through SSTables.

use super::keyspaces;
use crate::model::{ExcessJobs, Refusal, Shown, TableName};
use crate::nodetool::SSTablesVerb;
use crate::operator::{Answer, CompactionOperator, SSTablesOperator, TablesOperator};

/// Every node has its own.
const LOCAL_KEYSPACES: [&str; 2] = ["system", "system_schema"];

pub(super) async fn ask(
    operator: &(impl SSTablesOperator + CompactionOperator + TablesOperator),
    verb: SSTablesVerb,
) -> Answer<Option<Shown>> {
    match verb {
        SSTablesVerb::Flush(of) => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.flush(&keyspace, &of.tables).await?;
            }
        }
        SSTablesVerb::Upgrade { of, all } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.upgrade(&keyspace, &of.tables, all).await?;
            }
        }
        SSTablesVerb::Verify { of, how } => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.verify(&keyspace, &of.tables, how).await?;
            }
        }
        SSTablesVerb::Relocate(of) => {
            for keyspace in keyspaces(operator, &of).await? {
                operator.relocate(&keyspace, &of.tables).await?;
            }
        }
        SSTablesVerb::Refresh(words) => match <[String; 2]>::try_from(words) {
            Ok([keyspace, table]) => operator.refresh(&TableName { keyspace, table }).await?,
            Err(_) => return Err(Refusal::BadUse("refresh requires ks and cf args".to_owned())),
        },
        SSTablesVerb::Import { import, .. } => {
            let refused_directories = operator.import(import).await?;
            return Ok(Some(Shown::Import { refused_directories }));
        }
        SSTablesVerb::Scrub { of, how, jobs } => {
            let mut excess = Vec::new();
            for keyspace in keyspaces(operator, &of).await? {
                excess.extend(excess_jobs(operator, jobs).await?);
                operator.scrub(&keyspace, &of.tables, how).await?;
            }
            return Ok(shown(excess));
        }
        SSTablesVerb::GarbageCollect { of, cells, jobs } => {
            let mut excess = Vec::new();
            for keyspace in keyspaces(operator, &of).await? {
                excess.extend(excess_jobs(operator, jobs).await?);
                operator.garbage_collect(&keyspace, &of.tables, cells).await?;
            }
            return Ok(shown(excess));
        }
        SSTablesVerb::Cleanup { of, jobs } => {
            let mut excess = Vec::new();
            let is_shared = |keyspace: &String| !LOCAL_KEYSPACES.contains(&keyspace.as_str());
            for keyspace in keyspaces(operator, &of).await?.into_iter().filter(is_shared) {
                excess.extend(excess_jobs(operator, jobs).await?);
                operator.cleanup(&keyspace, &of.tables).await?;
            }
            return Ok(shown(excess));
        }
    }
    Ok(None)
}

fn shown(excess: Vec<ExcessJobs>) -> Option<Shown> {
    (!excess.is_empty()).then_some(Shown::ExcessJobs(excess))
}

/// Whether more is to be done at a time than can be.
async fn excess_jobs(operator: &impl CompactionOperator, jobs: i64) -> Answer<Option<ExcessJobs>> {
    let concurrent_compactors = operator.concurrent_compactors().await?;
    let is_excess = u64::try_from(jobs).is_ok_and(|jobs| jobs > concurrent_compactors);
    Ok(is_excess.then_some(ExcessJobs { jobs, concurrent_compactors }))
}
