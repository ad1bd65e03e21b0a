package org.apache.cassandra.net;

import java.io.IOException;
import java.lang.reflect.Constructor;
import java.nio.file.Files;
import java.nio.file.Path;

import io.netty.buffer.ByteBuf;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.locator.InetAddressAndPort;

/**
 * Prints what Cassandra's own classes write for internode messaging 12, a vector a line: a word that says what it is, what
 * it is made of, and its bytes in hexadecimal. The tests of crates/internode read it (testdata/VERSION.txt).
 */
public class Vectors
{
    public static void main(String[] args) throws Exception
    {
        Path scratch = Files.createTempDirectory("vectors");
        Path yaml = scratch.resolve("cassandra.yaml");
        Files.writeString(yaml, String.join("\n",
            "cluster_name: none", "partitioner: Murmur3Partitioner", "commitlog_sync: periodic",
            "commitlog_sync_period: 10000ms", "endpoint_snitch: SimpleSnitch", "listen_address: 127.0.0.1",
            "commitlog_directory: " + scratch.resolve("commitlog"), "hints_directory: " + scratch.resolve("hints"),
            "saved_caches_directory: " + scratch.resolve("caches"), "cdc_raw_directory: " + scratch.resolve("cdc"),
            "data_file_directories: [" + scratch.resolve("data") + "]",
            "seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: 127.0.0.1}]}]"));
        System.setProperty("cassandra.config", yaml.toUri().toString());
        DatabaseDescriptor.toolInitialization();
        Wire.all();
        Data.all();
        System.exit(0);
    }

    static void line(String kind, String rest)
    {
        System.out.println(kind + " " + rest);
    }

    /** The constructors differ between 4.1 and 5.0. */
    static ByteBuf initiate(int min, int max, ConnectionType type, OutboundConnectionSettings.Framing framing, InetAddressAndPort from) throws Exception
    {
        AcceptVersions versions = new AcceptVersions(min, max);
        for (Constructor<?> constructor : HandshakeProtocol.Initiate.class.getDeclaredConstructors())
        {
            constructor.setAccessible(true);
            Object[] arguments = constructor.getParameterCount() == 4 ? new Object[] { versions, type, framing, from }
                                                                      : new Object[] { max, versions, type, framing, from };
            return ((HandshakeProtocol.Initiate) constructor.newInstance(arguments)).encode();
        }
        throw new IOException("no constructor");
    }
}
