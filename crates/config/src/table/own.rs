//! Keys that Cassandra does not have, each with the reason why none of its own would do.

use crate::key::Kind::*;
use crate::key::Standing::*;
use crate::key::{Key, key};
use crate::quantity::MIB;
use crate::table::words::PORT;

/// The greatest number of shards: the sharding algorithm that drivers compute is defined for
/// more, no machine we know of has them.
pub const MAX_SHARDS: i64 = 1024;

pub(super) static KEYS: &[Key] = &[
    // Where everything lies whose own directory key is not set. Cassandra takes this from the
    // JVM property cassandra.storagedir.
    key("data_dir", Text, "./data", Served),
    // How many shards, hence threads, serve. Cassandra has thread pools in its place; null is
    // one a core.
    key("shards", Int(1, MAX_SHARDS), "null", Served),
    // What the node may take of the machine's memory. Cassandra has the JVM's -Xmx; null lets
    // the node derive it from the machine.
    key("memory_budget", Quantity(&MIB), "null", Served),
    // Whether the shard keys are answered to OPTIONS, and the port below is opened.
    key("shard_aware", Bool, "true", Served),
    // Where a driver reaches a shard of its choice by choosing its own source port.
    key("native_transport_port_shard_aware", PORT, "19042", Served),
    // Prometheus text over HTTP. Cassandra has JMX and agents; 7070 is the usual port of a
    // JMX exporter beside Cassandra.
    key("metrics_address", Text, "127.0.0.1", Served),
    key("metrics_port", PORT, "7070", Served),
    // The operator's API over TCP, off by default: nodetool uses the socket in data_dir.
    // Cassandra has JMX.
    key("admin_enabled", Bool, "false", Served),
    key("admin_address", Text, "127.0.0.1", Served),
    key("admin_port", PORT, "7199", Served),
];
