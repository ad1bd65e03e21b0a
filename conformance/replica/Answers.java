package org.apache.cassandra.net;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.CQLStatement;
import org.apache.cassandra.cql3.QueryOptions;
import org.apache.cassandra.cql3.QueryProcessor;
import org.apache.cassandra.cql3.statements.ModificationStatement;
import org.apache.cassandra.cql3.statements.SelectStatement;
import org.apache.cassandra.cql3.statements.schema.AlterSchemaStatement;
import org.apache.cassandra.cql3.statements.schema.CreateTableStatement;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.PartitionRangeReadCommand;
import org.apache.cassandra.db.ReadCommand;
import org.apache.cassandra.db.ReadExecutionController;
import org.apache.cassandra.db.ReadQuery;
import org.apache.cassandra.db.ReadResponse;
import org.apache.cassandra.db.SinglePartitionReadCommand;
import org.apache.cassandra.db.SinglePartitionReadQuery;
import org.apache.cassandra.db.commitlog.CommitLog;
import org.apache.cassandra.db.context.CounterContext;
import org.apache.cassandra.db.filter.RowFilter;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.LongType;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.partitions.UnfilteredPartitionIterator;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Bounds;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.exceptions.InvalidRequestException;
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
import org.apache.cassandra.transport.Dispatcher;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.CounterId;

/**
 * Prints what a replica of Cassandra's answers to reads of what generated mutations wrote, a line each: `table` with its
 * number and text, `mutation` with its bytes, `read` with the request's, the answer's with data, and the digest of those
 * that are asked for that. The tests of crates/cluster hold this node's answers against it (testdata/replica).
 *
 * With a file of the corpus it prints the same of what that does with its table `t`, and `cql` with each ALTER; a read with conditions also as
 * one whose answers are put together with those of others.
 */
class Answers
{
    static final long TS = 1_700_000_000_000_000L;
    static final int NOW = 1_700_000_000;
    static final int VERSION = 12;
    static final Map<String, TableMetadata> TABLES = new LinkedHashMap<>();
    static final Random random = new Random(7);
    static PrintStream out;

    static final String[] CREATE = {
        "t CREATE TABLE t (k int, c text, s int static, ss set<int> static, v int, m map<text, int>, f frozen<list<int>>, si smallint, d date, PRIMARY KEY (k, c))",
        "u CREATE TABLE u (a int, b text, c1 int, c2 bigint, l list<text>, st set<int>, x blob, PRIMARY KEY ((a, b), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)",
        "n CREATE TABLE n (k text PRIMARY KEY, v timestamp, w int, sm map<int, text>)",
        "ct CREATE TABLE ct (k bigint, c int, n counter, o counter, PRIMARY KEY (k, c))",
    };

    public static void main(String[] args)
    {
        try { all(args); }
        catch (Throwable e) { e.printStackTrace(); System.exit(1); }
        System.exit(0);
    }

    static void all(String[] args) throws Exception
    {
        out = System.out;
        System.setOut(new PrintStream(new ByteArrayOutputStream()));
        Scratch.configure("answers");
        DatabaseDescriptor.daemonInitialization();
        DatabaseDescriptor.createAllDirectories();
        Keyspace.setInitialized();
        CommitLog.instance.start();
        if (args.length > 0)
        {
            corpus(Path.of(args[0]));
            out.flush();
            return;
        }
        tables();
        for (int n = 0; n < 260; n++)
            apply(mutation());
        for (int n = 0; n < 420; n++)
        {
            String cql = select();
            try { read(cql, command(cql)); }
            catch (InvalidRequestException e) { continue; }
        }
        out.flush();
    }

    static void tables() throws Exception
    {
        Tables.Builder tables = Tables.builder();
        for (int n = 0; n < CREATE.length; n++)
        {
            String cql = CREATE[n].substring(CREATE[n].indexOf(' ') + 1);
            out.println("table " + (n + 1) + " " + cql);
            java.util.UUID id = new java.util.UUID(0x1000L, 0x8000_0000_0000_0000L | (n + 1));
            tables.add(CreateTableStatement.parse(cql, "ks").id(TableId.fromUUID(id)).build());
        }
        Schema.instance.transform(SchemaTransformations.addKeyspace(KeyspaceMetadata.create("ks", KeyspaceParams.simple(1), tables.build()), true));
        for (String create : CREATE)
        {
            String name = create.substring(0, create.indexOf(' '));
            TABLES.put(name, Schema.instance.getTableMetadata("ks", name));
            Keyspace.open("ks").getColumnFamilyStore(name);
        }
    }

    static void corpus(Path file) throws Exception
    {
        KeyspaceMetadata keyspace = KeyspaceMetadata.create("ks", KeyspaceParams.simple(1));
        Schema.instance.transform(SchemaTransformations.addKeyspace(keyspace, true));
        int number = 0;
        long now = NOW;
        for (String line : Files.readAllLines(file))
        {
            number++;
            if (line.startsWith("-- now "))
                now = Long.parseLong(line.substring("-- now ".length()));
            String cql = line.replaceFirst("^(.*?\\b(TABLE|FROM|INTO|UPDATE)) t\\b", "$1 ks.t").replaceFirst(";$", "");
            if (line.startsWith("--") || !cql.contains(" ks.t"))
                continue;
            try { statement(line.substring(0, 6), number, cql, now); }
            catch (InvalidRequestException | ConfigurationException e) { continue; }
        }
    }

    static void statement(String word, int number, String cql, long now) throws Exception
    {
        ClientState client = ClientState.forInternalCalls();
        switch (word)
        {
            case "CREATE":
                TableId id = TableId.fromUUID(new java.util.UUID(0x1000L, 0x8000_0000_0000_0001L));
                Schema.instance.transform(SchemaTransformations.addTable(CreateTableStatement.parse(cql, "ks").id(id).build(), false));
                out.println("table 1 " + cql.replace(" ks.", " "));
                break;
            case "ALTER ":
                Schema.instance.transform((AlterSchemaStatement) QueryProcessor.parseStatement(cql).prepare(client));
                out.println("cql " + cql);
                // what was written before is not read out of memory
                Keyspace.open("ks").getColumnFamilyStore("t").forceBlockingFlush(ColumnFamilyStore.FlushReason.UNIT_TESTS);
                break;
            case "SELECT":
                SelectStatement.RawStatement raw = QueryProcessor.parseStatement(cql, SelectStatement.RawStatement.class, "SELECT");
                ReadQuery query = raw.prepare(client).getQuery(QueryOptions.DEFAULT, now);
                ReadCommand asked = query instanceof SinglePartitionReadQuery.Group
                                  ? (ReadCommand) ((SinglePartitionReadQuery.Group<?>) query).queries.get(0)
                                  : (ReadCommand) query;
                if (query instanceof SinglePartitionReadQuery.Group)
                    read("line " + number + ": " + cql, asked);
                if (!asked.rowFilter().isEmpty())
                    read("line " + number + ", reconciled: " + cql, reconciled(asked));
                break;
            default:
                CQLStatement statement = QueryProcessor.parseStatement(cql).prepare(client);
                Method mutations = Arrays.stream(ModificationStatement.class.getDeclaredMethods()).filter(m -> m.getName().equals("getMutations")).findAny().get();
                mutations.setAccessible(true);
                for (Object mutation : (List<?>) mutations.invoke(statement, client, QueryOptions.DEFAULT, true, TS + number, now, Dispatcher.RequestTime.forImmediateExecution()))
                    apply((Mutation) mutation);
        }
    }

    /** The same as a coordinator asks that puts the answers of several replicas together. */
    static ReadCommand reconciled(ReadCommand command)
    {
        RowFilter filter = RowFilter.create(true);
        for (RowFilter.Expression expression : command.rowFilter())
        {
            // the only kinds that CQL makes without an index
            if (expression instanceof RowFilter.SimpleExpression)
                filter.add(expression.column(), expression.operator(), expression.getIndexValue());
            else
                throw new InvalidRequestException("an expression of a map's entry");
        }
        if (command instanceof PartitionRangeReadCommand)
            return PartitionRangeReadCommand.create(command.metadata(), command.nowInSec(), command.columnFilter(), filter, command.limits(), ((PartitionRangeReadCommand) command).dataRange());
        SinglePartitionReadCommand single = (SinglePartitionReadCommand) command;
        return SinglePartitionReadCommand.create(command.metadata(), command.nowInSec(), command.columnFilter(), filter, command.limits(), single.partitionKey(), single.clusteringIndexFilter());
    }

    static int below(int n) { return random.nextInt(n); }
    static boolean one(int in) { return random.nextInt(in) == 0; }
    static String letter() { return String.valueOf((char) ('a' + below(9))); }

    /** Times at which something is deleted or expires: long ago, lately, later. */
    static int when() { return new int[] { NOW - 2_000_000, NOW - 100, NOW - 10 }[below(3)]; }

    static PartitionUpdate.SimpleBuilder builder(String table)
    {
        TableMetadata metadata = TABLES.get(table);
        switch (table)
        {
            case "t": return PartitionUpdate.simpleBuilder(metadata, below(5));
            case "u": return PartitionUpdate.simpleBuilder(metadata, below(2), letter().equals("a") ? "x" : "y");
            case "n": return PartitionUpdate.simpleBuilder(metadata, letter());
            default: return PartitionUpdate.simpleBuilder(metadata, (long) below(3));
        }
    }

    static Object[] clustering(String table)
    {
        switch (table)
        {
            case "t": return new Object[] { letter() };
            case "u": return new Object[] { below(3), (long) below(4) };
            case "ct": return new Object[] { below(4) };
            default: return new Object[0];
        }
    }

    static void values(String table, Row.SimpleBuilder row)
    {
        switch (table)
        {
            case "t":
                if (one(2)) { if (one(5)) row.delete("v"); else row.add("v", below(6)); }
                if (one(3)) row.add("f", Arrays.asList(below(3), below(3)));
                if (one(3)) row.add("si", (short) below(9));
                if (one(3)) row.appendAll("m", map(letter(), below(4), letter(), below(4)));
                else if (one(6)) row.add("m", map("a", below(4)));
                else if (one(9)) row.delete("m");
                break;
            case "u":
                if (one(2)) row.add("x", ByteBufferUtil.bytes(one(4) ? "" : letter()));
                if (one(3)) row.add("st", new java.util.LinkedHashSet<>(Arrays.asList(below(3), 3 + below(3))));
                else if (one(4)) row.delete("st");
                break;
            case "n":
                if (one(2)) row.add("v", new java.util.Date(1_000_000L + below(4)));
                if (one(2)) row.add("w", below(4));
                if (one(3)) row.appendAll("sm", map(below(4), letter()));
                break;
            default:
                break;
        }
    }

    static Map<Object, Object> map(Object... pairs)
    {
        Map<Object, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2)
            map.put(pairs[i], pairs[i + 1]);
        return map;
    }

    static PartitionUpdate mutation()
    {
        String table = new ArrayList<>(TABLES.keySet()).get(new int[] { 0, 0, 0, 1, 1, 2, 3 }[below(7)]);
        PartitionUpdate.SimpleBuilder update = builder(table).nowInSec(when()).timestamp(TS + below(40));
        if (table.equals("ct"))
        {
            CounterId host = CounterId.fromInt(1 + below(3));
            Row.SimpleBuilder row = update.row(clustering(table)).noPrimaryKeyLivenessInfo();
            for (String name : new String[] { "n", "o" })
                if (one(2))
                    row.add(name, CounterContext.instance().createGlobal(host, 1 + below(9), below(100)));
            if (one(8))
                row.delete("n");
            return update.build();
        }
        if (one(3))
            update.ttl(new int[] { 5, 50, 1000, 3_000_000 }[below(4)]);
        if (one(14))
            return update.delete().build();
        if (table.equals("t") && one(4))
        {
            Row.SimpleBuilder row = update.row();
            if (one(4)) row.delete("s"); else row.add("s", below(5));
            if (one(3)) row.appendAll("ss", new java.util.LinkedHashSet<>(Arrays.asList(below(3))));
        }
        if (table.equals("t") && one(5))
        {
            PartitionUpdate.SimpleBuilder.RangeTombstoneBuilder range = update.addRangeTombstone();
            String from = letter(), to = letter();
            if (from.compareTo(to) > 0) { String other = from; from = to; to = other; }
            range.start(from);
            if (one(2) || from.equals(to)) range.inclStart(); else range.exclStart();
            range.end(to);
            if (one(2) || from.equals(to)) range.inclEnd(); else range.exclEnd();
        }
        if (table.equals("u") && one(5))
        {
            int c1 = below(3);
            PartitionUpdate.SimpleBuilder.RangeTombstoneBuilder range = update.addRangeTombstone();
            if (one(2)) range.start(c1).inclStart().end(c1).inclEnd();
            else range.start(c1, (long) below(2)).inclStart().end(c1, 2L + below(2)).exclEnd();
        }
        // a row comes once: of several CQL makes one, which the builder does not
        java.util.Set<List<Object>> seen = new java.util.HashSet<>();
        for (int n = below(3); n >= 0; n--)
        {
            Object[] clustering = clustering(table);
            if (!seen.add(Arrays.asList(clustering)))
                continue;
            Row.SimpleBuilder row = update.row(clustering);
            if (one(4)) row.noPrimaryKeyLivenessInfo();
            if (one(9)) { row.delete(); continue; }
            values(table, row);
        }
        return update.build();
    }

    static void apply(PartitionUpdate update) throws Exception
    {
        if (update.isEmpty())
            return;
        apply(new Mutation(update));
    }

    static void apply(Mutation mutation) throws Exception
    {
        out.println("mutation " + hex(Mutation.serializer, mutation));
        mutation.apply(false);
    }

    static String columns(String table)
    {
        switch (table)
        {
            case "t": return new String[] { "*", "*", "*", "v", "k, c, s, v", "c, si", "m['a'], v", "m['b'..'d']", "s", "f, m", "c, ss" }[below(11)];
            case "u": return new String[] { "*", "*", "x", "st", "c1, l" }[below(5)];
            case "n": return new String[] { "*", "v", "sm[1], w" }[below(3)];
            default: return new String[] { "*", "n" }[below(2)];
        }
    }

    static String select()
    {
        String table = new ArrayList<>(TABLES.keySet()).get(new int[] { 0, 0, 0, 0, 1, 1, 2, 3 }[below(8)]);
        List<String> where = new ArrayList<>();
        String tail = "", what = columns(table);
        boolean single = one(2), filters = false;
        switch (table)
        {
            case "t":
                if (single)
                {
                    where.add("k = " + below(5));
                    switch (below(7))
                    {
                        case 0: where.add("c = '" + letter() + "'"); break;
                        case 1: where.add("c IN ('" + letter() + "', '" + letter() + "', '" + letter() + "')"); break;
                        case 2: where.add("c " + new String[] { ">", ">=", "<", "<=" }[below(4)] + " '" + letter() + "'"); break;
                        case 3: where.add("c > '" + (char) ('a' + below(3)) + "' AND c <= '" + (char) ('d' + below(4)) + "'"); break;
                        default: break;
                    }
                    if (one(3)) tail = " ORDER BY c DESC";
                }
                else if (one(6) && what.equals("s"))
                {
                    return "SELECT DISTINCT k, s FROM ks.t" + (one(2) ? " LIMIT " + (1 + below(4)) : "");
                }
                if (one(5)) { where.add("v " + new String[] { "=", ">", "<=" }[below(3)] + " " + below(6)); filters = true; }
                if (one(9)) { where.add("s = " + below(5)); filters = true; }
                if (one(9)) { where.add("m CONTAINS " + below(4)); filters = true; }
                if (one(12)) { where.add("m CONTAINS KEY '" + letter() + "'"); filters = true; }
                if (one(12)) { where.add("m['a'] = " + below(4)); filters = true; }
                if (!single && one(9)) { where.add("c = '" + letter() + "'"); filters = true; }
                if (!single && !filters && one(4)) { where.add("token(k) " + (one(2) ? ">" : "<=") + " " + random.nextLong()); }
                if (what.indexOf('[') < 0 && tail.isEmpty() && one(8))
                    tail = one(2) ? " GROUP BY k" : " GROUP BY k, c";
                break;
            case "u":
                if (single)
                {
                    where.add("a = " + below(2) + " AND b = '" + (one(2) ? "x" : "y") + "'");
                    if (one(2)) where.add("c1 = " + below(3));
                    if (where.size() == 2 && one(2)) where.add("c2 " + new String[] { "=", ">", "<=" }[below(3)] + " " + below(4));
                    if (one(3)) tail = " ORDER BY c1 ASC, c2 DESC";
                    else if (one(6)) tail = " GROUP BY a, b, c1";
                }
                if (one(6)) { where.add("st CONTAINS " + below(5)); filters = true; }
                break;
            case "n":
                if (single) where.add("k = '" + letter() + "'");
                if (one(4)) { where.add("w >= " + below(4)); filters = true; }
                break;
            default:
                if (single) where.add("k = " + below(3));
                break;
        }
        if (one(4)) tail += " PER PARTITION LIMIT " + (1 + below(4));
        if (one(3)) tail += " LIMIT " + (1 + below(7));
        if (filters) tail += " ALLOW FILTERING";
        return "SELECT " + what + " FROM ks." + table + (where.isEmpty() ? "" : " WHERE " + String.join(" AND ", where)) + tail;
    }

    static ReadCommand command(String cql)
    {
        SelectStatement.RawStatement raw = QueryProcessor.parseStatement(cql, SelectStatement.RawStatement.class, "SELECT");
        ReadQuery query = raw.prepare(ClientState.forInternalCalls()).getQuery(QueryOptions.DEFAULT, NOW);
        ReadCommand command = query instanceof SinglePartitionReadQuery.Group
                            ? (ReadCommand) ((SinglePartitionReadQuery.Group<?>) query).queries.get(0)
                            : (ReadCommand) query;
        if (!one(4))
            return command;
        TableMetadata table = command.metadata();
        if (command instanceof SinglePartitionReadCommand)
        {
            SinglePartitionReadCommand single = (SinglePartitionReadCommand) command;
            if (single.limits().isGroupByLimit())
                return command;
            if (one(2))
                return single.withUpdatedLimit(single.limits().forPaging(1 + below(5), single.partitionKey().getKey(), 1 + below(3)));
            return table.name.equals("t") ? single.forPaging(Clustering.make(UTF8Type.instance.decompose(letter())), single.limits().forPaging(1 + below(5))) : command;
        }
        PartitionRangeReadCommand range = (PartitionRangeReadCommand) command;
        // of a page that has nothing of its first partition, memtables name other columns in digests than SSTables do
        if (cql.contains(" c = ") || !table.name.equals("t") || range.limits().isGroupByLimit() || range.limits().isDistinct() || !range.dataRange().keyRange().right.isMinimum())
            return command;
        ByteBuffer key = ByteBufferUtil.bytes(below(5));
        return PartitionRangeReadCommand.create(table, NOW, range.columnFilter(), range.rowFilter(),
            one(2) ? range.limits().forPaging(2 + below(6)) : range.limits().forPaging(2 + below(6), key, 1 + below(3)),
            range.dataRange().forPaging(new Bounds<>(table.partitioner.decorateKey(key), table.partitioner.getMinimumToken().maxKeyBound()),
                                        table.comparator, Clustering.make(UTF8Type.instance.decompose(letter())), one(2)));
    }

    static void read(String cql, ReadCommand command) throws Exception
    {
        String data, digest;
        try (ReadExecutionController controller = command.executionController(); UnfilteredPartitionIterator found = command.executeLocally(controller))
        {
            data = hex(ReadResponse.serializer, ReadResponse.createRemoteDataResponse(found, ByteBufferUtil.EMPTY_BYTE_BUFFER, true, command, VERSION));
        }
        Replica replica = Replica.fullReplica(InetAddressAndPort.getByName("127.0.0.1:7000"), new org.apache.cassandra.dht.Murmur3Partitioner.LongToken(0), new org.apache.cassandra.dht.Murmur3Partitioner.LongToken(1));
        ReadCommand other = command.copyAsDigestQuery(replica);
        other.setDigestVersion(VERSION);
        try (ReadExecutionController controller = other.executionController(); UnfilteredPartitionIterator found = other.executeLocally(controller))
        {
            digest = hex(ReadResponse.serializer, ReadResponse.createDigestResponse(found, other));
        }
        out.println("# " + cql);
        out.println("read " + hex(ReadCommand.serializer, command) + " " + hex(ReadCommand.serializer, other) + " " + data + " " + digest);
    }

    @SuppressWarnings("unchecked")
    static String hex(Object serializer, Object value) throws Exception
    {
        try (DataOutputBuffer bytes = new DataOutputBuffer())
        {
            if (serializer instanceof Mutation.MutationSerializer)
                ((Mutation.MutationSerializer) serializer).serialize((Mutation) value, bytes, VERSION);
            else
                ((IVersionedAsymmetricSerializer<Object, Object>) serializer).serialize(value, bytes, VERSION);
            return ByteBufferUtil.bytesToHex(bytes.buffer());
        }
    }
}
