package org.apache.cassandra.hints;

import java.nio.ByteBuffer;
import java.util.TreeSet;
import java.util.UUID;

import com.google.common.collect.ImmutableMap;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.cql3.statements.schema.CreateTableStatement;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.partitions.PartitionUpdate;
import org.apache.cassandra.io.util.DataOutputBuffer;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.schema.KeyspaceMetadata;
import org.apache.cassandra.schema.KeyspaceParams;
import org.apache.cassandra.schema.Schema;
import org.apache.cassandra.schema.SchemaTransformations;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.schema.Tables;

/**
 * Files of hints by Cassandra's own classes: `write DIR` leaves two in a folder, one of them compressed; `read DIR` prints
 * each hint of each file there, as a line of the file's name, the hint's time, the least gc_grace_seconds of its tables, and
 * its mutation in hexadecimal. Tests of crates/hints hold both against ours.
 */
public class Files
{
    static final UUID HOST = UUID.fromString("5c3b3720-e5dd-41f1-9a15-1b96078e4459");
    static final long CREATED = 4_100_000_000_000L;

    public static void main(String[] args) throws Exception
    {
        Scratch.configure("hints");
        DatabaseDescriptor.toolInitialization();
        TableMetadata table = CreateTableStatement.parse("CREATE TABLE t (k int PRIMARY KEY, v text)", "ks")
            .id(TableId.fromUUID(new UUID(0x1000L, 1))).build();
        Tables tables = Tables.builder().add(table).build();
        Schema.instance.transform(SchemaTransformations.addKeyspace(KeyspaceMetadata.create("ks", KeyspaceParams.simple(1), tables), true));
        File directory = new File(args[1]);
        if (args[0].equals("write"))
        {
            write(directory, table, CREATED + 1, ImmutableMap.of());
            write(directory, table, CREATED + 2, ImmutableMap.of("compression", ImmutableMap.of("class_name", "LZ4Compressor")));
        }
        else
            read(directory);
        System.exit(0);
    }

    static void write(File directory, TableMetadata table, long timestamp, ImmutableMap<String, Object> parameters) throws Exception
    {
        try (HintsWriter writer = HintsWriter.create(directory, new HintsDescriptor(HOST, timestamp, parameters)))
        {
            // room for a few hints only, so that a compressed file has several blocks
            try (HintsWriter.Session session = writer.newSession(ByteBuffer.allocateDirect(512)))
            {
                for (int k = 0; k < 20; k++)
                {
                    PartitionUpdate.SimpleBuilder update = PartitionUpdate.simpleBuilder(Schema.instance.getTableMetadata("ks", "t"), k);
                    update.timestamp(1_700_000_000_000_000L + k).row().add("v", ("value-" + k + " ").repeat(k == 7 ? 100 : 3));
                    session.append(Hint.create(new Mutation(update.build()), CREATED + k, 864000 - k));
                }
            }
        }
    }

    static void read(File directory) throws Exception
    {
        for (String name : new TreeSet<>(java.util.Arrays.asList(directory.tryListNames())))
        {
            if (!name.endsWith(".hints"))
                continue;
            try (HintsReader reader = HintsReader.open(new File(directory, name)))
            {
                for (HintsReader.Page page : reader)
                    page.hintsIterator().forEachRemaining(hint -> print(name, hint));
            }
        }
    }

    static void print(String name, Hint hint)
    {
        try (DataOutputBuffer out = new DataOutputBuffer())
        {
            Mutation.serializer.serialize(hint.mutation, out, org.apache.cassandra.net.MessagingService.VERSION_40);
            System.out.println(name + " " + hint.creationTime + " " + hint.gcgs + " " + org.apache.cassandra.utils.ByteBufferUtil.bytesToHex(out.asNewBuffer()));
        }
        catch (java.io.IOException e)
        {
            throw new RuntimeException(e);
        }
    }
}
