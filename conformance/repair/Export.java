package org.apache.cassandra.repair;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongPredicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ClusteringPrefix;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.DeletionTime;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.compaction.CompactionController;
import org.apache.cassandra.db.compaction.CompactionIterator;
import org.apache.cassandra.db.compaction.OperationType;
import org.apache.cassandra.db.rows.Cell;
import org.apache.cassandra.db.rows.ColumnData;
import org.apache.cassandra.db.rows.ComplexColumnData;
import org.apache.cassandra.db.rows.RangeTombstoneMarker;
import org.apache.cassandra.db.rows.Row;
import org.apache.cassandra.db.rows.Unfiltered;
import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.TimeUUID;

/**
 * What SSTables of tables come to, merged and purged by Cassandra's own iterators as a validation does it, as text: Export SCRATCH,
 * where SCRATCH/data/system_schema has the definitions. Each line of standard input is KEYSPACE NOW FOLDER OUT: FOLDER has a
 * folder for each table, OUT gets a file for each.
 */
public class Export
{
    public static void main(String[] args) throws Exception
    {
        Path scratch = Path.of(args[0]).toAbsolutePath();
        Scratch.configure(scratch, scratch.resolve("data"), "SimpleSnitch");
        System.setProperty("cassandra.storagedir", scratch.toString());
        DatabaseDescriptor.toolInitialization();
        Schema.instance.loadFromDisk();
        System.out.println("ready");
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine())
        {
            String[] words = order.split(" ");
            int partitions = 0;
            Keyspace keyspace = Keyspace.openWithoutSSTables(words[0]);
            Files.createDirectories(Path.of(words[3]));
            for (Path folder : sorted(Path.of(words[2])))
                partitions += table(keyspace, Long.parseLong(words[1]), folder, Path.of(words[3]));
            System.out.println("done " + partitions);
        }
        System.exit(0);
    }

    static List<Path> sorted(Path folder) throws Exception
    {
        try (Stream<Path> entries = Files.list(folder))
        {
            return entries.sorted().collect(Collectors.toList());
        }
    }

    /** The purging of a validation (CassandraValidationIterator.ValidationCompactionController). */
    static class Controller extends CompactionController
    {
        Controller(ColumnFamilyStore cfs, long gcBefore)
        {
            super(cfs, gcBefore);
        }

        @Override
        public LongPredicate getPurgeEvaluator(DecoratedKey key)
        {
            return time -> true;
        }
    }

    static int table(Keyspace keyspace, long now, Path folder, Path out) throws Exception
    {
        String name = folder.getFileName().toString();
        name = name.substring(0, name.lastIndexOf('-'));
        ColumnFamilyStore cfs = keyspace.getColumnFamilyStore(name);
        List<SSTableReader> sstables = new ArrayList<>();
        for (Path file : sorted(folder))
        {
            if (!file.getFileName().toString().endsWith("-Data.db"))
                continue;
            Descriptor descriptor = Descriptor.fromFileWithComponent(new File(file), false).left;
            sstables.add(SSTableReader.openNoValidation(descriptor, descriptor.discoverComponents(), cfs));
        }
        List<ISSTableScanner> scanners = sstables.stream().map(SSTableReader::getScanner).collect(Collectors.toList());
        int partitions = 0;
        try (Controller controller = new Controller(cfs, cfs.gcBefore(now));
             CompactionIterator merged = new CompactionIterator(OperationType.VALIDATION, scanners, controller, now, TimeUUID.Generator.nextTimeUUID());
             PrintStream text = new PrintStream(out.resolve(name).toString(), "UTF-8"))
        {
            while (merged.hasNext())
            {
                try (UnfilteredRowIterator partition = merged.next())
                {
                    partition(partition, text);
                    partitions++;
                }
            }
        }
        finally
        {
            scanners.forEach(ISSTableScanner::close);
            sstables.forEach(sstable -> sstable.selfRef().release());
        }
        return partitions;
    }

    static void partition(UnfilteredRowIterator partition, PrintStream out)
    {
        DecoratedKey key = partition.partitionKey();
        out.println("partition " + hex(key.getKey()) + ' ' + key.getToken());
        if (!partition.partitionLevelDeletion().isLive())
            out.println("  deleted " + deletion(partition.partitionLevelDeletion()));
        row("static", partition.staticRow(), out);
        while (partition.hasNext())
        {
            Unfiltered unfiltered = partition.next();
            if (unfiltered.isRow())
                row("row " + prefix(unfiltered.clustering()), (Row) unfiltered, out);
            else
                marker((RangeTombstoneMarker) unfiltered, out);
        }
    }

    static void marker(RangeTombstoneMarker marker, PrintStream out)
    {
        StringBuilder line = new StringBuilder("  marker ").append(prefix(marker.clustering()));
        if (marker.isClose(false))
            line.append(" closes ").append(deletion(marker.closeDeletionTime(false)));
        if (marker.isOpen(false))
            line.append(" opens ").append(deletion(marker.openDeletionTime(false)));
        out.println(line);
    }

    static void row(String name, Row row, PrintStream out)
    {
        if (row.isEmpty())
            return;
        StringBuilder line = new StringBuilder("  ").append(name);
        if (!row.primaryKeyLivenessInfo().isEmpty())
            line.append(" written ").append(row.primaryKeyLivenessInfo().timestamp()).append('/').append(row.primaryKeyLivenessInfo().ttl())
                .append('/').append(row.primaryKeyLivenessInfo().localExpirationTime());
        if (!row.deletion().isLive())
            line.append(" deleted ").append(deletion(row.deletion().time())).append(row.deletion().isShadowable() ? " shadowable" : "");
        for (ColumnData data : row)
        {
            line.append(" | ").append(data.column().name);
            if (!data.column().isComplex())
            {
                cell((Cell<?>) data, line);
                continue;
            }
            ComplexColumnData all = (ComplexColumnData) data;
            if (!all.complexDeletion().isLive())
                line.append(" deleted ").append(deletion(all.complexDeletion()));
            for (Cell<?> cell : all)
                cell(cell, line);
        }
        out.println(line);
    }

    static void cell(Cell<?> cell, StringBuilder line)
    {
        line.append(' ');
        if (cell.path() != null)
            for (int i = 0; i < cell.path().size(); i++)
                line.append('[').append(hex(cell.path().get(i))).append("]");
        line.append('=').append(cell.isTombstone() ? "tombstone" : hex(cell.buffer()));
        line.append('@').append(cell.timestamp()).append('/').append(cell.ttl()).append('/').append(cell.localDeletionTime());
    }

    static String deletion(DeletionTime time)
    {
        return time.markedForDeleteAt() + "/" + time.localDeletionTime();
    }

    static String prefix(ClusteringPrefix<?> prefix)
    {
        StringBuilder text = new StringBuilder(prefix.kind().toString());
        for (ByteBuffer value : prefix.getBufferArray())
            text.append(':').append(value == null ? "null" : hex(value));
        return text.toString();
    }

    static String hex(ByteBuffer bytes)
    {
        return ByteBufferUtil.bytesToHex(bytes);
    }
}
