//! `nodetool info`.

use std::fmt::Write;

use super::number::{double, file_size, fixed};
use crate::model::{Cache, NodeInfo};

const MIB: f64 = 1_048_576.0;

fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{name:<23}: {value}");
}

/// The text of `info`; with `tokens` each token on a line.
pub(super) fn print(node: &NodeInfo, tokens: bool) -> String {
    let text = &mut String::new();
    line(text, "ID", &node.host_id);
    line(text, "Gossip active", node.gossip_active);
    line(text, "Native Transport active", node.native_transport_active);
    line(text, "Load", file_size(node.load_bytes));
    line(text, "Uncompressed load", file_size(node.uncompressed_load_bytes));
    line(text, "Generation No", if node.gossip_active { node.generation } else { 0 });
    line(text, "Uptime (seconds)", node.uptime_seconds);
    let mib = |bytes: u64| fixed(bytes as f64 / MIB, 2);
    let (used, budget) = (node.memory_used_bytes, node.memory_budget_bytes);
    line(text, "Heap Memory (MB)", format!("{} / {}", mib(used), mib(budget)));
    line(text, "Off Heap Memory (MB)", mib(node.off_heap_bytes));
    line(text, "Data Center", &node.data_center);
    line(text, "Rack", &node.rack);
    line(text, "Exceptions", node.exceptions);
    caches(text, node);
    line(text, "Percent Repaired", format!("{}%", double(node.percent_repaired)));
    match node.tokens.as_deref() {
        None => line(text, "Token", "(node is not joined to the cluster)"),
        Some(all) if all.len() == 1 || tokens => {
            all.iter().for_each(|token| line(text, "Token", token));
        }
        Some(all) => {
            let how = format!("(invoke with -T/--tokens to see all {} tokens)", all.len());
            line(text, "Token", how);
        }
    }
    line(text, "Bootstrap state", &node.bootstrap_state);
    line(text, "Bootstrap failed", node.bootstrap_failed);
    line(text, "Decommissioning", node.decommissioning);
    line(text, "Decommission failed", node.decommission_failed);
    std::mem::take(text)
}

fn caches(text: &mut String, node: &NodeInfo) {
    line(text, "Key Cache", cache(&node.key_cache));
    line(text, "Row Cache", cache(&node.row_cache));
    line(text, "Counter Cache", cache(&node.counter_cache));
    if let Some(chunks) = &node.chunk_cache {
        let hits = chunks.requests.saturating_sub(chunks.misses);
        let value = format!(
            "entries {}, size {}, capacity {}, {} misses, {} requests, {} recent hit rate, {} \
             microseconds miss latency",
            chunks.entries,
            file_size(chunks.size_bytes),
            file_size(chunks.capacity_bytes),
            chunks.misses,
            chunks.requests,
            rate(hits, chunks.requests),
            fixed(chunks.miss_latency_micros, 3),
        );
        line(text, "Chunk Cache", value);
    }
    if let Some(network) = &node.network_cache {
        let value = format!(
            "size {}, overflow size: {}, capacity {}",
            file_size(network.size_bytes),
            file_size(network.overflow_bytes),
            file_size(network.capacity_bytes),
        );
        line(text, "Network Cache", value);
    }
}

fn cache(cache: &Cache) -> String {
    format!(
        "entries {}, size {}, capacity {}, {} hits, {} requests, {} recent hit rate, {} save \
         period in seconds",
        cache.entries,
        file_size(cache.size_bytes),
        file_size(cache.capacity_bytes),
        cache.hits,
        cache.requests,
        rate(cache.hits, cache.requests),
        cache.save_period_seconds,
    )
}

/// A share with three decimals; `NaN` of nothing.
fn rate(hits: u64, requests: u64) -> String {
    fixed(hits as f64 / requests as f64, 3)
}
