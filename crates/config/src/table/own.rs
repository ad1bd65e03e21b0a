//! Keys that Cassandra does not have, each with the reason why none of its own would do.

use crate::key::Kind::*;
use crate::key::Standing::*;
use crate::key::{Key, key};
use crate::quantity::{BYTES, MIB, MILLIS, MILLIS_INT};
use crate::table::words::{
    BACKGROUND_ACCESS_MODE, LOG_FORMAT, LOG_LEVEL, LOG_TO, METRICS_PER_TABLE, PORT,
    READ_ACCESS_MODE, TOKEN_ALLOCATION,
};

/// The greatest number of shards: the sharding algorithm that drivers compute is defined for
/// more, no machine we know of has them.
pub const MAX_SHARDS: i64 = 1024;

/// More than any disk's own queue holds.
pub const MAX_IO_DEPTH: i64 = 4096;

/// A hash of more rounds would keep a thread for minutes.
pub const MAX_BCRYPT_ROUNDS: i64 = 16;

/// A hundred years.
pub const MAX_LOG_DAYS: i64 = 36_500;

/// Is it one of these?
pub(crate) fn is_own(name: &str) -> bool {
    KEYS.iter().any(|key| key.name == name)
}

pub(super) static KEYS: &[Key] = &[
    // Where everything lies whose own directory key is not set. Cassandra takes this from the
    // JVM property cassandra.storagedir.
    key("data_dir", Text, "./data", Served),
    // Where system.log is, and its earlier files; null is no file. Cassandra has the environment's
    // CASSANDRA_LOG_DIR and conf/logback.xml; so for the keys below.
    key("log_directory", Text, "null", Served),
    // Where lines of the log go; null is both where there is a directory, else standard output.
    key("log_to", Enum(LOG_TO), "null", Served),
    // Whether lines read as Cassandra's, or are objects of JSON.
    key("log_format", Enum(LOG_FORMAT), "pattern", Served),
    // What a line must be at least, until nodetool setlogginglevel says otherwise.
    key("log_level", Enum(LOG_LEVEL), "INFO", Served),
    // The size at which the file takes another name and a new one is begun (maxFileSize), for how
    // many days these files are kept (maxHistory), and how large all of them may be (totalSizeCap).
    key("log_file_size", Quantity(&BYTES), "50MiB", Served),
    key("log_history_days", Int(0, MAX_LOG_DAYS), "7", Served),
    key("log_total_size", Quantity(&BYTES), "5GiB", Served),
    // How many shards, hence threads, serve. Cassandra has thread pools in its place; null is
    // one a core.
    key("shards", Int(1, MAX_SHARDS), "null", Served),
    // What the node may take of the machine's memory. Cassandra has the JVM's -Xmx; null is 1 GiB.
    key("memory_budget", Quantity(&MIB), "null", Served),
    // Whether the node takes all of that memory when it starts, and keeps it, so that no request
    // waits for the machine to clear it. Cassandra has the JVM's -XX:+AlwaysPreTouch.
    key("memory_pretouch", Bool, "false", Served),
    // Whether reads find what was flushed in the memory of memtables that writes do not need yet.
    // Cassandra frees it.
    key("memtable_keeps_flushed", Bool, "true", Served),
    // Which release the node says it is, to the others of a ring and to drivers: the ring's own,
    // 5.0.x or 4.1.x, by which its nodes agree on a schema. A Cassandra says what it is.
    key("release_version", Text, "5.0.9", Served),
    // How many operations the node has at its disk at a time; more wait in its own queue, where
    // reads overtake flushes and compactions. Cassandra leaves that to its thread pools and the
    // kernel.
    key("io_depth", Int(1, MAX_IO_DEPTH), "128", Served),
    // How files are read and written by flushes, compactions and the like: past the page cache, in
    // which other files stay then, or through it, as Cassandra 5.0 does.
    key("io_background_access_mode", Enum(BACKGROUND_ACCESS_MODE), "direct", Served),
    // How a chunk of an SSTable is read that a request needs and nobody has in memory: past the
    // page cache when it was not read of late, and through it, so that it stays there, when it was;
    // or always through it, as Cassandra does, whose disk_access_mode knows no such way.
    key("io_read_access_mode", Enum(READ_ACCESS_MODE), "mixed", Served),
    // How long after a sync of the commit log the next one begins, where commitlog_sync_period is
    // longer. Writes still wait only where a sync is later than that period and
    // periodic_commitlog_sync_lag_block allow: a disk that takes many seconds over one has all of
    // them. Cassandra syncs once a period; so does a value as large as that.
    key("commitlog_sync_interval", Quantity(&MILLIS), "1s", Served),
    // Whether the node starts without what is damaged in its commit log. Cassandra has the JVM
    // property cassandra.commitlog.ignorereplayerrors.
    key("commitlog_ignore_replay_errors", Bool, "false", Served),
    // How long news takes to be known by all nodes. Cassandra has the JVM property
    // cassandra.ring_delay_ms.
    key("ring_delay", Quantity(&MILLIS_INT), "30s", Served),
    // How a new node chooses its tokens: so that what nodes replicate is as even as can be; as
    // Cassandra does, by the two allocate_tokens_* keys, and at random without them; or at random.
    key("token_allocation", Enum(TOKEN_ALLOCATION), "even", Served),
    // Whether the node becomes a part of the ring when it starts; else it does at `nodetool join`.
    // Cassandra has the JVM property cassandra.join_ring.
    key("join_ring", Bool, "true", Served),
    // Whether a node that has fetched its data takes writes and serves no reads until `nodetool
    // join`. Cassandra has the JVM property cassandra.write_survey.
    key("write_survey", Bool, "false", Served),
    // The node that is down whose place this one takes. Cassandra has the JVM properties
    // cassandra.replace_address and cassandra.replace_address_first_boot, of which the latter may
    // stay set once this node has its data.
    key("replace_address", Text, "null", Served),
    key("replace_address_first_boot", Text, "null", Served),
    // Whether a node that joins fetches each range from the replica that gives it up, so that
    // nothing that was acknowledged is missing, and joins only while no other node moves. Cassandra
    // has the JVM property cassandra.consistent.rangemovement.
    key("consistent_rangemovement", Bool, "true", Served),
    // The cost of hashing a password. Cassandra has the JVM property
    // cassandra.auth_bcrypt_gensalt_log2_rounds.
    key("auth_bcrypt_gensalt_log2_rounds", Int(4, MAX_BCRYPT_ROUNDS), "10", Served),
    // How often the password of a role may change. Cassandra has the JVM property
    // cassandra.role_password_update_min_interval_in_ms.
    key("role_password_update_min_interval", Quantity(&MILLIS_INT), "5s", Served),
    // The superuser that a node without any role makes, with the password in the file (without
    // its last line break). Cassandra makes `cassandra` with the password `cassandra`, which
    // everybody knows.
    key("first_superuser", Text, "null", Served),
    key("first_superuser_password_file", Text, "null", Served),
    // Whether the node may listen to other machines while it lets everybody in. Cassandra does so.
    key("open_without_authentication", Bool, "false", Served),
    // Whether a client may come with a certificate that has expired, where that very certificate is
    // in the truststore. Cassandra takes one that is there as it is.
    key("client_certificates_may_expire", Bool, "false", Served),
    // Whether a connection without TLS, where internode_encryption is dc or rack, must come from
    // the address of the node that it says it is. Cassandra believes whoever connects; not so where
    // nodes are known by other addresses than those that they connect from.
    key("internode_plaintext_checks_address", Bool, "false", Served),
    // Whether coordinators of other nodes may ask this one for reads by secondary indexes, which it
    // answers by scans. Where it is false its INDEX_STATUS says BUILD_FAILED of each.
    key("serve_index_reads", Bool, "true", Served),
    // Whether the shard keys are answered to OPTIONS, and the port below is opened.
    key("shard_aware", Bool, "true", Served),
    // How long a request may wait for its turn where requests have waited without a pause for some
    // time already: who waits for longer is answered Overloaded, so that the others are answered in
    // time. Cassandra lets them wait for all of native_transport_timeout; so does a value as large
    // as that.
    key("native_transport_queue_wait", Quantity(&MILLIS), "500ms", Served),
    // Where a driver reaches a shard of its choice by choosing its own source port.
    key("native_transport_port_shard_aware", PORT, "19042", Served),
    // Prometheus text over HTTP. Cassandra has JMX and agents; 7070 is the usual port of a
    // JMX exporter beside Cassandra.
    key("metrics_address", Text, "127.0.0.1", Served),
    key("metrics_port", PORT, "7070", Served),
    // Which metrics tables have of their own: those that dashboards and alerts ask for, or all.
    // Cassandra has all of them, and its agents leave most out.
    key("metrics_per_table", Enum(METRICS_PER_TABLE), "default", Served),
    // The operator's port, for nodetool with -h and -p; off by default, when nodetool uses the
    // socket in data_dir. Cassandra has JMX.
    key("admin_enabled", Bool, "false", Served),
    key("admin_address", Text, "127.0.0.1", Served),
    key("admin_port", PORT, "7199", Served),
    // TLS of that port, as client_encryption_options are of the clients'. Cassandra has the JVM
    // properties of JMX and javax.net.ssl.
    key("admin_encryption_options.accepted_protocols", List, "null", Served),
    key("admin_encryption_options.cipher_suites", List, "null", Served),
    key("admin_encryption_options.enabled", Bool, "false", Served),
    key("admin_encryption_options.keystore", Text, "conf/.keystore", Served),
    key("admin_encryption_options.keystore_password", Text, "null", Served),
    key("admin_encryption_options.protocol", Text, "null", Served),
    key("admin_encryption_options.require_client_auth", Bool, "false", Served),
    key(
        "admin_encryption_options.ssl_context_factory.class_name",
        Text,
        "org.apache.cassandra.security.DefaultSslContextFactory",
        Served,
    ),
    key("admin_encryption_options.ssl_context_factory.parameters", Map, "{}", Served),
    key("admin_encryption_options.store_type", Text, "JKS", Served),
    key("admin_encryption_options.truststore", Text, "conf/.truststore", Served),
    key("admin_encryption_options.truststore_password", Text, "null", Served),
];
