package org.apache.cassandra.net;

import java.io.IOException;
import java.lang.reflect.Constructor;

import io.netty.buffer.ByteBuf;

import conformance.Scratch;

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
        Scratch.configure("vectors");
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
