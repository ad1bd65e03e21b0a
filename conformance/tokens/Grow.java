package org.apache.cassandra.dht.tokenallocator;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.exceptions.ConfigurationException;
import org.apache.cassandra.locator.AbstractNetworkTopologySnitch;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.locator.NetworkTopologyStrategy;
import org.apache.cassandra.locator.TokenMetadata;

/**
 * Prints the tokens that Cassandra's own classes allocate, as a node does that bootstraps with
 * allocate_tokens_for_local_replication_factor: {@code grow TOKENS RACKS RF NODES} grows one ring from nothing, {@code golden}
 * makes the rings that the tests of crates/ring compare (testdata/allocation-VERSION.txt).
 */
public class Grow
{
    static final Map<InetAddressAndPort, String[]> PLACES = new HashMap<>();
    static final Told SNITCH = new Told();
    static TokenMetadata ring;

    /** A snitch that knows what this program told it. */
    public static class Told extends AbstractNetworkTopologySnitch
    {
        public String getRack(InetAddressAndPort node) { return PLACES.getOrDefault(node, new String[]{ "dc1", "r1" })[1]; }
        public String getDatacenter(InetAddressAndPort node) { return PLACES.getOrDefault(node, new String[]{ "dc1", "r1" })[0]; }
    }

    public static void main(String[] args) throws Exception
    {
        Path scratch = Files.createTempDirectory("tokens");
        Scratch.configure(scratch, scratch.resolve("data"), Told.class.getName(), "dynamic_snitch: false");
        DatabaseDescriptor.toolInitialization();
        StringBuilder out = new StringBuilder();
        if (args[0].equals("grow"))
        {
            int tokens = Integer.parseInt(args[1]), racks = Integer.parseInt(args[2]), rf = Integer.parseInt(args[3]);
            grow(out, tokens, racks, rf, Integer.parseInt(args[4]));
        }
        else
            golden(out);
        System.out.print(out);
        System.exit(0);
    }

    static InetAddressAndPort node(int n) throws Exception
    {
        return InetAddressAndPort.getByName("127.0." + (n >> 8) + "." + (n & 0xff) + ":7000");
    }

    static void begin(StringBuilder out, String name)
    {
        out.append("ring ").append(name).append('\n');
        PLACES.clear();
        ring = new TokenMetadata(SNITCH);
    }

    /** A node that is there already. */
    static void member(StringBuilder out, int n, String center, String rack, Collection<Token> tokens) throws Exception
    {
        PLACES.put(node(n), new String[]{ center, rack });
        ring.updateNormalTokens(tokens, node(n));
        line(out, "node " + n + ' ' + center + ' ' + rack, tokens);
    }

    /** A node that allocates its tokens, and has them from then on. */
    static void newcomer(StringBuilder out, int n, String center, String rack, int count, int rf) throws Exception
    {
        PLACES.put(node(n), new String[]{ center, rack });
        String what = "new " + n + ' ' + center + ' ' + rack + ' ' + count + ' ' + rf;
        try
        {
            NetworkTopologyStrategy strategy =
                new NetworkTopologyStrategy(null, ring, SNITCH, new HashMap<>(Map.of(center, Integer.toString(rf))));
            Collection<Token> tokens = TokenAllocation.allocateTokens(ring, strategy, node(n), count);
            ring.updateNormalTokens(tokens, node(n));
            line(out, what, tokens);
        }
        catch (NoSuchElementException e)
        {
            // its own failure: a node has fewer tokens than it wants to split of it
            out.append(what).append(" ! NoSuchElementException\n");
        }
        catch (ConfigurationException e)
        {
            out.append(what).append(" ! ").append(e.getMessage()).append('\n');
        }
    }

    static void line(StringBuilder out, String head, Collection<Token> tokens)
    {
        out.append(head);
        for (Token token : tokens)
            out.append(' ').append(token);
        out.append('\n');
    }

    static void grow(StringBuilder out, int tokens, int racks, int rf, int nodes) throws Exception
    {
        begin(out, "grown-" + tokens + '-' + racks + '-' + rf);
        for (int n = 0; n < nodes; n++)
            newcomer(out, n + 1, "dc1", "r" + (1 + n % racks), tokens, rf);
    }

    static Collection<Token> random(Random random, int count)
    {
        List<Token> tokens = new ArrayList<>();
        for (int i = 0; i < count; i++)
            tokens.add(new Murmur3Partitioner.LongToken(random.nextLong()));
        return tokens;
    }

    /** A node's part of a ring in which all tokens are equally far apart. */
    static Collection<Token> even(int node, int nodes, int count)
    {
        List<Token> tokens = new ArrayList<>();
        for (int i = 0; i < count; i++)
            tokens.add(new Murmur3Partitioner.LongToken(Long.MIN_VALUE + 1 + Long.divideUnsigned(-1L, nodes * count) * (i * nodes + node)));
        return tokens;
    }

    static void golden(StringBuilder out) throws Exception
    {
        for (int tokens : new int[]{ 1, 3, 4, 8, 16 })
            for (int racks : new int[]{ 1, 3, 5 })
                for (int rf : new int[]{ 1, 2, 3 })
                    grow(out, tokens, racks, rf, tokens == 16 ? 18 : 30);
        grow(out, 16, 1, 3, 60);
        grow(out, 256, 1, 3, 6);
        grow(out, 256, 3, 3, 9);
        Random random = new Random(9);
        for (int i = 0; i < 60; i++)
        {
            begin(out, "random-" + i);
            int nodes = 1 + random.nextInt(14), racks = 1 + random.nextInt(5), most = 1 + random.nextInt(16);
            boolean two = random.nextBoolean();
            for (int n = 1; n <= nodes; n++)
                member(out, n, two && random.nextInt(3) == 0 ? "dc2" : "dc1", "r" + (1 + random.nextInt(racks)), random(random, 1 + random.nextInt(most)));
            for (int n = nodes + 1; n <= nodes + 4; n++)
                newcomer(out, n, two && random.nextInt(3) == 0 ? "dc2" : "dc1", "r" + (1 + random.nextInt(racks + 1)), 1 + random.nextInt(most), 1 + random.nextInt(4));
        }
        // where everything is equal, what is chosen depends on the order of a heap and of a hash map
        for (int nodes : new int[]{ 2, 4, 6, 12, 40 })
            for (int count : new int[]{ 1, 4 })
                for (int racks : new int[]{ 1, 3 })
                {
                    begin(out, "even-" + nodes + '-' + count + '-' + racks);
                    for (int n = 1; n <= nodes; n++)
                        member(out, n, "dc1", "r" + (1 + n % racks), even(n - 1, nodes, count));
                    for (int n = nodes + 1; n <= nodes + 4; n++)
                        newcomer(out, n, "dc1", "r" + (1 + n % racks), count, 1 + 2 * random.nextInt(2));
                }
        // another data centre has the very tokens that this one would choose
        for (int rf = 1; rf <= 3; rf++)
        {
            begin(out, "clash-" + rf);
            for (int n = 1; n <= 4; n++)
                member(out, n, "dc1", "r1", even(n - 1, 4, 2));
            List<Token> wanted = new ArrayList<>(TokenAllocation.allocateTokens(ring,
                new NetworkTopologyStrategy(null, ring, SNITCH, new HashMap<>(Map.of("dc1", Integer.toString(rf)))), node(9), 2));
            List<Token> taken = new ArrayList<>(wanted);
            taken.add(wanted.get(0).nextValidToken());
            member(out, 5, "dc2", "r1", taken);
            newcomer(out, 9, "dc1", "r1", 2, rf);
        }
    }
}
