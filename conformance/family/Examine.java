package org.apache.cassandra.tools;

import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.Keyspace;
import org.apache.cassandra.db.SerializationHeader;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.UTF8Type;
import org.apache.cassandra.db.ClusteringComparator;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.IVerifier;
import org.apache.cassandra.io.sstable.IndexInfo;
import org.apache.cassandra.io.sstable.KeyIterator;
import org.apache.cassandra.io.sstable.SSTableIdFactory;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.StatsComponent;
import org.apache.cassandra.io.sstable.format.big.BigTableReader;
import org.apache.cassandra.io.sstable.format.big.RowIndexEntry;
import org.apache.cassandra.io.sstable.metadata.MetadataType;
import org.apache.cassandra.io.sstable.metadata.StatsMetadata;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.TableMetadataRef;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.OutputHandler;

/**
 * What sstableverify in extended mode, sstabledump and sstablemetadata do to one SSTable, for all of a keyspace in one process:
 * Examine SCRATCH DATA KEYSPACE OUT LABEL=FOLDER..., where DATA holds the tables' definitions and each FOLDER tables' SSTables.
 */
public class Examine
{
    static final PrintStream report = System.out;
    static int verified, failed;

    public static void main(String[] args) throws Exception
    {
        Path scratch = Path.of(args[0]).toAbsolutePath();
        configure(scratch, Path.of(args[1]).toAbsolutePath());
        DatabaseDescriptor.toolInitialization();
        Schema.instance.loadFromDisk();
        Keyspace keyspace = Keyspace.openWithoutSSTables(args[2]);
        Set<String> seen = new HashSet<>();
        for (String labelled : Arrays.asList(args).subList(4, args.length))
        {
            String label = labelled.substring(0, labelled.indexOf('='));
            Path folder = Path.of(labelled.substring(label.length() + 1)).toAbsolutePath();
            for (Path table : sorted(folder))
                table(keyspace, label, table, Path.of(args[3]), seen);
        }
        report.println(verified + " SSTables verified, " + failed + " failed");
        System.exit(failed == 0 && verified > 0 ? 0 : 1);
    }

    static void configure(Path scratch, Path data) throws Exception
    {
        Scratch.configure(scratch, data, "SimpleSnitch");
        System.setProperty("cassandra.storagedir", scratch.toString());
    }

    static List<Path> sorted(Path folder) throws Exception
    {
        try (Stream<Path> entries = Files.list(folder))
        {
            return entries.sorted().collect(Collectors.toList());
        }
    }

    /** All SSTables of a table that an earlier label did not show, by their ids. */
    static void table(Keyspace keyspace, String label, Path folder, Path out, Set<String> seen) throws Exception
    {
        String name = folder.getFileName().toString();
        name = name.substring(0, name.lastIndexOf('-'));
        List<Descriptor> found = new ArrayList<>();
        for (Path file : sorted(folder))
            if (file.getFileName().toString().endsWith("-Data.db") && seen.add(name + '/' + file.getFileName()))
                found.add(Descriptor.fromFileWithComponent(new File(file), false).left);
        found.sort(Comparator.comparing(d -> d.id, SSTableIdFactory.COMPARATOR));
        Files.createDirectories(out.resolve(name));
        for (int i = 0; i < found.size(); i++)
        {
            Descriptor descriptor = found.get(i);
            Path base = out.resolve(name).resolve(label + '-' + i);
            Files.writeString(base.resolveSibling(base.getFileName() + ".path"), descriptor.baseFile().path());
            try
            {
                verify(descriptor, keyspace.getColumnFamilyStore(name));
                verified++;
            }
            catch (Throwable e)
            {
                failed++;
                Files.writeString(base.resolveSibling(base.getFileName() + ".failed"), causes(e));
                report.println(name + ' ' + descriptor.baseFile() + ": " + causes(e));
            }
            try (OutputStream file = Files.newOutputStream(base.resolveSibling(base.getFileName() + ".json"));
                 PrintStream meta = new PrintStream(base.resolveSibling(base.getFileName() + ".meta").toString(), "UTF-8"))
            {
                TableMetadata described = described(descriptor, keyspace.getColumnFamilyStore(name));
                file.write(export(descriptor, described));
                metadata(descriptor, described, meta);
            }
            catch (Throwable e)
            {
                report.println(name + ' ' + descriptor.baseFile() + " cannot be exported: " + causes(e));
            }
        }
    }

    static String causes(Throwable e)
    {
        StringBuilder text = new StringBuilder();
        for (Throwable at = e; at != null; at = at.getCause())
            text.append(at).append("; ");
        return text.toString();
    }

    static void verify(Descriptor descriptor, ColumnFamilyStore cfs) throws Exception
    {
        IVerifier.Options options = IVerifier.options().invokeDiskFailurePolicy(false).extendedVerification(true)
                                             .checkVersion(true).build();
        SSTableReader sstable = SSTableReader.openNoValidation(descriptor, descriptor.discoverComponents(), cfs);
        try (IVerifier verifier = sstable.getVerifier(cfs, new OutputHandler.LogOutput(), true, options))
        {
            verifier.verify();
        }
        finally
        {
            sstable.selfRef().release();
        }
    }

    /** What the SSTable says of its table, with the table's parameters: a summary of another interval would be deleted. */
    static TableMetadata described(Descriptor descriptor, ColumnFamilyStore cfs) throws Exception
    {
        return Util.metadataFromSSTable(descriptor).unbuild().params(cfs.metadata().params).build();
    }

    static byte[] export(Descriptor descriptor, TableMetadata table) throws Exception
    {
        SSTableReader sstable = SSTableReader.openNoValidation(null, descriptor, TableMetadataRef.forOfflineTools(table));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        try (ISSTableScanner scanner = sstable.getScanner())
        {
            JsonTransformer.toJson(scanner, Util.iterToStream(scanner), true, table, out);
            return out.toByteArray();
        }
        catch (NullPointerException e)
        {
            return CompactRows.texts(sstable, table);
        }
        finally
        {
            sstable.selfRef().release();
        }
    }

    static void metadata(Descriptor descriptor, TableMetadata table, PrintStream out) throws Exception
    {
        StatsComponent component = StatsComponent.load(descriptor, MetadataType.values());
        StatsMetadata stats = component.statsMetadata();
        SerializationHeader.Component header = component.serializationHeader();
        Map<String, Object> fields = new TreeMap<>();
        fields.put("timestamps", stats.minTimestamp + " " + stats.maxTimestamp);
        fields.put("local deletion times", stats.minLocalDeletionTime + " " + stats.maxLocalDeletionTime);
        fields.put("ttls", stats.minTTL + " " + stats.maxTTL);
        fields.put("partition sizes", Arrays.toString(stats.estimatedPartitionSize.getBuckets(false)));
        fields.put("cells per partition", Arrays.toString(stats.estimatedCellPerPartitionCount.getBuckets(false)));
        StringBuilder drops = new StringBuilder();
        stats.estimatedTombstoneDropTime.forEach((point, value) -> drops.append(point).append(':').append(value).append(' '));
        fields.put("drop times", drops);
        fields.put("clusterings", stats.coveredClustering.toString(new ClusteringComparator(header.getClusteringTypes())));
        fields.put("rows", stats.totalRows);
        fields.put("columns set", stats.totalColumnsSet);
        fields.put("level", stats.sstableLevel);
        fields.put("repaired at", stats.repairedAt + " " + stats.pendingRepair + " " + stats.isTransient);
        fields.put("legacy counter shards", stats.hasLegacyCounterShards);
        fields.put("encoding", header.getEncodingStats());
        fields.put("key type", header.getKeyType());
        fields.put("clustering types", header.getClusteringTypes());
        columns("static", header.getStaticColumns(), fields);
        columns("regular", header.getRegularColumns(), fields);
        fields.put("false positives", component.validationMetadata().bloomFilterFPChance);
        fields.put("cardinality", component.compactionMetadata().cardinalityEstimator.cardinality());
        fields.put("components", descriptor.discoverComponents().stream().map(c -> c.name).sorted().collect(Collectors.toList()));
        index(descriptor, table, fields);
        fields.forEach((name, value) -> out.println(name + '\t' + value.toString().replace('\n', ' ')));
    }

    static void columns(String kind, Map<ByteBuffer, AbstractType<?>> columns, Map<String, Object> fields)
    {
        columns.forEach((name, type) -> fields.put(kind + " column " + UTF8Type.instance.getString(name), type));
    }

    /** Compression, the summary, and each key's blocks of the promoted index. */
    static void index(Descriptor descriptor, TableMetadata table, Map<String, Object> fields) throws Exception
    {
        SSTableReader sstable = SSTableReader.openNoValidation(null, descriptor, TableMetadataRef.forOfflineTools(table));
        try (KeyIterator keys = sstable.keyIterator())
        {
            if (sstable.compression)
                fields.put("compression", new TreeMap<>(sstable.getCompressionMetadata().parameters.asMap()) + " " + sstable.getCompressionMetadata().maxCompressedLength());
            fields.put("bounds", sstable.getFirst() + " " + sstable.getLast());
            fields.put("uncompressed length", sstable.uncompressedLength());
            if (!(sstable instanceof BigTableReader))
                return;
            BigTableReader big = (BigTableReader) sstable;
            StringBuilder blocks = new StringBuilder();
            while (keys.hasNext())
            {
                RowIndexEntry entry = big.getRowIndexEntry(keys.next(), SSTableReader.Operator.EQ);
                blocks.append(" @").append(entry.position);
                if (!entry.isIndexed())
                    continue;
                blocks.append(" deleted ").append(entry.deletionTime());
                try (RowIndexEntry.IndexInfoRetriever retriever = entry.openWithIndex(big.getIndexFile()))
                {
                    for (int i = 0; i < entry.blockCount(); i++)
                    {
                        IndexInfo info = retriever.columnsIndex(i);
                        blocks.append(" [").append(info.offset).append(' ').append(info.width).append(' ')
                              .append(info.firstName.kind()).append(hex(info.firstName.getRawValues())).append(' ')
                              .append(info.lastName.kind()).append(hex(info.lastName.getRawValues())).append(' ')
                              .append(info.endOpenMarker).append(']');
                    }
                }
            }
            fields.put("index", blocks);
        }
        finally
        {
            sstable.selfRef().release();
        }
    }

    static String hex(Object[] values)
    {
        return Arrays.stream(values).map(v -> v == null ? "null" : v instanceof byte[] ? ByteBufferUtil.bytesToHex(ByteBuffer.wrap((byte[]) v))
                                                                                         : ByteBufferUtil.bytesToHex((ByteBuffer) v))
                     .collect(Collectors.joining(",", "(", ")"));
    }
}
