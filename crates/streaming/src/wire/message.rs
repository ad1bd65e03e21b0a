//! The messages of a session.

use schema::TableId;
use types::{Address, Reader, TokenRange, Uuid, WriteBytes};

use super::file::FileHeader;
use super::input::{Input, InputError, count, part};
use super::parts::{Unwritable, optional_uuid, put_count, put_uuid, table, uuid};

/// Requests in a message: one for each keyspace and set of ranges.
const REQUESTS_MAX: u32 = 1 << 16;
/// Ranges of a request.
const RANGES_MAX: u32 = 1 << 20;
/// Tables that a request names, or summaries in a message.
const TABLES_MAX: u32 = 1 << 16;

/// What streams are for (`StreamOperation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// What no other name is known for.
    Other,
    /// A removed node's replicas are made anew.
    RestoreReplicaCount,
    /// A node leaves.
    Unbootstrap,
    /// A node moves.
    Relocation,
    /// A node joins.
    Bootstrap,
    /// A node fetches what it should have.
    Rebuild,
    /// A program loads SSTables.
    BulkLoad,
    /// Replicas agree.
    Repair,
}

impl Operation {
    const ALL: [(Self, &'static str); 8] = [
        (Self::Other, "Other"),
        (Self::RestoreReplicaCount, "Restore replica count"),
        (Self::Unbootstrap, "Unbootstrap"),
        (Self::Relocation, "Relocation"),
        (Self::Bootstrap, "Bootstrap"),
        (Self::Rebuild, "Rebuild"),
        (Self::BulkLoad, "Bulk Load"),
        (Self::Repair, "Repair"),
    ];

    /// In Cassandra's words.
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(operation, _)| *operation == self);
        found.map_or("Other", |(_, name)| name)
    }

    fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(operation, _)| *operation)
    }

    /// Do SSTables keep their levels (`StreamOperation.keepSSTableLevel`)?
    pub fn keeps_level(self) -> bool {
        matches!(self, Self::Bootstrap | Self::Rebuild)
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Which SSTables a session would send that sends none (`PreviewKind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preview {
    /// It sends them.
    None,
    /// All.
    All,
    /// Those that are not repaired.
    Unrepaired,
    /// Those that are.
    Repaired,
}

impl Preview {
    const ALL: [Self; 4] = [Self::None, Self::All, Self::Unrepaired, Self::Repaired];

    fn number(self) -> i32 {
        self as i32
    }
}

/// What the initiator says first: who it is and what the session is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Init {
    /// The initiator.
    pub from: Address,
    /// Which of the plan's sessions with this node.
    pub session: i32,
    /// The plan, a time-UUID.
    pub plan: Uuid,
    /// What for.
    pub operation: Operation,
    /// The incremental repair that it is of.
    pub pending_repair: Option<Uuid>,
    /// Does it send anything?
    pub preview: Preview,
}

/// What one node asks another for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The keyspace.
    pub keyspace: String,
    /// Who is to have the ranges.
    pub endpoint: Address,
    /// The ranges.
    pub ranges: Vec<TokenRange>,
    /// Ranges of a transient replica.
    pub transient_ranges: Vec<TokenRange>,
    /// The tables; all of the keyspace, if there are none.
    pub tables: Vec<String>,
}

/// What a node sends of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The table.
    pub table: TableId,
    /// Files: of an SSTable that is sent whole its components, else one.
    pub files: u32,
    /// Bytes.
    pub bytes: u64,
}

/// A message.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// The initiator begins.
    Init(Init),
    /// What the initiator wants, and what it sends.
    PrepareSyn {
        /// Wanted.
        requests: Vec<Request>,
        /// Sent.
        summaries: Vec<Summary>,
    },
    /// What the follower sends.
    PrepareSynAck {
        /// Sent.
        summaries: Vec<Summary>,
    },
    /// The follower may send it.
    PrepareAck,
    /// A file follows.
    Stream(Box<FileHeader>),
    /// A file arrived.
    Received {
        /// Of which table.
        table: TableId,
        /// Which.
        sequence: i32,
    },
    /// The follower has and has sent all.
    Complete,
    /// The other side cannot go on.
    SessionFailed,
    /// The other side is still there.
    KeepAlive,
}

impl Message {
    /// What it is, as in Cassandra's `StreamMessage.Type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Init(_) => "STREAM_INIT",
            Self::PrepareSyn { .. } => "PREPARE_SYN",
            Self::PrepareSynAck { .. } => "PREPARE_SYNACK",
            Self::PrepareAck => "PREPARE_ACK",
            Self::Stream(_) => "STREAM",
            Self::Received { .. } => "RECEIVED",
            Self::Complete => "COMPLETE",
            Self::SessionFailed => "SESSION_FAILED",
            Self::KeepAlive => "KEEP_ALIVE",
        }
    }

    fn number(&self) -> u8 {
        match self {
            Self::PrepareSyn { .. } => 1,
            Self::Stream(_) => 2,
            Self::Received { .. } => 3,
            Self::Complete => 5,
            Self::SessionFailed => 6,
            Self::KeepAlive => 7,
            Self::PrepareSynAck { .. } => 8,
            Self::PrepareAck => 9,
            Self::Init(_) => 10,
        }
    }

    /// Appends it; of a file its header.
    ///
    /// # Errors
    /// If something in it does not fit into its format.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        out.put_u8(self.number());
        match self {
            Self::Init(init) => init.write(out)?,
            Self::PrepareSyn { requests, summaries } => {
                put_count(out, requests.len())?;
                requests.iter().try_for_each(|request| request.write(out))?;
                put_summaries(out, summaries)?;
            }
            Self::PrepareSynAck { summaries } => put_summaries(out, summaries)?,
            Self::Stream(header) => header.write(out)?,
            Self::Received { table, sequence } => {
                out.put(&table.0);
                out.put_i32(*sequence);
            }
            Self::PrepareAck | Self::Complete | Self::SessionFailed | Self::KeepAlive => {}
        }
        Ok(())
    }

    /// Reads one; of a file its header. `None` where the bytes end before a message begins.
    ///
    /// # Errors
    /// If the bytes end within it, or are none.
    pub async fn read<I: Input>(input: &mut I) -> Result<Option<Self>, InputError> {
        if input.buffered().is_empty()
            && let Err(error) = input.fill(1).await
        {
            return match error.kind() {
                std::io::ErrorKind::UnexpectedEof => Ok(None),
                _ => Err(error.into()),
            };
        }
        let number = part(input, "a message", |reader| reader.u8()).await?;
        let message = match number {
            1 => Self::PrepareSyn {
                requests: requests(input).await?,
                summaries: summaries(input).await?,
            },
            2 => Self::Stream(Box::new(FileHeader::read(input).await?)),
            3 => {
                let what = "the receipt of a file";
                let (table, sequence) =
                    part(input, what, |reader| Ok((table(reader)?, reader.i32()?))).await?;
                Self::Received { table, sequence }
            }
            5 => Self::Complete,
            6 => Self::SessionFailed,
            7 => Self::KeepAlive,
            8 => Self::PrepareSynAck { summaries: summaries(input).await? },
            9 => Self::PrepareAck,
            10 => Self::Init(Init::read(input).await?),
            number => {
                let what = "a kind of message";
                return Err(InputError::Impossible { what, number: number.into() });
            }
        };
        Ok(Some(message))
    }
}

impl Init {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        self.from.write(out);
        out.put_i32(self.session);
        out.put(&self.plan.to_bytes());
        out.put_utf(self.operation.name())?;
        put_uuid(out, self.pending_repair);
        out.put_i32(self.preview.number());
        Ok(())
    }

    async fn read<I: Input>(input: &mut I) -> Result<Self, InputError> {
        let what = "the beginning of a session";
        let (from, session, plan, name) = part(input, what, |reader| {
            Ok((Address::read(reader)?, reader.i32()?, uuid(reader)?, reader.utf()?))
        })
        .await?;
        let (pending_repair, kind) =
            part(input, what, |reader| Ok((optional_uuid(reader)?, reader.i32()?))).await?;
        let operation = Operation::parse(&name);
        let operation = operation.ok_or(InputError::Unknown { what: "operation", name })?;
        let preview = Preview::ALL.into_iter().find(|preview| preview.number() == kind);
        let impossible = InputError::Impossible { what: "a kind of preview", number: kind.into() };
        let preview = preview.ok_or(impossible)?;
        Ok(Self { from, session, plan, operation, pending_repair, preview })
    }
}

impl Request {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), Unwritable> {
        out.put_utf(&self.keyspace)?;
        put_count(out, self.tables.len())?;
        self.endpoint.write(out);
        for ranges in [&self.ranges, &self.transient_ranges] {
            put_count(out, ranges.len())?;
            ranges.iter().for_each(|range| range.write(out));
        }
        Ok(self.tables.iter().try_for_each(|table| out.put_utf(table))?)
    }

    async fn read<I: Input>(input: &mut I) -> Result<Self, InputError> {
        let what = "a request";
        let keyspace = part(input, what, |reader| reader.utf()).await?;
        let count_of_tables = count(input, "a count of tables", TABLES_MAX).await?;
        let endpoint = part(input, what, Address::read).await?;
        let ranges = ranges(input).await?;
        let transient_ranges = self::ranges(input).await?;
        let mut tables = Vec::new();
        for _ in 0..count_of_tables {
            tables.push(part(input, what, |reader| reader.utf()).await?);
        }
        Ok(Self { keyspace, endpoint, ranges, transient_ranges, tables })
    }
}

async fn requests<I: Input>(input: &mut I) -> Result<Vec<Request>, InputError> {
    let mut requests = Vec::new();
    for _ in 0..count(input, "a count of requests", REQUESTS_MAX).await? {
        requests.push(Request::read(input).await?);
    }
    Ok(requests)
}

async fn ranges<I: Input>(input: &mut I) -> Result<Vec<TokenRange>, InputError> {
    let mut ranges = Vec::new();
    for _ in 0..count(input, "a count of ranges", RANGES_MAX).await? {
        ranges.push(part(input, "a range", TokenRange::read).await?);
    }
    Ok(ranges)
}

/// What is announced. All of it together fits into Cassandra's signed numbers: no sum of a session
/// overflows, whatever a node says.
async fn summaries<I: Input>(input: &mut I) -> Result<Vec<Summary>, InputError> {
    let mut summaries = Vec::new();
    let (mut all_files, mut all_bytes) = (0_i32, 0_i64);
    for _ in 0..count(input, "a count of summaries", TABLES_MAX).await? {
        let read = |reader: &mut Reader<'_>| Ok((table(reader)?, reader.i32()?, reader.i64()?));
        let (table, files, bytes) = part(input, "a summary", read).await?;
        let impossible = |number| InputError::Impossible { what: "a summary", number };
        let unsigned_files = u32::try_from(files).map_err(|_| impossible(files.into()))?;
        let unsigned_bytes = u64::try_from(bytes).map_err(|_| impossible(bytes))?;
        all_files = all_files.checked_add(files).ok_or_else(|| impossible(files.into()))?;
        all_bytes = all_bytes.checked_add(bytes).ok_or_else(|| impossible(bytes))?;
        summaries.push(Summary { table, files: unsigned_files, bytes: unsigned_bytes });
    }
    Ok(summaries)
}

fn put_summaries(out: &mut Vec<u8>, summaries: &[Summary]) -> Result<(), Unwritable> {
    put_count(out, summaries.len())?;
    for Summary { table, files, bytes } in summaries {
        out.put(&table.0);
        out.put_u32(*files);
        out.put_u64(*bytes);
    }
    Ok(())
}
