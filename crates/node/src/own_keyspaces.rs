//! The keyspaces that a cluster has before anybody makes one.

/// Is the keyspace one of Cassandra's own?
pub(crate) fn is_system(keyspace: &str) -> bool {
    let own = ["system", "system_schema", "system_auth", "system_distributed", "system_traces"];
    own.contains(&keyspace)
}
