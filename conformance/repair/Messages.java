package org.apache.cassandra.repair;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.UUID;

import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.IVersionedSerializer;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.repair.consistent.ConsistentSession;
import org.apache.cassandra.repair.messages.*;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.streaming.PreviewKind;
import org.apache.cassandra.streaming.SessionSummary;
import org.apache.cassandra.streaming.StreamSummary;
import org.apache.cassandra.utils.MerkleTrees;
import org.apache.cassandra.utils.TimeUUID;

/** What Cassandra's own classes write of each message. */
class Messages
{
    static final Random random = new Random(20261129);
    static final String[] ADDRESSES = { "127.0.0.1:7000", "10.9.8.7:7012", "[2001:db8::1]:7000", "[fe80::1:2]:65535" };

    static void all() throws Exception
    {
        for (int i = 0; i < 24; i++)
        {
            prepare(i);
            validation(i);
            sync(i);
            consistent(i);
        }
    }

    static <T> byte[] bytes(IVersionedSerializer<T> serializer, T message) throws Exception
    {
        byte[] bytes = Repairs.bytes(out -> serializer.serialize(message, out, Repairs.VERSION));
        if (bytes.length != serializer.serializedSize(message, Repairs.VERSION))
            throw new AssertionError("the size of " + message);
        return bytes;
    }

    static TimeUUID id()
    {
        return TimeUUID.atUnixMicrosWithLsb(1_700_000_000_000_000L + (random.nextLong() & 0xffffffffffL), random.nextLong());
    }

    static UUID table()
    {
        return new UUID(random.nextLong(), random.nextLong());
    }

    static InetAddressAndPort address() throws Exception
    {
        return InetAddressAndPort.getByName(ADDRESSES[random.nextInt(ADDRESSES.length)]);
    }

    static List<Range<Token>> ranges(int most)
    {
        List<Range<Token>> ranges = new ArrayList<>();
        for (int i = random.nextInt(most + 1); i > 0; i--)
            ranges.add(Ranges.any(random));
        return ranges;
    }

    static RepairJobDesc desc(Collection<Range<Token>> ranges)
    {
        TimeUUID parent = random.nextInt(4) == 0 ? null : id();
        return new RepairJobDesc(parent, id(), "ks" + random.nextInt(100), "a_table", ranges);
    }

    static String show(RepairJobDesc desc)
    {
        return (desc.parentSessionId == null ? "-" : desc.parentSessionId) + "/" + desc.sessionId + "/" + desc.keyspace + "/" + desc.columnFamily
               + "/" + Ranges.show(desc.ranges);
    }

    static String show(InetAddressAndPort address)
    {
        return address.getAddress().getHostAddress() + "@" + address.getPort();
    }

    static void prepare(int i) throws Exception
    {
        List<TableId> tables = new ArrayList<>();
        List<String> shown = new ArrayList<>();
        for (int n = i % 4; n > 0; n--)
        {
            UUID table = table();
            tables.add(TableId.fromUUID(table));
            shown.add(table.toString());
        }
        TimeUUID parent = id();
        List<Range<Token>> ranges = ranges(5);
        boolean incremental = random.nextBoolean(), global = random.nextBoolean();
        long repairedAt = incremental ? 1_700_000_000_000L + random.nextInt() : 0;
        PreviewKind preview = PreviewKind.values()[i % 4];
        PrepareMessage message = new PrepareMessage(parent, tables, ranges, incremental, repairedAt, global, preview);
        Repairs.line("prepare", Repairs.join(shown), parent, Ranges.show(ranges), incremental, repairedAt, global, preview,
                     bytes(PrepareMessage.serializer, message));
        RepairJobDesc desc = desc(ranges(3));
        Repairs.line("snapshot", show(desc), bytes(SnapshotMessage.serializer, new SnapshotMessage(desc)));
        Repairs.line("cleanup", parent, bytes(CleanupMessage.serializer, new CleanupMessage(parent)));
        Repairs.line("preview", preview, preview.getSerializationVal(), preview.isPreview(), preview.logPrefix(), preview.logPrefix(parent));
    }

    static void validation(int i) throws Exception
    {
        RepairJobDesc desc = desc(ranges(4));
        int now = i == 0 ? -1 : random.nextInt();
        Repairs.line("validation_request", show(desc), now, bytes(ValidationRequest.serializer, new ValidationRequest(desc, now)));
        if (i % 4 == 0)
        {
            Repairs.line("validation_response", show(desc), "-", bytes(ValidationResponse.serializer, new ValidationResponse(desc)));
            return;
        }
        // ranges apart: the ring in parts, of which some are left out
        long[] ends = random.longs(5).sorted().toArray();
        List<Range<Token>> apart = new ArrayList<>();
        for (int n = 0; n < ends.length; n++)
            if (random.nextInt(3) > 0)
                apart.add(Ranges.of(ends[n], ends[(n + 1) % ends.length]));
        MerkleTrees trees = new MerkleTrees(Murmur3Partitioner.instance);
        List<String> shown = new ArrayList<>();
        for (Range<Token> range : apart)
        {
            int depth = random.nextInt(4);
            trees.addMerkleTree(1 << depth, range);
            trees.init(range);
            List<Long> tokens = Ranges.tokens(random, range, random.nextInt(4));
            for (long token : tokens)
                Trees.add(trees.getMerkleTree(range), token);
            shown.add(range.left + ":" + range.right + ":" + depth + ":" + Ranges.show(tokens).replace(',', ';'));
        }
        desc = desc(apart);
        Repairs.line("validation_response", show(desc), Repairs.join(shown), bytes(ValidationResponse.serializer, new ValidationResponse(desc, trees)));
    }

    static void sync(int i) throws Exception
    {
        RepairJobDesc desc = desc(ranges(3));
        InetAddressAndPort initiator = address(), source = address(), destination = address();
        List<Range<Token>> ranges = ranges(6);
        PreviewKind preview = PreviewKind.values()[i % 4];
        boolean asymmetric = random.nextBoolean();
        SyncRequest request = new SyncRequest(desc, initiator, source, destination, ranges, preview, asymmetric);
        Repairs.line("sync_request", show(desc), show(initiator), show(source), show(destination), Ranges.show(ranges), preview, asymmetric,
                     bytes(SyncRequest.serializer, request));
        List<SessionSummary> summaries = new ArrayList<>();
        StringBuilder shown = new StringBuilder();
        for (int n = random.nextInt(3); n > 0; n--)
        {
            InetAddressAndPort coordinator = address(), peer = address();
            List<StreamSummary> received = streams(), sent = streams();
            summaries.add(new SessionSummary(coordinator, peer, received, sent));
            shown.append('[').append(show(coordinator)).append(' ').append(show(peer)).append(' ').append(showStreams(received)).append(' ')
                 .append(showStreams(sent)).append(']');
        }
        boolean success = random.nextBoolean();
        SyncResponse response = new SyncResponse(desc, new SyncNodePair(source, destination), success, summaries);
        Repairs.line("sync_response", show(desc), show(source), show(destination), success, shown, bytes(SyncResponse.serializer, response));
    }

    static List<StreamSummary> streams()
    {
        List<StreamSummary> summaries = new ArrayList<>();
        for (int n = random.nextInt(3); n > 0; n--)
            summaries.add(new StreamSummary(TableId.fromUUID(table()), random.nextInt(1 << 20), random.nextLong() >>> 20));
        return summaries;
    }

    static String showStreams(List<StreamSummary> summaries)
    {
        List<String> shown = new ArrayList<>();
        for (StreamSummary summary : summaries)
            shown.add(summary.tableId.asUUID() + ":" + summary.files + ":" + summary.totalSize);
        return Repairs.join(shown);
    }

    static void consistent(int i) throws Exception
    {
        TimeUUID session = id();
        InetAddressAndPort participant = address();
        boolean yes = random.nextBoolean();
        Set<InetAddressAndPort> participants = new LinkedHashSet<>();
        for (int n = i % 4; n > 0; n--)
            participants.add(address());
        List<String> shown = new ArrayList<>();
        for (InetAddressAndPort each : participants)
            shown.add(show(each));
        Repairs.line("prepare_consistent_request", session, show(participant), Repairs.join(shown),
                     bytes(PrepareConsistentRequest.serializer, new PrepareConsistentRequest(session, participant, participants)));
        Repairs.line("prepare_consistent_response", session, show(participant), yes,
                     bytes(PrepareConsistentResponse.serializer, new PrepareConsistentResponse(session, participant, yes)));
        Repairs.line("finalize_propose", session, bytes(FinalizePropose.serializer, new FinalizePropose(session)));
        Repairs.line("finalize_promise", session, show(participant), yes, bytes(FinalizePromise.serializer, new FinalizePromise(session, participant, yes)));
        Repairs.line("finalize_commit", session, bytes(FinalizeCommit.serializer, new FinalizeCommit(session)));
        Repairs.line("fail_session", session, bytes(FailSession.serializer, new FailSession(session)));
        Repairs.line("status_request", session, bytes(StatusRequest.serializer, new StatusRequest(session)));
        ConsistentSession.State state = ConsistentSession.State.values()[i % 6];
        List<String> next = new ArrayList<>();
        for (ConsistentSession.State other : ConsistentSession.State.values())
            if (state.canTransitionTo(other))
                next.add(other.toString());
        Repairs.line("status_response", session, state, Repairs.join(next), bytes(StatusResponse.serializer, new StatusResponse(session, state)));
    }
}
