//! Bugs planted to prove that the checks find them. The code under test asks [`env::Env::planted`]
//! for their names; outside of a simulated world the answer is no.

/// A bug, and within how many seeds it must be found.
#[derive(Clone, Copy, Debug)]
pub struct Bug {
    /// Its name.
    pub name: &'static str,
    /// Seeds that must suffice.
    pub seeds: u64,
}

/// What makes common what a bug is about, where that is rare, and is no bug itself: it is planted
/// with the bug, and alone it must do no harm.
const CASES: &[(&str, &str)] = &[("outputs_taken_back_at_once", "outputs_taken_back_often")];

impl Bug {
    /// See [`CASES`].
    pub fn case(&self) -> Option<&'static str> {
        CASES.iter().find(|(bug, _)| *bug == self.name).map(|(_, case)| *case)
    }
}

/// Those that the storage engine can have.
pub const ENGINE: &[Bug] = &[
    Bug { name: "ack_before_sync", seeds: 40 },
    Bug { name: "replay_skips_last", seeds: 20 },
    Bug { name: "segment_recycled_early", seeds: 60 },
    Bug { name: "flush_published_before_sync", seeds: 40 },
    Bug { name: "tombstone_purged_early", seeds: 60 },
    Bug { name: "stale_cache_after_flush", seeds: 10 },
    Bug { name: "kept_memtable_gone_unsaid", seeds: 10 },
    Bug { name: "outputs_taken_back_at_once", seeds: 60 },
    Bug { name: "row_cache_survives_write", seeds: 10 },
    Bug { name: "row_cache_filled_with_old", seeds: 120 },
    Bug { name: "row_cache_survives_truncate", seeds: 20 },
];

/// Those that it had once, long after its other checks passed. More are planted in the storage
/// engine's own tests, where they take fewer seeds.
pub const ONCE: &[Bug] = &[Bug { name: "replay_not_synced", seeds: 1000 }];

/// Those that crash images must find, and within how many images, at [`IMAGES_PER_SEED`] of a seed.
pub const IMAGES: &[Bug] = &[
    Bug { name: "flush_published_before_sync", seeds: 40 },
    Bug { name: "rename_not_synced", seeds: 40 },
    Bug { name: "inputs_removed_before_commit", seeds: 40 },
    Bug { name: "segment_recycled_early", seeds: 40 },
    Bug { name: "segment_listed_too_long", seeds: 40 },
    Bug { name: "truncation_recorded_late", seeds: 40 },
    Bug { name: "snapshot_described_before_linked", seeds: 120 },
];

/// Images of a seed: as many as make a good use of the world that they are of.
pub const IMAGES_PER_SEED: usize = 25;

/// Those of the whole node.
pub const WHOLE: &[Bug] = &[
    Bug { name: "paging_drops_row", seeds: 10 },
    Bug { name: "batch_torn_between_shards", seeds: 40 },
    Bug { name: "counter_out_of_turn", seeds: 10 },
    Bug { name: "counter_clock_stands_still", seeds: 10 },
    Bug { name: "counter_cache_survives_delete", seeds: 10 },
];

/// Those of conditional statements.
pub const CONDITIONS: &[Bug] = &[
    Bug { name: "cas_reads_before_its_turn", seeds: 10 },
    Bug { name: "cas_commit_unlogged", seeds: 10 },
    Bug { name: "cas_answered_before_commit", seeds: 40 },
    Bug { name: "cas_batch_ignores_conditions", seeds: 10 },
    Bug { name: "ballot_goes_back", seeds: 20 },
    Bug { name: "serial_read_without_round", seeds: 200 },
    Bug { name: "cas_key_bound_twice", seeds: 20 },
];

/// Those of rings of several nodes.
pub const RINGS: &[Bug] = &[
    Bug { name: "ring_drops_hint", seeds: 20 },
    Bug { name: "digest_skips_column", seeds: 20 },
    Bug { name: "ring_acks_early", seeds: 20 },
    Bug { name: "gossip_reuses_version", seeds: 20 },
    Bug { name: "ring_skips_read_repair", seeds: 20 },
    Bug { name: "ring_reads_own_only", seeds: 20 },
    Bug { name: "ring_promise_of_one", seeds: 60 },
    Bug { name: "ring_cas_reads_own", seeds: 80 },
];

/// Those of rings that nodes join and leave.
pub const ELASTIC: &[Bug] = &[
    Bug { name: "join_fetches_unannounced", seeds: 40 },
    Bug { name: "join_serves_empty", seeds: 40 },
    Bug { name: "leave_gives_unannounced", seeds: 40 },
    Bug { name: "leave_gives_nothing", seeds: 40 },
];

/// The same that take more seeds than are run each time: they are looked for by their names alone.
/// Tests of whole nodes find them in fewer worlds.
pub const ELASTIC_RARE: &[Bug] = &[
    Bug { name: "join_counts_what_failed", seeds: 1000 },
    Bug { name: "join_fetches_from_anybody", seeds: 1000 },
    Bug { name: "join_forgets_former", seeds: 1000 },
    Bug { name: "join_serves_forgotten", seeds: 1000 },
    Bug { name: "join_shares_tokens", seeds: 1000 },
    Bug { name: "leave_counts_what_failed", seeds: 1000 },
    Bug { name: "leave_drops_hints", seeds: 1000 },
    Bug { name: "leave_sees_no_rival", seeds: 1000 },
    Bug { name: "removal_confirmed_unfetched", seeds: 1000 },
    Bug { name: "removal_fetches_from_one", seeds: 1000 },
];

/// Those of rings that are repaired.
pub const REPAIR: &[Bug] = &[
    Bug { name: "repair_skips_a_leaf", seeds: 20 },
    Bug { name: "repair_failed_session_counts_as_repaired", seeds: 40 },
    Bug { name: "repair_validation_without_flush", seeds: 20 },
    Bug { name: "repair_sets_apart_without_flush", seeds: 20 },
    Bug { name: "repair_release_not_tried_again", seeds: 40 },
    Bug { name: "tombstone_purged_before_repair", seeds: 20 },
    Bug { name: "repair_releases_before_commit", seeds: 40 },
    Bug { name: "repair_fails_after_promise", seeds: 60 },
];

/// The same that take more seeds than are run each time: they are looked for by their names alone.
pub const REPAIR_RARE: &[Bug] = &[
    Bug { name: "repair_marks_unstreamed", seeds: 1000 },
    Bug { name: "repair_promise_not_durable", seeds: 1000 },
];
