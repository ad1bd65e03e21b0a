package org.apache.cassandra.db.partitions;

import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Iterator;
import java.util.Random;
import java.util.StringJoiner;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.BufferClusteringBound;
import org.apache.cassandra.db.ClusteringBound;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.DeletionInfo;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.MutableDeletionInfo;
import org.apache.cassandra.db.RangeTombstone;
import org.apache.cassandra.db.Slice;
import org.apache.cassandra.db.Slices;
import org.apache.cassandra.db.filter.ColumnFilter;
import org.apache.cassandra.db.marshal.Int32Type;
import org.apache.cassandra.db.marshal.ReversedType;
import org.apache.cassandra.db.rows.EncodingStats;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Rows;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.btree.BTree;

/**
 * Merges random deletions of ranges the way a memtable does, and writes down the lists and the markers that reads of
 * slices see. See README.md for the format.
 */
public class Deletions
{
    static final Murmur3Partitioner PARTITIONER = Murmur3Partitioner.instance;
    static TableMetadata table;
    static PrintStream out;
    static Random random;

    public static void main(String[] args) throws Exception
    {
        out = new PrintStream(Files.newOutputStream(Path.of(args[0])), false, "UTF-8");
        random = new Random(Long.parseLong(args[1]));
        DatabaseDescriptor.clientInitialization();
        DatabaseDescriptor.setPartitionerUnsafe(PARTITIONER);
        table = TableMetadata.builder("ks", "t").partitioner(PARTITIONER)
                             .addPartitionKeyColumn("k", Int32Type.instance)
                             .addClusteringColumn("a", Int32Type.instance)
                             .addClusteringColumn("b", ReversedType.getInstance(Int32Type.instance))
                             .addRegularColumn("v", Int32Type.instance)
                             .build();
        int cases = Integer.parseInt(args[2]);
        for (int number = 0; number < cases; number++)
            scenario(number);
        out.close();
        System.exit(0);
    }

    static void scenario(int number)
    {
        out.println("case " + number);
        // Few timestamps make many of them equal; few updates of many ranges are merged otherwise than many of few.
        int timestamps = 1 + random.nextInt(4);
        int updates = 1 + random.nextInt(6);
        DeletionInfo memtable = DeletionInfo.LIVE;
        for (int i = 0; i < updates; i++)
        {
            MutableDeletionInfo update = MutableDeletionInfo.live();
            if (random.nextInt(8) == 0)
            {
                DeletionTime partition = deletion(timestamps);
                update.add(partition);
                out.println("partition " + show(partition));
            }
            int ranges = random.nextInt(4) == 0 ? random.nextInt(12) : random.nextInt(3);
            StringJoiner added = new StringJoiner(" ; ");
            for (int j = 0; j < ranges; j++)
            {
                Slice slice = slice();
                if (slice == null)
                    continue;
                RangeTombstone range = new RangeTombstone(slice, deletion(timestamps));
                update.add(range, table.comparator);
                added.add(show(range));
            }
            out.println(("update " + added).trim());
            if (!update.isLive() && update.mayModify(memtable))
                memtable = memtable.mutableCopy().add(update);
            out.println(("list " + ranges(memtable)).trim());
        }
        Partition partition = new Partition(memtable);
        reads(partition, Slices.ALL);
        for (int i = 0; i < 3; i++)
        {
            Slices.Builder slices = new Slices.Builder(table.comparator);
            for (int count = 1 + random.nextInt(3); count > 0; count--)
            {
                Slice slice = slice();
                if (slice != null)
                    slices.add(slice);
            }
            Slices built = slices.build();
            if (!built.isEmpty())
                reads(partition, built);
        }
    }

    static void reads(Partition partition, Slices slices)
    {
        StringJoiner shown = new StringJoiner(" ; ");
        slices.forEach(slice -> shown.add(show(slice.start()) + " " + show(slice.end())));
        for (boolean reversed : new boolean[] { false, true })
        {
            StringJoiner markers = new StringJoiner(" ; ");
            try (UnfilteredRowIterator read = partition.unfilteredIterator(ColumnFilter.all(table), slices, reversed))
            {
                while (read.hasNext())
                    markers.add(show((RangeTombstoneMarker) read.next()));
            }
            out.println(((reversed ? "backwards " : "forwards ") + shown + " : " + markers).trim());
        }
    }

    static DeletionTime deletion(int timestamps)
    {
        return DeletionTime.build(100 * (1 + random.nextInt(timestamps)), 1000 + random.nextInt(3));
    }

    static Slice slice()
    {
        Slice slice = Slice.make(bound(true), bound(false));
        return slice.isEmpty(table.comparator) ? null : slice;
    }

    static ClusteringBound<?> bound(boolean start)
    {
        ByteBuffer[] values = new ByteBuffer[random.nextInt(3)];
        for (int i = 0; i < values.length; i++)
            values[i] = ByteBufferUtil.bytes(random.nextInt(5));
        boolean inclusive = values.length == 0 || random.nextBoolean();
        return BufferClusteringBound.create(ClusteringBound.boundKind(start, inclusive), values);
    }

    static String ranges(DeletionInfo info)
    {
        StringJoiner shown = new StringJoiner(" ; ");
        for (Iterator<RangeTombstone> ranges = info.rangeIterator(false); ranges.hasNext(); )
            shown.add(show(ranges.next()));
        return shown.toString();
    }

    static String show(RangeTombstone range)
    {
        Slice slice = range.deletedSlice();
        return show(slice.start()) + " " + show(slice.end()) + " " + show(range.deletionTime());
    }

    static String show(RangeTombstoneMarker marker)
    {
        StringBuilder shown = new StringBuilder(show(marker.clustering()));
        if (marker.isClose(false))
            shown.append(" ").append(show(marker.closeDeletionTime(false)));
        if (marker.isOpen(false))
            shown.append(" ").append(show(marker.openDeletionTime(false)));
        return shown.toString();
    }

    static String show(DeletionTime deletion)
    {
        return deletion.markedForDeleteAt() + "@" + deletion.localDeletionTime();
    }

    static String show(ClusteringPrefix<?> bound)
    {
        StringJoiner values = new StringJoiner(",");
        for (ByteBuffer value : bound.getBufferArray())
            values.add(String.valueOf(ByteBufferUtil.toInt(value)));
        return symbol(bound.kind()) + values;
    }

    static String symbol(ClusteringPrefix.Kind kind)
    {
        switch (kind)
        {
            case INCL_START_BOUND: return "[";
            case EXCL_START_BOUND: return "(";
            case INCL_END_BOUND: return "]";
            case EXCL_END_BOUND: return ")";
            case EXCL_END_INCL_START_BOUNDARY: return ")[";
            case INCL_END_EXCL_START_BOUNDARY: return "](";
            default: throw new IllegalArgumentException(kind.name());
        }
    }

    /** A memtable's partition without rows: its iterators are Cassandra's. */
    static class Partition extends AbstractBTreePartition
    {
        private final BTreePartitionData data;

        Partition(DeletionInfo info)
        {
            super(PARTITIONER.decorateKey(ByteBufferUtil.bytes(1)));
            data = BTreePartitionData.unsafeConstruct(table.regularAndStaticColumns(), BTree.empty(), info,
                                                      Rows.EMPTY_STATIC_ROW, EncodingStats.NO_STATS);
        }

        protected BTreePartitionData holder() { return data; }
        protected boolean canHaveShadowedData() { return true; }
        public TableMetadata metadata() { return table; }
    }
}
