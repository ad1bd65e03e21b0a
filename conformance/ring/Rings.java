package org.apache.cassandra.locator;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.stream.Collectors;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.exceptions.UnavailableException;

/**
 * Prints what Cassandra's own classes make of generated rings: natural and pending replicas of every range, shares of the
 * ring, and what each consistency level needs where some nodes are down. The tests of crates/ring read it
 * (testdata/VERSION.txt); each node is a number, 1 is the one that asks. Arguments: how many rings, and the first one's seed.
 */
public class Rings
{
    static final Map<InetAddressAndPort, String[]> PLACES = new HashMap<>();
    static Random random;

    /** A snitch that knows what this program told it. */
    public static class Told extends AbstractNetworkTopologySnitch
    {
        public String getRack(InetAddressAndPort node) { return PLACES.getOrDefault(node, new String[]{ "dc1", "r1" })[1]; }
        public String getDatacenter(InetAddressAndPort node) { return PLACES.getOrDefault(node, new String[]{ "dc1", "r1" })[0]; }
    }

    public static void main(String[] args) throws Exception
    {
        Path scratch = Files.createTempDirectory("rings");
        String snitch = Told.class.getName();
        Scratch.configure(scratch, scratch.resolve("data"), snitch, "dynamic_snitch: false");
        DatabaseDescriptor.toolInitialization();
        int rings = args.length > 0 ? Integer.parseInt(args[0]) : 90, first = args.length > 1 ? Integer.parseInt(args[1]) : 0;
        for (int seed = first; seed < first + rings; seed++)
        {
            random = new Random(seed);
            StringBuilder out = new StringBuilder();
            try
            {
                ring(seed, out);
                System.out.print(out);
            }
            catch (IllegalArgumentException e)
            {
                // Cassandra itself gives up on some movements at once
                System.err.println("ring " + seed + ": " + e.getMessage());
            }
        }
        System.exit(0);
    }

    static InetAddressAndPort node(int n) throws Exception
    {
        return InetAddressAndPort.getByName("127.0.0." + n + ":7000");
    }

    static int number(InetAddressAndPort node)
    {
        return node.addressBytes[3] & 0xff;
    }

    static Token token()
    {
        return new Murmur3Partitioner.LongToken(random.nextLong());
    }

    static void ring(int seed, StringBuilder out) throws Exception
    {
        PLACES.clear();
        TokenMetadata ring = new TokenMetadata(new Told());
        int centers = 1 + random.nextInt(3), racks = 1 + random.nextInt(4);
        int nodes = 1 + random.nextInt(12), vnodes = random.nextBoolean() ? 1 : 1 + random.nextInt(5);
        out.append("ring ").append(seed).append('\n');
        // movements: none, or some of each kind
        int joining = 0, leaving = 0, moving = 0, replacing = 0;
        switch (seed % 6)
        {
            case 1: joining = 1 + random.nextInt(2); break;
            case 2: leaving = 1 + random.nextInt(2); break;
            case 3: moving = 1; vnodes = 1; break;
            case 4: replacing = 1; break;
            case 5: joining = random.nextInt(2); leaving = random.nextInt(2); moving = random.nextInt(2); vnodes = 1; break;
        }
        if (leaving > 0 || moving > 0)
            nodes = Math.max(nodes, 3);
        for (int n = 1; n <= nodes + joining + replacing; n++)
        {
            String center = n == 1 ? "dc1" : "dc" + (1 + random.nextInt(centers));
            PLACES.put(node(n), new String[]{ center, "r" + (1 + random.nextInt(racks)) });
        }
        for (int n = 1; n <= nodes; n++)
        {
            List<Token> tokens = new ArrayList<>();
            for (int t = 0; t < vnodes; t++)
                tokens.add(token());
            ring.updateNormalTokens(tokens, node(n));
            ring.updateHostId(new UUID(0, n), node(n));
            String state = "normal";
            if (n > 1 && leaving > 0)
            {
                leaving--;
                ring.addLeavingEndpoint(node(n));
                state = "leaving";
            }
            else if (n > 1 && moving > 0)
            {
                moving--;
                Token to = token();
                ring.addMovingEndpoint(to, node(n));
                state = "moving:" + to;
            }
            describe(n, state, tokens, out);
        }
        for (int n = nodes + 1; n <= nodes + joining; n++)
        {
            List<Token> tokens = new ArrayList<>();
            for (int t = 0; t < vnodes; t++)
                tokens.add(token());
            ring.addBootstrapTokens(tokens, node(n));
            describe(n, "joining", tokens, out);
        }
        for (int n = nodes + joining + 1; n <= nodes + joining + replacing; n++)
        {
            int old = 1 + random.nextInt(nodes);
            Collection<Token> tokens = ring.getTokens(node(old));
            ring.addReplaceTokens(tokens, node(n), node(old));
            describe(n, "replacing:" + old, tokens, out);
        }
        shares(ring, out);
        List<String> known = ring.cloneOnlyTokenMap().getTopology().getDatacenterEndpoints().keySet().stream().sorted().collect(Collectors.toList());
        List<AbstractReplicationStrategy> strategies = new ArrayList<>();
        strategies.add(new SimpleStrategy("simple", ring, new Told(), Map.of("replication_factor", "" + (1 + random.nextInt(4)))));
        for (int variant = 0; variant < 2; variant++)
        {
            Map<String, String> options = new TreeMap<>();
            for (String center : known)
                if (variant == 0 || random.nextInt(4) > 0)
                    options.put(center, "" + (1 + random.nextInt(4)));
            if (variant == 1 && random.nextInt(3) == 0)
                options.put("dc9", "2");
            if (!options.isEmpty())
                strategies.add(new NetworkTopologyStrategy("topology" + variant, ring, new Told(), options));
        }
        for (AbstractReplicationStrategy strategy : strategies)
            strategy(ring, strategy, out);
    }

    static void describe(int n, String state, Collection<Token> tokens, StringBuilder out) throws Exception
    {
        String[] place = PLACES.get(node(n));
        out.append("node ").append(n).append(' ').append(place[0]).append(' ').append(place[1]).append(' ').append(state);
        tokens.stream().sorted().forEach(token -> out.append(' ').append(token));
        out.append('\n');
    }

    /** What part of the ring each token has, as the partitioner rounds it. */
    static void shares(TokenMetadata ring, StringBuilder out)
    {
        Map<Token, Float> shares = new TreeMap<>(Murmur3Partitioner.instance.describeOwnership(ring.sortedTokens()));
        out.append("shares");
        shares.forEach((token, share) -> out.append(' ').append(share));
        out.append('\n');
    }

    static String numbers(Iterable<Replica> replicas, boolean sorted)
    {
        List<Integer> numbers = new ArrayList<>();
        replicas.forEach(replica -> numbers.add(number(replica.endpoint())));
        if (sorted)
            Collections.sort(numbers);
        return numbers.isEmpty() ? "-" : numbers.stream().map(Object::toString).collect(Collectors.joining(","));
    }

    static void strategy(TokenMetadata ring, AbstractReplicationStrategy strategy, StringBuilder out) throws Exception
    {
        String name = strategy.keyspaceName;
        out.append("strategy ").append(strategy.getClass().getSimpleName());
        new TreeMap<>(strategy.configOptions).forEach((key, value) -> out.append(' ').append(key).append('=').append(value));
        out.append('\n');
        ring.calculatePendingRanges(strategy, name);
        TokenMetadata settled = ring.cloneOnlyTokenMap();
        // every token that anybody has or will have, and the one after it
        TreeSet<Token> asked = new TreeSet<>(ring.sortedTokens());
        asked.addAll(ring.getBootstrapTokens().keySet());
        ring.getMovingEndpoints().forEach(pair -> asked.add(pair.left));
        List<Token> ends = new ArrayList<>(asked);
        Token last = ends.get(ends.size() - 1);
        if ((Long) last.getTokenValue() != Long.MAX_VALUE)
            ends.add(new Murmur3Partitioner.LongToken((Long) last.getTokenValue() + 1));
        for (Token token : ends)
            out.append("at ").append(token).append(' ')
               .append(numbers(strategy.calculateNaturalReplicas(token, settled), false)).append(' ')
               .append(numbers(ring.pendingEndpointsForToken(token, name), true)).append('\n');
        effective(settled, strategy, out);
        for (int time = 0; time < 2; time++)
            levels(ring, settled, strategy, name, ends.get(random.nextInt(ends.size())), out);
        speeds(strategy.calculateNaturalReplicas(ends.get(random.nextInt(ends.size())), settled), out);
    }

    /** What part of the data each node has: the shares of its ranges, in the strategy's order. */
    static void effective(TokenMetadata settled, AbstractReplicationStrategy strategy, StringBuilder out)
    {
        Map<Token, Float> shares = Murmur3Partitioner.instance.describeOwnership(settled.sortedTokens());
        RangesByEndpoint ranges = strategy.getAddressReplicas(settled);
        out.append("effective");
        settled.getTopology().getDatacenterEndpoints().values().stream().sorted().forEach(node -> {
            float sum = 0.0f;
            for (Replica replica : ranges.get(node))
                sum += shares.get(replica.range().right);
            out.append(' ').append(number(node)).append('=').append(sum);
        });
        out.append('\n');
    }

    /** In which order the dynamic snitch puts replicas that answer within so many milliseconds, and which scans it would merge. */
    static void speeds(EndpointsForRange natural, StringBuilder out) throws Exception
    {
        Map<InetAddressAndPort, Integer> millis = new HashMap<>();
        for (Replica replica : natural)
            millis.put(replica.endpoint(), 1 + random.nextInt(random.nextBoolean() ? 8 : 60));
        double slowest = millis.values().stream().mapToInt(n -> n).max().orElse(1);
        HashMap<InetAddressAndPort, Double> scores = new HashMap<>();
        millis.forEach((node, n) -> scores.put(node, n / slowest));
        double threshold = new double[]{ 0, 0.1, 0.5, 1.0 }[random.nextInt(4)];
        DynamicEndpointSnitch dynamic = new DynamicEndpointSnitch(DatabaseDescriptor.getEndpointSnitch());
        set(dynamic, "scores", scores);
        set(dynamic, "dynamicBadnessThreshold", threshold);
        out.append("speeds ").append(threshold).append(' ').append(numbers(natural, false)).append(' ')
           .append(numbers(dynamic.sortedByProximity(node(1), natural), false));
        for (Replica replica : natural)
            out.append(' ').append(number(replica.endpoint())).append('=').append(millis.get(replica.endpoint()));
        out.append('\n');
        for (int time = 0; time < 3; time++)
        {
            EndpointsForRange left = natural.filter(replica -> random.nextBoolean()), right = natural.filter(replica -> random.nextBoolean());
            EndpointsForRange merged = natural.filter(replica -> random.nextBoolean());
            out.append("merge ").append(numbers(merged, false)).append(' ').append(numbers(left, false)).append(' ').append(numbers(right, false))
               .append(' ').append(dynamic.isWorthMergingForRangeQuery(merged, left, right))
               .append(' ').append(DatabaseDescriptor.getEndpointSnitch().isWorthMergingForRangeQuery(merged, left, right)).append('\n');
        }
    }

    static void set(Object object, String name, Object value) throws Exception
    {
        java.lang.reflect.Field field = object.getClass().getDeclaredField(name);
        field.setAccessible(true);
        field.set(object, value);
    }

    interface Attempt { Object run() throws Exception; }

    static String outcome(Attempt attempt) throws Exception
    {
        try
        {
            return String.valueOf(attempt.run());
        }
        catch (Exception e)
        {
            Throwable cause = e instanceof InvocationTargetException ? e.getCause() : e;
            if (!(cause instanceof UnavailableException))
                throw e;
            UnavailableException lack = (UnavailableException) cause;
            return "lacks:" + lack.required + ":" + lack.alive + ":" + lack.getMessage().replace(' ', '_');
        }
    }

    /** What each level needs for a write and a read of a token while some nodes are down. */
    static void levels(TokenMetadata ring, TokenMetadata settled, AbstractReplicationStrategy strategy, String name, Token token, StringBuilder out) throws Exception
    {
        Set<InetAddressAndPort> down = new TreeSet<>();
        for (InetAddressAndPort node : PLACES.keySet())
            if (number(node) != 1 && random.nextInt(3) == 0)
                down.add(node);
        EndpointsForToken natural = strategy.calculateNaturalReplicas(token, settled).forToken(token);
        ReplicaLayout.ForTokenWrite write = ReplicaLayout.forTokenWrite(strategy, natural, ring.pendingEndpointsForToken(token, name));
        EndpointsForToken live = write.all().filter(replica -> !down.contains(replica.endpoint()));
        EndpointsForToken sorted = DatabaseDescriptor.getEndpointSnitch().sortedByProximity(node(1), natural)
                                                     .filter(replica -> !down.contains(replica.endpoint()));
        out.append("down ").append(token).append(' ')
           .append(down.isEmpty() ? "-" : down.stream().map(n -> "" + number(n)).collect(Collectors.joining(","))).append('\n');
        for (ConsistencyLevel level : ConsistencyLevel.values())
        {
            if (level == ConsistencyLevel.NODE_LOCAL)
                continue;
            String written = outcome(() -> {
                ReplicaPlans.assureSufficientLiveReplicasForWrite(strategy, level, live, write.pending());
                return level.blockForWrite(strategy, write.pending());
            });
            out.append("write ").append(level).append(' ').append(written).append('\n');
            if (level == ConsistencyLevel.ANY)
                continue;
            String read = outcome(() -> {
                Endpoints<?> candidates = (Endpoints<?>) method("candidatesForRead").invoke(null, null, null, level, sorted);
                Endpoints<?> contacts = (Endpoints<?>) method("contactForRead").invoke(null, strategy, level, false, candidates);
                ReplicaPlans.assureSufficientLiveReplicasForRead(strategy, level, contacts);
                Endpoints<?> always = (Endpoints<?>) method("contactForRead").invoke(null, strategy, level, true, candidates);
                return level.blockFor(strategy) + ":" + numbers((Iterable<Replica>) (Iterable<?>) candidates, false) + ":"
                       + numbers((Iterable<Replica>) (Iterable<?>) contacts, false) + ":" + numbers((Iterable<Replica>) (Iterable<?>) always, false);
            });
            out.append("read ").append(level).append(' ').append(read).append('\n');
        }
    }

    static Method method(String name)
    {
        for (Method method : ReplicaPlans.class.getDeclaredMethods())
            if (method.getName().equals(name))
            {
                method.setAccessible(true);
                return method;
            }
        throw new AssertionError(name);
    }
}
