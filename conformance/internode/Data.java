package org.apache.cassandra.net;

import java.lang.reflect.Constructor;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;

import org.apache.cassandra.batchlog.Batch;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.statements.SelectStatement;
import org.apache.cassandra.cql3.statements.schema.CreateTableStatement;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.db.CounterMutation;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.PartitionRangeReadCommand;
import org.apache.cassandra.db.ReadCommand;
import org.apache.cassandra.db.ReadQuery;
import org.apache.cassandra.db.ReadResponse;
import org.apache.cassandra.db.RegularAndStaticColumns;
import org.apache.cassandra.db.SinglePartitionReadCommand;
import org.apache.cassandra.db.SinglePartitionReadQuery;
import org.apache.cassandra.db.SnapshotCommand;
import org.apache.cassandra.db.TruncateRequest;
import org.apache.cassandra.db.TruncateResponse;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.SingletonUnfilteredPartitionIterator;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.gms.ApplicationState;
import org.apache.cassandra.gms.EndpointState;
import org.apache.cassandra.gms.GossipDigest;
import org.apache.cassandra.gms.GossipDigestAck;
import org.apache.cassandra.gms.GossipDigestAck2;
import org.apache.cassandra.gms.GossipDigestSyn;
import org.apache.cassandra.gms.HeartBeatState;
import org.apache.cassandra.gms.VersionedValue;
import org.apache.cassandra.hints.Hint;
import org.apache.cassandra.io.IVersionedAsymmetricSerializer;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.locator.Replica;
import org.apache.cassandra.schema.KeyspaceMetadata;
import org.apache.cassandra.schema.KeyspaceParams;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaTransformations;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.Tables;
import org.apache.cassandra.service.ClientState;
import org.apache.cassandra.service.paxos.Ballot;
import org.apache.cassandra.service.paxos.Commit;
import org.apache.cassandra.service.paxos.PrepareResponse;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.TimeUUID;

/** What Cassandra's own classes make of gossip, reads, their answers, and writes. */
class Data
{
    static final long TS = 1_700_000_000_000_000L;
    static final int NOW = 1_700_000_000;
    static final UUID ID = UUID.fromString("5c3b3720-e5dd-11f1-9a15-1b96078e4459");

    static final Map<String, String> TABLES = new LinkedHashMap<>();
    static final Map<String, TableMetadata> METADATA = new LinkedHashMap<>();

    static void all() throws Exception
    {
        gossip();
        TABLES.put("t", "CREATE TABLE t (k int, c text, s int static, v int, m map<text, int>, f frozen<list<int>>, si smallint, d date, PRIMARY KEY (k, c))");
        TABLES.put("u", "CREATE TABLE u (a int, b text, c1 int, c2 bigint, l list<text>, st set<int>, x blob, PRIMARY KEY ((a, b), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)");
        TABLES.put("n", "CREATE TABLE n (k text PRIMARY KEY, v timestamp, sm map<int, text> )");
        TABLES.put("ct", "CREATE TABLE ct (k bigint PRIMARY KEY, n counter)");
        StringBuilder wide = new StringBuilder("CREATE TABLE w (k uuid PRIMARY KEY");
        for (int i = 0; i < 70; i++)
            wide.append(String.format(", v%02d int", i));
        TABLES.put("w", wide + ")");
        Tables.Builder tables = Tables.builder();
        for (Map.Entry<String, String> entry : TABLES.entrySet())
        {
            int number = METADATA.size() + 1;
            TableMetadata table = CreateTableStatement.parse(entry.getValue(), "ks").id(TableId.fromUUID(new UUID(0x1000L, number))).build();
            METADATA.put(entry.getKey(), table);
            tables.add(table);
        }
        Schema.instance.transform(SchemaTransformations.addKeyspace(KeyspaceMetadata.create("ks", KeyspaceParams.simple(1), tables.build()), true));
        for (String name : TABLES.keySet())
            METADATA.put(name, Schema.instance.getTableMetadata("ks", name));

        String[] selects = {
            "t SELECT * FROM ks.t WHERE k = 1",
            "t SELECT * FROM ks.t WHERE k = 1 AND c >= 'a' LIMIT 10",
            "t SELECT v FROM ks.t WHERE k = 1 AND c = 'a'",
            "t SELECT v, s FROM ks.t WHERE k = 1 AND c IN ('a', 'b', 'z') ORDER BY c DESC",
            "t SELECT k, c, s, v, si FROM ks.t WHERE k = 1 AND c > 'a' AND c < 'q' PER PARTITION LIMIT 3",
            "t SELECT DISTINCT k, s FROM ks.t",
            "t SELECT m['x'], m['y'..'z'] FROM ks.t WHERE k = 1",
            "t SELECT * FROM ks.t WHERE v > 5 AND m['x'] = 1 AND m CONTAINS KEY 'y' ALLOW FILTERING",
            "t SELECT * FROM ks.t WHERE token(k) > 10 AND token(k) <= 20000 LIMIT 7",
            "t SELECT * FROM ks.t WHERE token(k) >= 10 AND token(k) < 20000",
            "t SELECT * FROM ks.t WHERE c = 'x' ALLOW FILTERING",
            "t SELECT count(*) FROM ks.t WHERE k = 1 GROUP BY k, c",
            "u SELECT * FROM ks.u WHERE a = 1 AND b = 'x'",
            "u SELECT l FROM ks.u WHERE a = 1 AND b = 'x' AND c1 = 5 AND c2 > 3",
            "u SELECT st FROM ks.u WHERE a = 1 AND b = 'x' AND (c1, c2) IN ((1, 2), (3, 4))",
            "u SELECT * FROM ks.u WHERE a = 1 AND b = 'x' AND c1 = 5 ORDER BY c1 ASC, c2 DESC",
            "n SELECT * FROM ks.n WHERE k = 'key'",
            "n SELECT v FROM ks.n WHERE k = 'key' LIMIT 1",
            "n SELECT * FROM ks.n WHERE v <= 5 ALLOW FILTERING",
            "ct SELECT * FROM ks.ct WHERE k = 7",
            "w SELECT * FROM ks.w WHERE k = 5c3b3720-e5dd-11f1-9a15-1b96078e4459",
            "w SELECT v03, v65 FROM ks.w WHERE k = 5c3b3720-e5dd-11f1-9a15-1b96078e4459",
        };
        Replica replica = Replica.fullReplica(InetAddressAndPort.getByName("127.0.0.41:7000"), new Murmur3Partitioner.LongToken(0), new Murmur3Partitioner.LongToken(1));
        for (int n = 0; n < selects.length; n++)
        {
            String table = selects[n].substring(0, selects[n].indexOf(' '));
            String cql = selects[n].substring(table.length() + 1);
            Vectors.line("#", n + " " + cql);
            ReadCommand command = command(cql);
            Vectors.line("read", n + " " + table + " " + hex(ReadCommand.serializer, command));
            ReadCommand digest = command.copyAsDigestQuery(replica);
            digest.setDigestVersion(Wire.VERSION);
            Vectors.line("read", n + "-digest " + table + " " + hex(ReadCommand.serializer, digest));
            for (Map.Entry<String, PartitionUpdate> data : data(table).entrySet())
                if (command instanceof SinglePartitionReadCommand)
                    response(n, table, data.getKey(), data.getValue(), (SinglePartitionReadCommand) command);
        }
        paging();
        only();
        writes();
    }

    static ReadCommand command(String cql)
    {
        SelectStatement.RawStatement raw = QueryProcessor.parseStatement(cql, SelectStatement.RawStatement.class, "SELECT");
        ReadQuery query = raw.prepare(ClientState.forInternalCalls()).getQuery(QueryOptions.DEFAULT, NOW);
        if (query instanceof SinglePartitionReadQuery.Group)
            return (ReadCommand) ((SinglePartitionReadQuery.Group<?>) query).queries.get(0);
        return (ReadCommand) query;
    }

    /** Reads of a few columns that fetch nothing else, as those of conditions do. */
    static void only() throws Exception
    {
        TableMetadata t = METADATA.get("t");
        SinglePartitionReadCommand all = (SinglePartitionReadCommand) command("SELECT * FROM ks.t WHERE k = 1");
        for (String[] names : new String[][] { { "v" }, { "v", "m", "s" } })
        {
            RegularAndStaticColumns.Builder columns = RegularAndStaticColumns.builder();
            for (String name : names)
                columns.add(t.getColumn(ByteBufferUtil.bytes(name)));
            SinglePartitionReadCommand command = SinglePartitionReadCommand.create(t, NOW, all.partitionKey(), ColumnFilter.selection(columns.build()), all.clusteringIndexFilter());
            String n = "only-" + names.length;
            Vectors.line("read", n + " t " + hex(ReadCommand.serializer, command));
            for (Map.Entry<String, PartitionUpdate> data : data("t").entrySet())
                response(n, "t", data.getKey(), data.getValue(), command);
        }
    }

    static void paging() throws Exception
    {
        TableMetadata t = METADATA.get("t");
        Clustering<?> last = Clustering.make(UTF8Type.instance.decompose("b"));
        SinglePartitionReadCommand single = (SinglePartitionReadCommand) command("SELECT * FROM ks.t WHERE k = 1");
        Vectors.line("read", "paging-1 t " + hex(ReadCommand.serializer, single.forPaging(last, single.limits().forPaging(5))));
        Vectors.line("read", "paging-2 t " + hex(ReadCommand.serializer, single.withUpdatedLimit(single.limits().forPaging(5, ByteBufferUtil.bytes(1), 3))));
        PartitionRangeReadCommand range = (PartitionRangeReadCommand) command("SELECT * FROM ks.t");
        Vectors.line("read", "paging-3 t " + hex(ReadCommand.serializer,
            PartitionRangeReadCommand.create(t, NOW, range.columnFilter(), range.rowFilter(), range.limits().forPaging(9),
                range.dataRange().forPaging(new org.apache.cassandra.dht.Bounds<>(t.partitioner.decorateKey(ByteBufferUtil.bytes(1)), t.partitioner.getMinimumToken().maxKeyBound()), t.comparator, last, false))));
    }

    static Map<String, PartitionUpdate> data(String table)
    {
        TableMetadata metadata = METADATA.get(table);
        Map<String, PartitionUpdate> all = new LinkedHashMap<>();
        switch (table)
        {
            case "t":
            {
                PartitionUpdate.SimpleBuilder b = PartitionUpdate.simpleBuilder(metadata, 1).nowInSec(NOW).timestamp(TS);
                b.row().add("s", 5);
                b.row("a").add("v", 7).add("f", Arrays.asList(1, 2)).add("si", (short) 3).add("m", map("x", 1, "y", 2));
                b.row("b").noPrimaryKeyLivenessInfo().add("v", 8);
                b.timestamp(TS + 5).addRangeTombstone().start("c").inclStart().end("m").exclEnd();
                b.row("p").ttl(1000).add("v", 1);
                b.row("q").delete();
                b.row("z").delete("v").appendAll("m", map("q", 9));
                all.put("rows", b.build());
                all.put("deleted", PartitionUpdate.simpleBuilder(metadata, 1).nowInSec(NOW).timestamp(TS).delete().build());
                PartitionUpdate.SimpleBuilder only = PartitionUpdate.simpleBuilder(metadata, 1).nowInSec(NOW).timestamp(TS + 1);
                only.row().add("s", 6);
                all.put("static", only.build());
                all.put("empty", PartitionUpdate.emptyUpdate(metadata, metadata.partitioner.decorateKey(ByteBufferUtil.bytes(1))));
                break;
            }
            case "u":
            {
                PartitionUpdate.SimpleBuilder b = PartitionUpdate.simpleBuilder(metadata, 1, "x").nowInSec(NOW).timestamp(TS);
                b.row(5, 4L).add("x", ByteBufferUtil.bytes("blob")).add("st", new LinkedHashSet<>(Arrays.asList(3, 1, 2)));
                b.row(5, 9L).add("x", ByteBufferUtil.bytes(""));
                b.row(3, 4L).appendAll("st", new LinkedHashSet<>(Arrays.asList(8)));
                b.timestamp(TS + 9).addRangeTombstone().start(5, 10L).inclStart().end(5).inclEnd();
                all.put("rows", b.build());
                break;
            }
            case "n":
            {
                PartitionUpdate.SimpleBuilder b = PartitionUpdate.simpleBuilder(metadata, "key").nowInSec(NOW).timestamp(TS).ttl(60);
                b.row().add("v", new java.util.Date(1234567L)).add("sm", Collections.singletonMap(5, "five"));
                all.put("rows", b.build());
                break;
            }
            case "w":
            {
                PartitionUpdate.SimpleBuilder b = PartitionUpdate.simpleBuilder(metadata, ID).nowInSec(NOW).timestamp(TS);
                b.row().add("v03", 3).add("v20", 20).add("v65", 65);
                all.put("rows", b.build());
                break;
            }
        }
        return all;
    }

    static Map<String, Integer> map(Object... pairs)
    {
        Map<String, Integer> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2)
            map.put((String) pairs[i], (Integer) pairs[i + 1]);
        return map;
    }

    /** The whole answer with data, and the digest of the same. */
    static void response(Object n, String table, String name, PartitionUpdate data, SinglePartitionReadCommand command) throws Exception
    {
        ReadResponse full = ReadResponse.createRemoteDataResponse(new SingletonUnfilteredPartitionIterator(
            command.clusteringIndexFilter().getUnfilteredRowIterator(command.columnFilter(), data)), ByteBufferUtil.EMPTY_BYTE_BUFFER, true, command, Wire.VERSION);
        Vectors.line("response", n + " " + table + " " + name + " " + hex(ReadResponse.serializer, full) + " " + ByteBufferUtil.bytesToHex(full.digest(command)));
    }

    static void writes() throws Exception
    {
        PartitionUpdate update = data("t").get("rows");
        Mutation mutation = new Mutation(update);
        String encoded = hex(Mutation.serializer, mutation);
        Vectors.line("mutation", "t " + encoded);
        Vectors.line("mutation", "u " + hex(Mutation.serializer, new Mutation(data("u").get("rows"))));
        Vectors.line("mutation", "w " + hex(Mutation.serializer, new Mutation(data("w").get("rows"))));
        Hint hint = Hint.create(mutation, 1_700_000_000_123L, 864000);
        Vectors.line("hint", encoded + " " + hex(field(Class.forName("org.apache.cassandra.hints.HintMessage"), "serializer"),
            make(Class.forName("org.apache.cassandra.hints.HintMessage"), ID, hint)));
        Mutation other = new Mutation(data("u").get("rows"));
        Batch batch = Batch.createLocal(TimeUUID.fromUuid(ID), 1_700_000_000_123_456L, Arrays.asList(mutation, other));
        Vectors.line("batch", encoded + " " + hex(Mutation.serializer, other) + " " + hex(Batch.serializer, batch));
        PartitionUpdate.SimpleBuilder count = PartitionUpdate.simpleBuilder(METADATA.get("ct"), 7L).nowInSec(NOW).timestamp(TS);
        count.row().noPrimaryKeyLivenessInfo().add("n", org.apache.cassandra.db.context.CounterContext.instance().createUpdate(3));
        Vectors.line("counter", "LOCAL_QUORUM " + hex(CounterMutation.serializer, new CounterMutation(new Mutation(count.build()), ConsistencyLevel.LOCAL_QUORUM)));
        Ballot ballot = Ballot.fromUuid(ID);
        Commit prepare = Commit.newPrepare(update.partitionKey(), update.metadata(), ballot);
        Vectors.line("commit", "prepare " + hex(Commit.serializer, prepare));
        Vectors.line("commit", "proposal " + hex(Commit.serializer, Commit.newProposal(ballot, update)));
        Vectors.line("promise", "true " + hex(PrepareResponse.serializer, new PrepareResponse(true, Commit.emptyCommit(update.partitionKey(), update.metadata()), Commit.newProposal(ballot, update))));
        Vectors.line("promise", "false " + hex(PrepareResponse.serializer, new PrepareResponse(false, prepare, Commit.emptyCommit(update.partitionKey(), update.metadata()))));
        Vectors.line("truncate", hex(TruncateRequest.serializer, new TruncateRequest("ks", "t\u00e9")));
        Vectors.line("truncated", hex(TruncateResponse.serializer, new TruncateResponse("ks", "t\u00e9", true)));
        Vectors.line("snapshot", hex(SnapshotCommand.serializer, new SnapshotCommand("ks", "t", "now", true)));
        List<Mutation> schema = Arrays.asList(mutation, other);
        Object serializer = field(Class.forName("org.apache.cassandra.schema.SchemaMutationsSerializer"), "instance");
        Vectors.line("schema", hex(serializer, schema));
    }

    static void gossip() throws Exception
    {
        InetAddressAndPort one = InetAddressAndPort.getByName("127.0.0.41:7000");
        InetAddressAndPort two = InetAddressAndPort.getByName("[2001:db8::1]:7012");
        List<GossipDigest> digests = Arrays.asList(make(GossipDigest.class, one, 1_700_000_000, 77), make(GossipDigest.class, two, 0, 0));
        String partitioner = Murmur3Partitioner.class.getCanonicalName();
        Vectors.line("gossip", "syn " + hex(GossipDigestSyn.serializer, make(GossipDigestSyn.class, "Test Cluster", partitioner, digests)));
        Vectors.line("gossip", "shadow " + hex(GossipDigestSyn.serializer, make(GossipDigestSyn.class, "Test Cluster", partitioner, Collections.emptyList())));
        Map<ApplicationState, VersionedValue> states = new java.util.EnumMap<>(ApplicationState.class);
        states.put(ApplicationState.STATUS_WITH_PORT, make(VersionedValue.class, "NORMAL,-9", 5));
        StringBuilder tokens = new StringBuilder();
        for (int b : new int[] { 0, 0, 0, 8, 0x80, 0xff, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0 })
            tokens.append((char) b);
        states.put(ApplicationState.TOKENS, make(VersionedValue.class, tokens.toString(), 4));
        states.put(ApplicationState.RELEASE_VERSION, make(VersionedValue.class, "5.0.9", 2));
        EndpointState full = new EndpointState(make(HeartBeatState.class, 1_700_000_000, 77), states);
        EndpointState bare = new EndpointState(make(HeartBeatState.class, 3, 1));
        Map<InetAddressAndPort, EndpointState> map = new LinkedHashMap<>();
        map.put(one, full);
        map.put(two, bare);
        Vectors.line("gossip", "ack " + hex(GossipDigestAck.serializer, make(GossipDigestAck.class, digests, map)));
        Vectors.line("gossip", "empty-ack " + hex(GossipDigestAck.serializer, make(GossipDigestAck.class, Collections.emptyList(), Collections.emptyMap())));
        Vectors.line("gossip", "ack2 " + hex(GossipDigestAck2.serializer, make(GossipDigestAck2.class, map)));
        for (ApplicationState state : ApplicationState.values())
            Vectors.line("state", state.ordinal() + " " + state);
    }

    static Object field(Class<?> of, String name) throws Exception
    {
        java.lang.reflect.Field field = of.getDeclaredField(name);
        field.setAccessible(true);
        return field.get(null);
    }

    @SuppressWarnings("unchecked")
    static <T> T make(Class<T> of, Object... arguments) throws Exception
    {
        for (Constructor<?> constructor : of.getDeclaredConstructors())
        {
            constructor.setAccessible(true);
            if (constructor.getParameterCount() == arguments.length)
                try { return (T) constructor.newInstance(arguments); }
                catch (IllegalArgumentException e) { continue; }
        }
        throw new IllegalArgumentException("no constructor of " + of);
    }

    @SuppressWarnings("unchecked")
    static String hex(Object serializer, Object value) throws Exception
    {
        try (DataOutputBuffer out = new DataOutputBuffer())
        {
            if (serializer instanceof org.apache.cassandra.db.Mutation.MutationSerializer)
                ((org.apache.cassandra.db.Mutation.MutationSerializer) serializer).serialize((Mutation) value, out, Wire.VERSION);
            else
                ((IVersionedAsymmetricSerializer<Object, Object>) serializer).serialize(value, out, Wire.VERSION);
            return ByteBufferUtil.bytesToHex(out.buffer());
        }
    }
}
