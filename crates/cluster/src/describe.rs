//! DESCRIBE, answered from the schema of the present epoch.

use std::sync::Arc;

use cql::describe::{Cluster, Describe, DescribeContext};
use protocol::{PagingState, ResultMetadata};

use crate::answer::{Answer, Outcome, Page, cql_error};
use crate::identity::PARTITIONER;
use crate::peers::Peers;
use crate::prepared::{class_name, columns};
use crate::request::Request;
use crate::shard_context::ShardContext;

/// What DESCRIBE CLUSTER calls the dynamic snitch, which stands before the configured one.
const DYNAMIC_SNITCH: &str = "DynamicEndpointSnitch";

/// Who has which range of the ring for a keyspace, by the token where it ends.
fn ownership(shard: &ShardContext, peers: &Peers, keyspace: &str) -> Vec<(String, Vec<String>)> {
    let identity = &shard.identity;
    let schema = shard.schema();
    let keyspace = schema.keyspace(keyspace);
    let Some(Ok(Some(scope))) = keyspace.map(|keyspace| peers.scope(keyspace)) else {
        // one node has all ranges, whatever the keyspace
        let replica = format!("/{}:{}", identity.broadcast, identity.storage_port);
        let range = |(token, _): &(types::Token, _)| (token.to_string(), vec![replica.clone()]);
        return peers
            .ring()
            .map(|ring| ring.tokens().iter().map(range).collect())
            .unwrap_or_default();
    };
    let replica = |node: &ring::NodeIndex| format!("/{}", scope.ring.node(*node).address);
    let range = |(token, _): &(types::Token, ring::NodeIndex)| {
        let replicas = scope.placement.at(*token).natural.iter().map(replica);
        (token.to_string(), replicas.collect())
    };
    scope.ring.tokens().iter().map(range).collect()
}

/// Answers DESCRIBE.
pub(crate) fn describe(
    shard: &ShardContext,
    peers: &Peers,
    describe: &Describe,
    request: &Request<'_>,
) -> Outcome {
    let schema = shard.schema();
    let identity = &shard.identity;
    let ownership = |keyspace: &str| ownership(shard, peers, keyspace);
    let dynamic = shard.config.dynamic_snitch.map(|_| DYNAMIC_SNITCH);
    let snitch = dynamic.unwrap_or(&shard.config.snitch);
    let snitch = format!("org.apache.cassandra.locator.{snitch}");
    let cluster = Cluster {
        name: &identity.cluster_name,
        partitioner: PARTITIONER,
        snitch: &snitch,
        ownership: &ownership,
    };
    let state = request.options.paging_state;
    let context = DescribeContext {
        schema: &schema,
        keyspace: request.keyspace.as_deref(),
        cluster: &cluster,
        release_version: &identity.release_version,
        page_size: request.options.page_size,
        page: state.as_ref().and_then(|state| state.partition_key),
    };
    let described = match describe.run(&context) {
        Ok(described) => described,
        Err(error) => return cql_error(error).into(),
    };
    let mut cells = Vec::new();
    for value in described.rows.iter().flatten() {
        cells.extend((value.len() as i32).to_be_bytes());
        cells.extend_from_slice(value);
    }
    let paging_state = described.next_page.map(|key| {
        let state = PagingState {
            partition_key: Some(&key),
            row_mark: None,
            remaining: i32::MAX,
            remaining_in_partition: i32::MAX,
        };
        let mut bytes = Vec::new();
        state.write(request.version, &mut bytes);
        bytes
    });
    let metadata = Arc::new(ResultMetadata::new(&columns(&described.columns), class_name));
    let rows = described.rows.len() as u32;
    Outcome::new(Ok(Answer::Rows(Page { metadata, rows, cells, paging_state })), Vec::new())
}
