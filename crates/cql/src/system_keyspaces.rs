//! The keyspaces that are Cassandra's own.

/// Keyspaces that each node defines for itself; the last two hold virtual tables.
const LOCAL: [&str; 4] = ["system", "system_schema", "system_views", "system_virtual_schema"];
/// The system's keyspaces that are replicated as any other.
const REPLICATED: [&str; 3] = ["system_traces", "system_auth", "system_distributed"];

/// One of the keyspaces that each node defines for itself
/// (`SchemaConstants.isLocalSystemKeyspace`)?
pub fn is_local_system(keyspace: &str) -> bool {
    LOCAL.iter().any(|name| name.eq_ignore_ascii_case(keyspace))
}

/// One of the system's keyspaces (`SchemaConstants.isSystemKeyspace`)?
pub fn is_system(keyspace: &str) -> bool {
    is_local_system(keyspace) || REPLICATED.iter().any(|name| name.eq_ignore_ascii_case(keyspace))
}
