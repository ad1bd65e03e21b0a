package org.apache.cassandra.tools;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

import org.apache.cassandra.db.rows.UnfilteredRowIterator;
import org.apache.cassandra.io.sstable.ISSTableScanner;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.utils.Hex;

/** sstabledump knows no row of which a clustering column is null; tables WITH COMPACT STORAGE have such rows. */
class CompactRows
{
    /** All that is in an SSTable as Cassandra's log would show it, a JSON list of hex texts. */
    static byte[] texts(SSTableReader sstable, TableMetadata table)
    {
        List<String> texts = new ArrayList<>();
        try (ISSTableScanner scanner = sstable.getScanner())
        {
            while (scanner.hasNext())
            {
                try (UnfilteredRowIterator partition = scanner.next())
                {
                    texts.add(partition.partitionKey() + " " + partition.partitionLevelDeletion());
                    texts.add(partition.staticRow().toString(table, true, true));
                    while (partition.hasNext())
                        texts.add(partition.next().toString(table, true, true));
                }
            }
        }
        return texts.stream().map(text -> '"' + Hex.bytesToHex(text.getBytes(StandardCharsets.UTF_8)) + '"')
                    .collect(Collectors.joining(",\n", "[", "]")).getBytes(StandardCharsets.UTF_8);
    }
}
