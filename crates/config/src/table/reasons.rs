//! Why keys have no effect here: a reason for each group of them. A key belongs here only if
//! nobody is harmed by a node that goes without it.

use crate::key::Standing::{self, Idle};

macro_rules! reasons {
    ($($name:ident: $why:literal;)*) => {$(
        #[doc = $why]
        pub(super) const $name: Standing = Idle($why);
    )*};
}

reasons! {
    ALWAYS_HANDS_ON: "a node that leaves always sends its hints to others";
    ALWAYS_WARNS: "the node always warns of requests for ranges that it does not own";
    ANSWERS: "the node sends answers when a turn of the shard ends";
    ANY_ORDER: "all permissions of a role are looked at together";
    AT_ONCE: "changes of roles and permissions take effect at once";
    BATCHES: "batches are replayed without a throttle";
    BUFFERS: "buffers of connections are part of memory_budget";
    CONTENTION: "Paxos waits at random between attempts, up to cas_contention_timeout";
    DIRECT: "flushes and compactions bypass the page cache (io_background_access_mode)";
    DISKS: "the node reads whole chunks of SSTables whatever the disk";
    DUPLICATES: "the node does not look for duplicate rows";
    ERRORS: "the node has no list of addresses whose errors it does not report";
    FIRST_ERROR: "the first damaged message closes its connection";
    HINT_AGE: "the node counts the age of a hint from its creation";
    INDEX_STATUS: "the node sends the index status that its ring reads";
    KERNEL_BUFFERS: "the kernel sizes the buffers of sockets";
    LINKS: "snapshots link files without a throttle";
    NEW_IDS: "the ids of prepared statements are always of the new form";
    NO_ARCHIVE: "no command archives files of the audit log and the full query log";
    NO_EVENTS: "there are no diagnostic events";
    NO_FIGURE: "the node does not measure this";
    NO_FUNCTION: "user-defined functions are not supported, and CREATE FUNCTION is refused";
    NO_INDEX: "storage-attached indexes are not supported";
    NO_INDEX_FILES: "the node builds no index files";
    NO_MAPS: "the node reads and writes files through io_uring (see io_read_access_mode)";
    NO_PARAMETERS: "the class takes no parameters here";
    NO_PAXOS_CACHE: "the node keeps no cache of Paxos states";
    NO_PAXOS_REPAIR: "Paxos repair is not supported";
    NO_QUEUE: "requests wait in no queue of threads (see native_transport_queue_wait)";
    NO_REPAIR_TRACE: "repairs are not traced";
    NO_SASI: "SASI indexes are not supported, and CREATE CUSTOM INDEX refuses them";
    NO_SUMMARIES: "the node reads pages of indexes through file_cache_size, without summaries";
    NO_VIEW: "materialized views are not supported, and CREATE MATERIALIZED VIEW is refused";
    NO_WAIT: "the node serves clients once gossip has settled";
    ONE_FLUSH: "one flush runs at a time";
    ONE_FORMAT: "options of formats concern what the node does not write";
    ONE_MEMTABLE: "there is one kind of memtable; tables may name these configurations";
    PACKED: "range tombstones take as much memory as they need";
    READ_AHEAD: "compactions read ahead by whole chunks";
    REPAIRS: "validations and repairs run as the memory and the disk allow";
    RETRIES: "messages of repair are sent up to three times";
    SEVERITY: "a leaving node answers reads as before";
    THREADS: "shards serve requests, each with one thread (see shards)";
    UPGRADES: "SSTables of former formats are rewritten by compactions and by upgradesstables";
    WHOLE_SSTABLES: "an SSTable is read once it is complete";
}
