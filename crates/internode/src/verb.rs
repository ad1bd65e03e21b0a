//! What a message is (`net.Verb`): its number, how soon it must get through, how long it is worth
//! anything, and what answers it. The same in 4.1 and 5.0.

use segment::MAX_OVERHEAD;

use crate::handshake::Connection;

/// Messages of more bytes go over the connection for large ones.
pub const LARGE_MESSAGE: usize = (64 << 10) - MAX_OVERHEAD;
/// How soon a message must get through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// On the urgent connection.
    P0,
    /// Small or empty answers.
    P1,
    /// What others wait for.
    P2,
    /// Requests.
    P3,
    /// What can be repeated at leisure.
    P4,
}

/// Which setting says how long a message is worth anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// `request_timeout`.
    Request,
    /// `write_request_timeout`.
    Write,
    /// `read_request_timeout`.
    Read,
    /// `range_request_timeout`.
    Range,
    /// `counter_write_request_timeout`.
    Counter,
    /// `truncate_request_timeout`.
    Truncate,
    /// `repair_request_timeout`.
    Repair,
    /// The same, or `request_timeout` where repair tries again.
    RepairRetried,
    /// Like [`Self::Long`], or `request_timeout` where Merkle trees are asked for again.
    Validation,
    /// `block_for_peers_timeout_in_secs`.
    Ping,
    /// Five minutes, or `request_timeout` if that is longer.
    Long,
    /// As long as the request that it answers.
    OfRequest,
}

/// The settings that [`Expiry`] names, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// `request_timeout`.
    pub request: u64,
    /// `write_request_timeout`.
    pub write: u64,
    /// `read_request_timeout`.
    pub read: u64,
    /// `range_request_timeout`.
    pub range: u64,
    /// `counter_write_request_timeout`.
    pub counter: u64,
    /// `truncate_request_timeout`.
    pub truncate: u64,
    /// `repair_request_timeout`.
    pub repair: u64,
    /// `block_for_peers_timeout_in_secs`.
    pub ping: u64,
}

/// What gossip is worth at least, in milliseconds.
const LONG: u64 = 5 * 60 * 1000;

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            request: 10_000,
            write: 2_000,
            read: 5_000,
            range: 10_000,
            counter: 5_000,
            truncate: 60_000,
            repair: 120_000,
            ping: 10_000,
        }
    }
}

impl Timeouts {
    /// How long a message is worth anything from its creation on, in milliseconds; none if as long
    /// as its request.
    pub fn of(&self, expiry: Expiry) -> Option<u64> {
        Some(match expiry {
            Expiry::Request => self.request,
            Expiry::Write => self.write,
            Expiry::Read => self.read,
            Expiry::Range => self.range,
            Expiry::Counter => self.counter,
            Expiry::Truncate => self.truncate,
            Expiry::Repair | Expiry::RepairRetried => self.repair,
            Expiry::Validation | Expiry::Long => self.request.max(LONG),
            Expiry::Ping => self.ping,
            Expiry::OfRequest => return None,
        })
    }
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Exchange {
    /// It answers another.
    Answer,
    /// Nothing answers it.
    OneWay,
    /// It is answered.
    Request(Verb),
}

macro_rules! verbs {
    (@ one_way) => { Exchange::OneWay };
    (@ $answer:ident) => { Exchange::Request(Verb::$answer) };
    (@) => { Exchange::Answer };
    ($($verb:ident = $number:literal, $name:literal, $priority:ident, $expiry:ident $(, => $answer:ident)? $(, $one_way:ident)?;)*) => {
        /// A kind of message, under Cassandra's name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs, reason = "the names say it")]
        #[repr(u8)]
        pub enum Verb {
            $($verb = $number,)*
        }

        impl Verb {
            /// All, by number.
            pub const ALL: &[Self] = &[$(Self::$verb,)*];

            /// By number.
            pub fn from_number(number: u64) -> Option<Self> {
                match number {
                    $($number => Some(Self::$verb),)*
                    _ => None,
                }
            }

            /// Cassandra's name, as in logs and `nodetool`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$verb => $name,)*
                }
            }

            /// How soon it must get through.
            pub fn priority(self) -> Priority {
                match self {
                    $(Self::$verb => Priority::$priority,)*
                }
            }

            /// How long it is worth anything.
            pub fn expiry(self) -> Expiry {
                match self {
                    $(Self::$verb => Expiry::$expiry,)*
                }
            }

            fn exchange(self) -> Exchange {
                match self {
                    $(Self::$verb => verbs!(@ $($answer)? $($one_way)?),)*
                }
            }
        }
    };
}

verbs! {
    MutationReq = 0, "MUTATION_REQ", P3, Write, => MutationRsp;
    HintReq = 1, "HINT_REQ", P4, Write, => HintRsp;
    ReadRepairReq = 2, "READ_REPAIR_REQ", P1, Write, => ReadRepairRsp;
    ReadReq = 3, "READ_REQ", P3, Read, => ReadRsp;
    BatchStoreReq = 5, "BATCH_STORE_REQ", P3, Write, => BatchStoreRsp;
    BatchRemoveReq = 6, "BATCH_REMOVE_REQ", P3, Write, => BatchRemoveRsp;
    RangeReq = 9, "RANGE_REQ", P3, Range, => RangeRsp;
    GossipDigestSyn = 14, "GOSSIP_DIGEST_SYN", P0, Long, one_way;
    GossipDigestAck = 15, "GOSSIP_DIGEST_ACK", P0, Long, one_way;
    GossipDigestAck2 = 16, "GOSSIP_DIGEST_ACK2", P0, Long, one_way;
    SchemaPushReq = 18, "SCHEMA_PUSH_REQ", P1, Request, => SchemaPushRsp;
    TruncateReq = 19, "TRUNCATE_REQ", P0, Truncate, => TruncateRsp;
    SchemaVersionReq = 20, "SCHEMA_VERSION_REQ", P1, Request, => SchemaVersionRsp;
    ReplicationDoneReq = 22, "REPLICATION_DONE_REQ", P0, Request, => ReplicationDoneRsp;
    CounterMutationReq = 24, "COUNTER_MUTATION_REQ", P2, Counter, => CounterMutationRsp;
    SnapshotReq = 27, "SNAPSHOT_REQ", P0, Request, => SnapshotRsp;
    SchemaPullReq = 28, "SCHEMA_PULL_REQ", P1, Request, => SchemaPullRsp;
    GossipShutdown = 29, "GOSSIP_SHUTDOWN", P0, Request, one_way;
    EchoReq = 31, "ECHO_REQ", P0, Request, => EchoRsp;
    PaxosPrepareReq = 33, "PAXOS_PREPARE_REQ", P2, Write, => PaxosPrepareRsp;
    PaxosProposeReq = 34, "PAXOS_PROPOSE_REQ", P2, Write, => PaxosProposeRsp;
    PaxosCommitReq = 35, "PAXOS_COMMIT_REQ", P2, Write, => PaxosCommitRsp;
    PingReq = 37, "PING_REQ", P1, Ping, => PingRsp;
    Paxos2CommitRemoteReq = 38, "PAXOS2_COMMIT_REMOTE_REQ", P2, Write, => MutationRsp;
    Paxos2CommitRemoteRsp = 39, "PAXOS2_COMMIT_REMOTE_RSP", P2, Write;
    Paxos2PrepareReq = 40, "PAXOS2_PREPARE_REQ", P2, Write, => Paxos2PrepareRsp;
    Paxos2PrepareRefreshReq = 41, "PAXOS2_PREPARE_REFRESH_REQ", P2, Write, => Paxos2PrepareRefreshRsp;
    Paxos2ProposeReq = 42, "PAXOS2_PROPOSE_REQ", P2, Write, => Paxos2ProposeRsp;
    Paxos2CommitAndPrepareReq = 43, "PAXOS2_COMMIT_AND_PREPARE_REQ", P2, Write, => Paxos2CommitAndPrepareRsp;
    Paxos2RepairReq = 44, "PAXOS2_REPAIR_REQ", P2, Write, => Paxos2RepairRsp;
    Paxos2CleanupStartPrepareReq = 45, "PAXOS2_CLEANUP_START_PREPARE_REQ", P2, Repair, => Paxos2CleanupStartPrepareRsp;
    Paxos2CleanupReq = 46, "PAXOS2_CLEANUP_REQ", P2, Repair, => Paxos2CleanupRsp;
    Paxos2CleanupFinishPrepareReq = 47, "PAXOS2_CLEANUP_FINISH_PREPARE_REQ", P2, Repair, => Paxos2CleanupFinishPrepareRsp;
    Paxos2CleanupCompleteReq = 48, "PAXOS2_CLEANUP_COMPLETE_REQ", P2, Repair, => Paxos2CleanupCompleteRsp;
    Paxos2PrepareRsp = 50, "PAXOS2_PREPARE_RSP", P2, Write;
    Paxos2PrepareRefreshRsp = 51, "PAXOS2_PREPARE_REFRESH_RSP", P2, Write;
    Paxos2ProposeRsp = 52, "PAXOS2_PROPOSE_RSP", P2, Write;
    Paxos2CommitAndPrepareRsp = 53, "PAXOS2_COMMIT_AND_PREPARE_RSP", P2, Write;
    Paxos2RepairRsp = 54, "PAXOS2_REPAIR_RSP", P2, Write;
    Paxos2CleanupStartPrepareRsp = 55, "PAXOS2_CLEANUP_START_PREPARE_RSP", P2, Repair;
    Paxos2CleanupRsp = 56, "PAXOS2_CLEANUP_RSP", P2, Repair;
    Paxos2CleanupRsp2 = 57, "PAXOS2_CLEANUP_RSP2", P2, Repair, one_way;
    Paxos2CleanupFinishPrepareRsp = 58, "PAXOS2_CLEANUP_FINISH_PREPARE_RSP", P2, Repair;
    Paxos2CleanupCompleteRsp = 59, "PAXOS2_CLEANUP_COMPLETE_RSP", P2, Repair;
    MutationRsp = 60, "MUTATION_RSP", P1, Write;
    HintRsp = 61, "HINT_RSP", P1, Write;
    ReadRepairRsp = 62, "READ_REPAIR_RSP", P1, Write;
    ReadRsp = 63, "READ_RSP", P2, Read;
    BatchStoreRsp = 65, "BATCH_STORE_RSP", P1, Write;
    BatchRemoveRsp = 66, "BATCH_REMOVE_RSP", P1, Write;
    RangeRsp = 69, "RANGE_RSP", P2, Range;
    TruncateRsp = 79, "TRUNCATE_RSP", P0, Truncate;
    SchemaVersionRsp = 80, "SCHEMA_VERSION_RSP", P1, Request;
    ReplicationDoneRsp = 82, "REPLICATION_DONE_RSP", P0, Request;
    CounterMutationRsp = 84, "COUNTER_MUTATION_RSP", P1, Counter;
    SnapshotRsp = 87, "SNAPSHOT_RSP", P0, Request;
    SchemaPullRsp = 88, "SCHEMA_PULL_RSP", P1, Request;
    EchoRsp = 91, "ECHO_RSP", P0, Request;
    PaxosPrepareRsp = 93, "PAXOS_PREPARE_RSP", P2, Write;
    PaxosProposeRsp = 94, "PAXOS_PROPOSE_RSP", P2, Write;
    PaxosCommitRsp = 95, "PAXOS_COMMIT_RSP", P2, Write;
    PingRsp = 97, "PING_RSP", P1, Ping;
    SchemaPushRsp = 98, "SCHEMA_PUSH_RSP", P1, Request;
    FailureRsp = 99, "FAILURE_RSP", P0, OfRequest;
    RepairRsp = 100, "REPAIR_RSP", P1, Repair;
    ValidationReq = 101, "VALIDATION_REQ", P1, RepairRetried, => RepairRsp;
    ValidationRsp = 102, "VALIDATION_RSP", P1, Validation, => RepairRsp;
    SyncReq = 103, "SYNC_REQ", P1, RepairRetried, => RepairRsp;
    SyncRsp = 104, "SYNC_RSP", P1, RepairRetried, => RepairRsp;
    PrepareMsg = 105, "PREPARE_MSG", P1, RepairRetried, => RepairRsp;
    SnapshotMsg = 106, "SNAPSHOT_MSG", P1, RepairRetried, => RepairRsp;
    CleanupMsg = 107, "CLEANUP_MSG", P1, RepairRetried, => RepairRsp;
    PrepareConsistentReq = 108, "PREPARE_CONSISTENT_REQ", P1, RepairRetried, => RepairRsp;
    PrepareConsistentRsp = 109, "PREPARE_CONSISTENT_RSP", P1, RepairRetried, => RepairRsp;
    FinalizeProposeMsg = 110, "FINALIZE_PROPOSE_MSG", P1, RepairRetried, => RepairRsp;
    FinalizePromiseMsg = 111, "FINALIZE_PROMISE_MSG", P1, RepairRetried, => RepairRsp;
    FinalizeCommitMsg = 112, "FINALIZE_COMMIT_MSG", P1, RepairRetried, => RepairRsp;
    FailedSessionMsg = 113, "FAILED_SESSION_MSG", P1, RepairRetried, => RepairRsp;
    StatusReq = 114, "STATUS_REQ", P1, Repair, => RepairRsp;
    StatusRsp = 115, "STATUS_RSP", P1, Repair, => RepairRsp;
}

impl Verb {
    /// Its number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What answers it.
    pub fn answer(self) -> Option<Self> {
        match self.exchange() {
            Exchange::Request(answer) => Some(answer),
            Exchange::Answer | Exchange::OneWay => None,
        }
    }

    /// Does it answer something?
    pub fn is_answer(self) -> bool {
        self.exchange() == Exchange::Answer
    }

    /// The connection of a message of `size` bytes.
    pub fn connection(self, size: usize) -> Connection {
        match self.priority() {
            _ if size > LARGE_MESSAGE => Connection::Large,
            Priority::P0 => Connection::Urgent,
            _ => Connection::Small,
        }
    }
}
