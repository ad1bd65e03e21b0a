//! Every parser of bytes or text from outside, as targets of libFuzzer: `FUZZ_TARGET=NAME fuzz
//! [libFuzzer's options]`.
//!
//! A target panics where something is wrong; libFuzzer adds limits of memory and time.
//!
//! `cargo xtask campaign fuzz` runs all targets. Inputs that once broke one are in `fuzz/found`.
#![no_main]

mod commitlog;
mod cql_text;
mod files;
mod frames;
mod hints;
mod internode;
mod operator;
mod payloads;
mod repairs;
mod schemas;
mod streams;
mod values;
mod yaml;

use std::sync::OnceLock;

use libfuzzer_sys::{Corpus, fuzz_target};

type Target = fn(&[u8]);

/// Environment variable that names the target.
const TARGET: &str = "FUZZ_TARGET";

const TARGETS: &[(&str, Target)] = &[
    ("frames", frames::frames),
    ("segments", frames::segments),
    ("messages", frames::messages),
    ("internode", internode::internode),
    ("payloads", payloads::payloads),
    ("cql", cql_text::statement),
    ("values", values::values),
    ("json", values::json),
    ("yaml", yaml::yaml),
    ("sstable", files::sstable),
    ("trie", files::trie),
    ("mutation", files::mutation),
    ("commitlog", commitlog::commitlog),
    ("hints", hints::hints),
    ("schema", schemas::schemas),
    ("streams", streams::streams),
    ("repair", repairs::messages),
    ("trees", repairs::trees),
    ("operator", operator::lines),
];

fn target() -> Target {
    static CHOSEN: OnceLock<Target> = OnceLock::new();
    *CHOSEN.get_or_init(|| {
        let name = std::env::var(TARGET).unwrap_or_default();
        let found = TARGETS.iter().find(|(known, _)| *known == name);
        let names: Vec<_> = TARGETS.iter().map(|(name, _)| *name).collect();
        found.unwrap_or_else(|| panic!("{TARGET} is one of {}", names.join(", "))).1
    })
}

fuzz_target!(|data: &[u8]| -> Corpus {
    target()(data);
    Corpus::Keep
});
