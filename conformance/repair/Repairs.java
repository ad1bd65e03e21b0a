package org.apache.cassandra.repair;

import java.util.List;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.io.util.DataOutputBuffer;

/**
 * Prints what Cassandra's own classes make of repair, a vector a line: a word that says what it is, what it is made of, and
 * what came of it, with tabs between them. The tests of crates/repair read it (testdata/VERSION.txt). {@code messages} are
 * the same of every release; {@code all} is more.
 */
public class Repairs
{
    static final int VERSION = 12;

    public static void main(String[] args) throws Exception
    {
        Scratch.configure("repairs");
        DatabaseDescriptor.toolInitialization();
        Messages.all();
        if (args[0].equals("all"))
        {
            Trees.all();
            Partitions.all();
            Words.all();
        }
        System.exit(0);
    }

    interface Writing
    {
        void to(DataOutputBuffer out) throws Exception;
    }

    static byte[] bytes(Writing writing) throws Exception
    {
        try (DataOutputBuffer out = new DataOutputBuffer())
        {
            writing.to(out);
            return out.toByteArray();
        }
    }

    static void line(String kind, Object... rest)
    {
        StringBuilder line = new StringBuilder(kind);
        for (Object part : rest)
            line.append('\t').append(part instanceof byte[] ? hex((byte[]) part) : part);
        System.out.println(line);
    }

    static String hex(byte[] bytes)
    {
        StringBuilder hex = new StringBuilder();
        for (byte b : bytes)
            hex.append(String.format("%02x", b));
        return hex.toString();
    }

    static String join(List<String> parts)
    {
        return parts.isEmpty() ? "-" : String.join(",", parts);
    }
}
