//! READ and RANGE: what shards found put together in the order of the ring, limited, and written as
//! data or digest.
//!
//! A row goes through `fetched` (columns), the purger, `conditions` (filters and indexes) and
//! `limit`, in Cassandra's order. Each shard packs what it has (`scan`), of a range at most a
//! megabyte at once. This file puts the parts in the order of the ring and counts again. It closes
//! ranges that a limit left open.
//!
//! `conformance/replica` recorded what a replica of Cassandra 5.0.9 answers to 408 generated reads.
//! The tests of `replica` must answer the same, from memtables and SSTables, with one shard and
//! three.

pub(crate) mod conditions;
pub(crate) mod fetched;
pub(crate) mod limit;
mod scan;
pub(crate) mod slices;
mod text;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use env::Instant;
use internode::payload::PayloadError;
use internode::payload::read::{
    DataDigest, DataWriter, ReadCommand, ReadResponse, RepairedDigest, Target,
};
use internode::{FailureReason, Flags, Param, Params};
use rows::codec::{Header, PartitionStart, StatsCollector};
use rows::{BoundKind, BoundRef, Deletion, MarkerRef, RowRef, Unfiltered};
use schema::{Table, TableId};
use storage::{Engine, PartitionKey, StorageError, Trace};
use types::{Reader, Token};

use crate::peer_request::PeerRequest;
use crate::peers::{Concern, Peers};
use crate::reconcile::{Given, Partition, own};
use crate::replica_read::conditions::Conditions;
use crate::replica_read::limit::Counter;
use crate::replica_read::scan::{Chunk, Failed, Part, Wanted, read_partition, read_range};
use crate::replica_read::slices::{Stretch, slices};
use crate::scanned::{Excess, Scanned, Thresholds, unpaged_bytes_max};
use crate::served::check_readable;
use crate::shard_context::{STATEMENT, ShardContext};

/// A request to read may have so many bytes: names of rows take 50 times as much memory once they
/// are decoded.
pub(crate) const READ_REQUEST_BYTES_MAX: usize = 1 << 20;
/// An answer to a read has at most so many bytes, and no more than a result without pages; what is
/// larger fails for its size. Cassandra takes messages of 128 MiB.
pub(crate) const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Where what is read goes.
enum Output<'t> {
    /// To another node.
    Away(Payload<'t>),
    /// To this one, which coordinates.
    Here(Own),
}

impl Output<'_> {
    /// Bytes that it takes.
    fn size(&self) -> usize {
        match self {
            Self::Away(Payload::Data(writer)) => writer.size(),
            Self::Away(Payload::Digest(_)) => 0,
            Self::Here(own) => own.bytes,
        }
    }
}

/// Partitions that this node has.
#[derive(Default)]
struct Own {
    partitions: Vec<Partition>,
    /// Bytes that they take.
    bytes: usize,
}

impl Own {
    fn start(&mut self, key: &PartitionKey, deletion: Deletion, statics: Option<&[u8]>) {
        self.bytes += size_of::<Partition>() + key.bytes.len() + statics.map_or(0, <[u8]>::len);
        self.partitions.push(Partition::new(key.clone(), deletion, statics.map(<[u8]>::to_vec)));
    }

    fn push(&mut self, unfiltered: Unfiltered<'_>) {
        let Some(last) = self.partitions.last_mut() else { return };
        let before = last.packed.len();
        last.push(unfiltered);
        self.bytes += size_of::<usize>() + last.packed.len() - before;
    }
}

/// What is written for another node.
enum Payload<'t> {
    Data(DataWriter<'t>),
    Digest(DataDigest<'t>),
}

/// What is made of the parts of an answer.
struct Answer<'t> {
    wanted: &'t Wanted,
    fetched: &'t Header,
    output: Output<'t>,
    scanned: Scanned,
    /// The last partition that was looked at.
    last: Option<Token>,
}

/// Nothing more can be given.
enum End {
    /// More than a read may go over.
    Over(Excess),
    Failed(FailureReason),
}

impl<'t> Answer<'t> {
    fn new(wanted: &'t Wanted, fetched: &'t Header, output: Output<'t>) -> Self {
        Self { wanted, fetched, output, scanned: Scanned::default(), last: None }
    }

    fn scan(&mut self, scanned: Scanned) -> Result<(), End> {
        self.scanned += scanned;
        match self.wanted.thresholds.excess(self.scanned) {
            Some(excess) => Err(End::Over(excess)),
            None => Ok(()),
        }
    }

    /// As much of a partition as the limits let through; a range that stays open is closed at the
    /// last row (`RTBoundCloser`).
    fn part(&mut self, part: &Part, counter: &mut Counter<'_>) -> Result<(), End> {
        self.last = Some(part.key.token);
        self.scan(part.before)?;
        let key = &part.key.bytes;
        let reversed = self.wanted.is_reversed();
        let statics = part.statics.as_deref();
        let gives_static = counter.start(key, statics.map(RowRef::from_packed));
        let statics = statics.filter(|_| gives_static);
        let mut stats = StatsCollector::default();
        stats.deletion(part.deletion);
        statics.map(RowRef::from_packed).into_iter().for_each(|row| stats.row(row));
        let (mut taken, mut open, mut last_row) = (0, None, None);
        for (unfiltered, scanned) in part.unfiltereds() {
            if counter.stops_in_partition() {
                break;
            }
            self.scan(scanned)?;
            match unfiltered {
                Unfiltered::Row(row) => {
                    if !counter.row(key, row) {
                        break;
                    }
                    stats.row(row);
                    last_row = Some(row.clustering());
                }
                Unfiltered::Marker(marker) => {
                    stats.deletion(marker.end);
                    stats.deletion(marker.start);
                    open = marker.opens(reversed);
                    last_row = None;
                }
            }
            taken += 1;
        }
        if taken == part.items.len() && !counter.stops_in_partition() {
            self.scan(part.after)?;
        }
        counter.end();
        // what is written of rows is less what all of them have in common
        let header = match self.output {
            Output::Away(Payload::Data(_)) => {
                let mut header = self.fetched.clone();
                header.stats = stats.finish();
                Cow::Owned(header)
            }
            _ => Cow::Borrowed(self.fetched),
        };
        self.start(part, &header, statics, taken == 0)?;
        // who stops at a range's start has nothing of it
        let cut = usize::from(open.is_some() && last_row.is_none());
        for (at, (unfiltered, _)) in part.unfiltereds().take(taken).enumerate() {
            match unfiltered {
                Unfiltered::Marker(marker) if at + cut == taken => {
                    let left = last_marker(marker, reversed).map(Unfiltered::Marker);
                    left.map_or(Ok(()), |left| self.unfiltered(&header, left))?;
                }
                other => self.unfiltered(&header, other)?,
            }
        }
        if let (Some(deletion), Some(values)) = (open, last_row) {
            let kind = if reversed { BoundKind::InclStart } else { BoundKind::InclEnd };
            let marker = MarkerRef::bound(BoundRef::new(kind, values), deletion);
            self.unfiltered(&header, Unfiltered::Marker(marker))?;
        }
        self.end(taken == 0 && statics.is_none() && part.deletion.is_live());
        match self.output.size() > self.wanted.bytes_max {
            true => Err(End::Failed(FailureReason::ReadSize)),
            false => Ok(()),
        }
    }

    fn start(
        &mut self,
        part: &Part,
        header: &Header,
        statics: Option<&[u8]>,
        has_no_rows: bool,
    ) -> Result<(), End> {
        let start = PartitionStart {
            key: &part.key.bytes,
            is_reversed: self.wanted.is_reversed(),
            header: None,
            deletion: part.deletion,
            static_row: statics.map(Cow::Borrowed),
            row_estimate: None,
            consumed: 0,
        };
        let is_empty = has_no_rows && statics.is_none() && part.deletion.is_live();
        match &mut self.output {
            Output::Away(Payload::Digest(digest)) => digest.start(&start, Some(header)),
            Output::Away(Payload::Data(writer)) if is_empty => {
                writer.empty_partition(start.key, start.is_reversed);
            }
            Output::Away(Payload::Data(writer)) => {
                writer.start(header, &start).map_err(unwritten)?;
            }
            Output::Here(own) => own.start(&part.key, part.deletion, statics),
        }
        Ok(())
    }

    fn unfiltered(&mut self, header: &Header, unfiltered: Unfiltered<'_>) -> Result<(), End> {
        match &mut self.output {
            Output::Away(Payload::Digest(digest)) => digest.unfiltered(unfiltered),
            Output::Away(Payload::Data(writer)) => {
                writer.unfiltered(header, unfiltered).map_err(unwritten)?;
            }
            Output::Here(own) => own.push(unfiltered),
        }
        Ok(())
    }

    fn end(&mut self, is_empty: bool) {
        if let Output::Away(Payload::Data(writer)) = &mut self.output
            && !is_empty
        {
            writer.end();
        }
    }
}

fn unwritten(_: rows::codec::EncodeError) -> End {
    End::Failed(FailureReason::Unknown)
}

impl<'t> Payload<'t> {
    fn new(wanted: &'t Wanted, fetched: &'t Header) -> Self {
        let layout = &*wanted.table.layout;
        match wanted.command.digest {
            Some(_) => Self::Digest(DataDigest::new(layout)),
            None => Self::Data(DataWriter::new(layout, fetched, Vec::new())),
        }
    }

    /// Nothing is known to be repaired: who asks for a digest of that is told that none is
    /// conclusive.
    fn finish(self, is_tracked: bool) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Self::Digest(digest) => ReadResponse::Digest(&digest.finish()).write(&mut out),
            Self::Data(writer) => {
                let data = writer.finish();
                let repaired = RepairedDigest { digest: &[], conclusive: !is_tracked };
                ReadResponse::Data { repaired, data: &data }.write(&mut out);
            }
        }
        out
    }
}

/// What is left of a marker after which nothing comes: the end of a range that it closes, if it
/// does.
fn last_marker(marker: MarkerRef<'_>, reversed: bool) -> Option<MarkerRef<'_>> {
    let deletion = marker.closes(reversed)?;
    let kind = if reversed { marker.bound.kind.start_of() } else { marker.bound.kind.end_of() };
    Some(MarkerRef::bound(marker.bound.with_kind(kind), deletion))
}

/// What was read, and what was gone over for it.
pub(crate) struct Seen<T> {
    pub answer: T,
    /// What is to be said of that besides: warnings.
    pub params: Params,
    pub scanned: Scanned,
    /// Where the last partition lies that was looked at.
    pub last: Option<Token>,
}

impl<T> Seen<T> {
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Seen<U> {
        let Self { answer, params, scanned, last } = self;
        Seen { answer: of(answer), params, scanned, last }
    }
}

/// What one shard gives of a range, chunk by chunk.
struct Stream {
    shard: usize,
    parts: VecDeque<Part>,
    after: Scanned,
    last: Option<PartitionKey>,
}

/// Reads what this node has, for whoever coordinates.
pub(crate) struct ReplicaReads {
    shard: Rc<ShardContext>,
    peers: Rc<Peers>,
}

impl ReplicaReads {
    pub fn new(shard: &Rc<ShardContext>, peers: &Rc<Peers>) -> Rc<Self> {
        Rc::new(Self { shard: Rc::clone(shard), peers: Rc::clone(peers) })
    }

    /// READ or RANGE: the payload of the answer.
    pub async fn read_here(
        self: &Rc<Self>,
        request: &PeerRequest<'_>,
    ) -> Result<Seen<Vec<u8>>, FailureReason> {
        if request.payload.len() > READ_REQUEST_BYTES_MAX {
            return Err(FailureReason::ReadSize);
        }
        let schema = self.shard.schema();
        let mut reader = Reader::new(request.payload);
        let table_of = |id: &[u8; 16]| schema.table_by_id(&TableId(*id)).cloned();
        let read = ReadCommand::read(&mut reader, &table_of);
        let (command, table) = read.map_err(|error: PayloadError| error.reason())?;
        reader.finish().map_err(|_| FailureReason::Unknown)?;
        let (flags, deadline, trace) = (request.flags, request.deadline, request.trace);
        let wanted = self.wanted(Arc::new(command), table, flags, deadline, trace)?;
        let wanted = Arc::new(wanted);
        let fetched = wanted.command.columns.header();
        let payload = || Payload::new(&wanted, &fetched);
        let output = Output::Away(payload());
        let seen = self.read_to(&wanted, &fetched, request.flags, output).await?;
        let is_tracked = request.flags.contains(Flags::TRACK_REPAIRED_DATA);
        Ok(seen.map(|output| match output {
            Some(Output::Away(payload)) => payload.finish(is_tracked),
            _ => payload().finish(false),
        }))
    }

    /// What this node has to give to a read that it coordinates itself: as it would answer another,
    /// without having written and read it.
    pub async fn read_own(
        self: &Rc<Self>,
        table: &Arc<Table>,
        command: &Arc<ReadCommand>,
        flags: Flags,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<Seen<Given>, FailureReason> {
        let (command, table) = (Arc::clone(command), Arc::clone(table));
        let wanted = Arc::new(self.wanted(command, table, flags, deadline, trace)?);
        let fetched = wanted.command.columns.header();
        let seen = self.read_to(&wanted, &fetched, flags, Output::Here(Own::default())).await?;
        Ok(seen.map(|output| match output {
            Some(Output::Here(has)) => own(&wanted.table, &wanted.command, has.partitions),
            _ => Given::default(),
        }))
    }

    /// Reads into an output; nothing if that went over more than a read may, of which the
    /// parameters tell.
    async fn read_to<'t>(
        self: &Rc<Self>,
        wanted: &'t Arc<Wanted>,
        fetched: &'t Header,
        flags: Flags,
        output: Output<'t>,
    ) -> Result<Seen<Option<Output<'t>>>, FailureReason> {
        let mut answer = Answer::new(wanted, fetched, output);
        if let Output::Away(Payload::Digest(digest)) = &mut answer.output
            && self.shard.env.planted("digest_skips_column")
        {
            digest.skip_last_column();
        }
        let ended = self.read_into(wanted, &mut answer).await;
        let Answer { output, scanned, last, .. } = answer;
        let warns = flags.contains(Flags::TRACK_WARNINGS);
        match ended {
            Ok(()) => {
                let params =
                    if warns { warnings(&wanted.thresholds, scanned) } else { Params::NONE };
                Ok(Seen { answer: Some(output), params, scanned, last })
            }
            Err(End::Over(excess)) if warns => {
                // nothing, and why
                let param = match excess {
                    Excess::Tombstones => {
                        Param::TombstoneFail(int(wanted.thresholds.failure.saturating_add(1)))
                    }
                    Excess::Bytes => Param::ReadSizeFail(long(scanned.bytes)),
                };
                let params = Params::NONE.with(param);
                Ok(Seen { answer: None, params, scanned, last })
            }
            Err(End::Over(Excess::Tombstones)) => Err(FailureReason::TooManyTombstones),
            Err(End::Over(Excess::Bytes)) => Err(FailureReason::ReadSize),
            Err(End::Failed(reason)) => Err(reason),
        }
    }

    /// A read as shards need it.
    fn wanted(
        &self,
        command: Arc<ReadCommand>,
        table: Arc<Table>,
        flags: Flags,
        deadline: Instant,
        trace: &Trace,
    ) -> Result<Wanted, FailureReason> {
        check_readable(&self.shard.schema(), &table)?;
        let refused = |error: PayloadError| error.reason();
        let conditions = Conditions::new(&table, &command.filter, command.needs_reconciliation);
        let conditions = conditions.map_err(refused)?;
        let (Target::Partition { rows, .. } | Target::Range { rows, .. }) = &command.target;
        let slices = slices(&table.layout, rows).map_err(refused)?;
        let stretch = match &command.target {
            Target::Partition { .. } => None,
            Target::Range { keys, .. } => Some(Stretch::new(keys).map_err(refused)?),
        };
        let mut thresholds = Thresholds::of(&self.shard.config, &table);
        if !flags.contains(Flags::TRACK_WARNINGS) {
            (thresholds.bytes_warn, thresholds.bytes_failure) = (u64::MAX, u64::MAX);
        }
        let bytes_max = ANSWER_BYTES_MAX.min(unpaged_bytes_max(&self.shard.config));
        let trace = trace.clone();
        Ok(Wanted {
            command,
            table,
            conditions,
            slices,
            stretch,
            thresholds,
            deadline,
            bytes_max,
            trace,
        })
    }

    async fn read_into(
        self: &Rc<Self>,
        wanted: &Arc<Wanted>,
        answer: &mut Answer<'_>,
    ) -> Result<(), End> {
        let mut counter = wanted.counter();
        if let Target::Partition { key, .. } = &wanted.command.target {
            let key = PartitionKey::new(key.clone());
            if !self.peers.may_answer(&wanted.table.keyspace, key.token, Concern::Read) {
                return Err(End::Failed(FailureReason::Unknown));
            }
            let chunk = self.read_one(wanted, key).await?;
            for part in &chunk.parts {
                answer.part(part, &mut counter)?;
            }
            return answer.scan(chunk.after);
        }
        let mut streams = Vec::new();
        for shard in 0..self.shard.env.shards() {
            streams.push((shard, self.range_of(shard, wanted, None)));
        }
        let mut open = Vec::new();
        for (shard, stream) in streams {
            open.push(stream_of(shard, self.ended(stream.await)?));
        }
        while !counter.stops() {
            // what follows in the ring is not known until each shard has told its next, or that it
            // has none
            for stream in open.iter_mut().filter(|stream| stream.parts.is_empty()) {
                while stream.parts.is_empty()
                    && let Some(last) = stream.last.take()
                {
                    answer.scan(std::mem::take(&mut stream.after))?;
                    let next = self.range_of(stream.shard, wanted, Some(last)).await;
                    *stream = stream_of(stream.shard, self.ended(next)?);
                }
            }
            let heads = open.iter_mut().filter(|stream| !stream.parts.is_empty());
            let first = heads.min_by(|a, b| head(a).cmp(&head(b)));
            let Some(part) = first.and_then(|stream| stream.parts.pop_front()) else {
                for stream in &mut open {
                    answer.scan(std::mem::take(&mut stream.after))?;
                }
                break;
            };
            answer.part(&part, &mut counter)?;
            self.shard.env.maybe_yield().await;
        }
        Ok(())
    }

    async fn read_one(
        self: &Rc<Self>,
        wanted: &Arc<Wanted>,
        key: PartitionKey,
    ) -> Result<Chunk, End> {
        let shard = self.shard.engine.owner(key.token);
        let task = Arc::clone(wanted);
        if shard == self.shard.env.shard() {
            return self.ended(read_partition(Rc::clone(&self.shard.engine), task, key).await);
        }
        let run = move |engine: Rc<Engine>| read_partition(engine, task, key);
        let result = self.shard.engine.shards().call_async(shard, STATEMENT, run).await;
        self.ended(result.map_err(|error| Failed::from(StorageError::from(error))).flatten())
    }

    /// A chunk of what a shard has of a range; under way at once.
    fn range_of(
        self: &Rc<Self>,
        shard: usize,
        wanted: &Arc<Wanted>,
        after: Option<PartitionKey>,
    ) -> env::Task<Result<Chunk, Failed>> {
        let (engine, task) = (Rc::clone(&self.shard.engine), Arc::clone(wanted));
        self.shard.env.spawn_task(STATEMENT, async move {
            let run = move |engine: Rc<Engine>| read_range(engine, task, after);
            let result = engine.shards().call_async(shard, STATEMENT, run).await;
            result.map_err(|error| Failed::from(StorageError::from(error))).flatten()
        })
    }

    fn ended(&self, result: Result<Chunk, Failed>) -> Result<Chunk, End> {
        result.map_err(|failed| match failed {
            Failed::Reason(reason) => End::Failed(reason),
            Failed::Storage(error) => End::Failed(self.shard.reason_of(&error)),
        })
    }
}

fn stream_of(shard: usize, chunk: Chunk) -> Stream {
    let Chunk { parts, after, last } = chunk;
    Stream { shard, parts: parts.into(), after, last }
}

fn head(stream: &Stream) -> Option<&PartitionKey> {
    stream.parts.front().map(|part| &part.key)
}

/// What a coordinator is told of a read that it got an answer to.
fn warnings(thresholds: &Thresholds, scanned: Scanned) -> Params {
    let mut params = Params::NONE;
    if scanned.tombstones > thresholds.warn {
        params.set(Param::TombstoneWarn(int(scanned.tombstones)));
    }
    if scanned.bytes >= thresholds.bytes_warn {
        params.set(Param::ReadSizeWarn(long(scanned.bytes)));
    }
    params
}

fn int(number: u64) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

fn long(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
