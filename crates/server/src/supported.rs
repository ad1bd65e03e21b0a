//! The answer to OPTIONS.

use std::cell::OnceCell;

use protocol::{Compression, Reply, Startup, Version};

/// Version of CQL that we speak.
const CQL_VERSION: &str = "3.4.7";
/// Name of the partitioner, as shard-aware drivers compare it.
const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
/// How tokens map to shards.
const SHARDING: &str = "biased-token-round-robin";
/// Most significant bits of a token that the mapping ignores.
const IGNORED_BITS: &str = "12";

/// What OPTIONS is answered with on this shard.
#[derive(Debug)]
pub(crate) struct Supported {
    shard: String,
    shards: String,
    /// Port of the listener where a client's source port chooses its shard.
    port: OnceCell<String>,
}

impl Supported {
    pub fn new(shard: usize, shards: usize) -> Self {
        Self { shard: shard.to_string(), shards: shards.to_string(), port: OnceCell::new() }
    }

    /// Adds the keys by which drivers choose a shard, as the documentation of the shard-aware
    /// drivers (`scylla` for Rust, `scylla-driver` for Python) names them.
    pub fn announce(&self, port: u16) {
        let _ = self.port.set(port.to_string());
    }

    /// Does it name shards?
    pub fn names_shards(&self) -> bool {
        self.port.get().is_some()
    }

    /// Writes SUPPORTED, keys in Cassandra's order.
    pub fn write(&self, out: &mut Vec<u8>, reply: &Reply<'_>) {
        let versions: &[&str] = &Version::NAMES;
        let common: [(&str, &[&str]); 3] = [
            (Startup::PROTOCOL_VERSIONS, versions),
            (Startup::COMPRESSION, &Compression::NAMES),
            (Startup::CQL_VERSION, &[CQL_VERSION]),
        ];
        let Some(port) = self.port.get() else { return reply.supported(out, &common) };
        let [versions, compressions, cql] = common;
        reply.supported(
            out,
            &[
                versions,
                compressions,
                cql,
                ("SCYLLA_SHARD", &[&self.shard]),
                ("SCYLLA_NR_SHARDS", &[&self.shards]),
                ("SCYLLA_PARTITIONER", &[PARTITIONER]),
                ("SCYLLA_SHARDING_ALGORITHM", &[SHARDING]),
                ("SCYLLA_SHARDING_IGNORE_MSB", &[IGNORED_BITS]),
                ("SCYLLA_SHARD_AWARE_PORT", &[port]),
            ],
        );
    }
}
