package org.apache.cassandra.repair;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.UUID;

import org.apache.cassandra.cql3.statements.schema.CreateTableStatement;
import org.apache.cassandra.db.Clustering;
import org.apache.cassandra.db.Digest;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.context.CounterContext;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.db.rows.BTreeRow;
import org.apache.cassandra.db.rows.BufferCell;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.db.rows.UnfilteredRowIterators;
import org.apache.cassandra.schema.ColumnMetadata;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.CounterId;

/** The hash that validation takes of a partition of which all columns of the table are looked at. */
class Partitions
{
    static final long TS = 1_700_000_000_000_000L;
    static final int NOW = 1_700_000_000;
    static final String[] TABLES = {
        "CREATE TABLE t (k int, c text, s int static, v int, m map<text, int>, b boolean, z set<int> static, PRIMARY KEY (k, c))",
        "CREATE TABLE u (a int, b text, c1 int, c2 bigint, x blob, l set<text>, PRIMARY KEY ((a, b), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)",
        "CREATE TABLE n (k bigint PRIMARY KEY, n counter)",
    };

    static TableMetadata table(int number)
    {
        return CreateTableStatement.parse(TABLES[number], "ks").id(TableId.fromUUID(new UUID(0x1000L, number))).build();
    }

    static void all() throws Exception
    {
        for (int key = 0; key < 20; key++)
        {
            t(key);
            u(key);
            n(key);
        }
    }

    static void line(PartitionUpdate update) throws Exception
    {
        Digest digest = Digest.forValidator();
        try (UnfilteredRowIterator rows = update.unfilteredIterator(ColumnFilter.all(update.metadata()), Slices.ALL, false))
        {
            UnfilteredRowIterators.digest(rows, digest, Repairs.VERSION);
        }
        Repairs.line("partition", update.metadata().name, Repairs.bytes(out -> PartitionUpdate.serializer.serialize(update, out, Repairs.VERSION)), digest.digest());
    }

    static Map<String, Integer> map(int key)
    {
        Map<String, Integer> map = new LinkedHashMap<>();
        for (int i = 0; i <= key % 3; i++)
            map.put("x" + i, key);
        return map;
    }

    static void t(int key) throws Exception
    {
        PartitionUpdate.SimpleBuilder b = PartitionUpdate.simpleBuilder(table(0), key).nowInSec(NOW).timestamp(TS);
        if (key % 7 == 6)
            b.delete();
        if (key % 2 == 1)
            b.row().add("s", 5).add("z", new LinkedHashSet<>(Arrays.asList(2, key)));
        if (key % 5 != 4)
        {
            b.row("a").add("v", key).add("b", key % 2 == 0).add("m", map(key));
            b.row("b").noPrimaryKeyLivenessInfo().add("v", 8);
            b.timestamp(TS + 5).addRangeTombstone().start("c").inclStart().end("m").exclEnd();
            b.timestamp(TS + 7).addRangeTombstone().start("m").inclStart().end("n").inclEnd();
            b.row("p" + key).ttl(1000).add("v", 1);
            b.row("q").delete();
            b.row("z").delete("v").appendAll("m", map(key + 1));
        }
        line(b.build());
    }

    static void u(int key) throws Exception
    {
        PartitionUpdate.SimpleBuilder b = PartitionUpdate.simpleBuilder(table(1), key, "x").nowInSec(NOW).timestamp(TS);
        for (int i = 0; i < key; i++)
            b.row(i % 3, (long) i).add("x", ByteBuffer.wrap(new byte[i * 3])).add("l", new LinkedHashSet<>(List.of("e" + i, "")));
        if (key % 3 == 0)
            b.timestamp(TS + 9).addRangeTombstone().start(5, 10L).inclStart().end(5).inclEnd();
        line(b.build());
    }

    static void n(int key) throws Exception
    {
        TableMetadata table = table(2);
        ColumnMetadata column = table.getColumn(ByteBufferUtil.bytes("n"));
        CounterContext.ContextState state = CounterContext.ContextState.allocate(key % 2, key % 3, key % 4);
        byte id = 1;
        for (int i = 0; i < key % 2; i++) state.writeGlobal(CounterId.fromInt(id++), key, 100L + key);
        for (int i = 0; i < key % 3; i++) state.writeLocal(CounterId.fromInt(id++), 1, 7L);
        for (int i = 0; i < key % 4; i++) state.writeRemote(CounterId.fromInt(id++), 2, -key);
        Row.Builder row = BTreeRow.unsortedBuilder();
        row.newRow(Clustering.EMPTY);
        if (key % 5 == 4)
            row.addCell(BufferCell.tombstone(column, TS, NOW));
        else
            row.addCell(BufferCell.live(column, TS + key, state.context));
        line(PartitionUpdate.singleRowUpdate(table, table.partitioner.decorateKey(ByteBufferUtil.bytes((long) key)), row.build()));
    }
}
