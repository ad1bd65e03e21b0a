package org.apache.cassandra.repair;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.repair.consistent.SyncStatSummary;
import org.apache.cassandra.repair.messages.RepairOption;
import org.apache.cassandra.schema.TableId;
import org.apache.cassandra.streaming.SessionSummary;
import org.apache.cassandra.streaming.StreamSummary;
import org.apache.cassandra.utils.FBUtilities;

/** What Cassandra's own classes say: options of repairs, summaries of previews. */
class Words
{
    static final Random random = new Random(5);
    static final String[][] VALUES = {
        { "parallelism", "sequential", "parallel", "dc_parallel", "SEQUENTIAL", "" },
        { "primaryRange", "true", "false", "TRUE", "yes", " true" },
        { "incremental", "true", "false", "True" },
        { "jobThreads", "1", "4", "5", "0", "-3", "+2", "x", "" },
        { "ranges", "", "1:2", "1:2,3:4", "5:5", " 7 : -9 ", "1", "a:b", "1:2,,1:2", "9223372036854775808:1", "1:2:3", ":" },
        { "columnFamilies", "a", "b,a", "a,,a", " a , c ", "" },
        { "dataCenters", "datacenter1", "dc2", "datacenter1,dc2", "", "," },
        { "hosts", "127.0.0.1", "127.0.0.1,127.0.0.2", "", "127.0.0.1,127.0.0.1", "a, b,c" },
        { "trace", "true", "false" },
        { "sub_range_repair", "true" },
        { "pullRepair", "true", "false" },
        { "forceRepair", "true", "false" },
        { "previewKind", "NONE", "ALL", "UNREPAIRED", "REPAIRED", "none", "" },
        { "optimiseStreams", "true", "false" },
        { "ignoreUnreplicatedKeyspaces", "true", "false" },
        { "repairPaxos", "true", "false" },
        { "paxosOnly", "true", "false" },
        { "unknown", "x" },
    };

    static void all() throws Exception
    {
        option(new TreeMap<>());
        for (String[] values : VALUES)
            for (int i = 1; i < values.length; i++)
                option(new TreeMap<>(Map.of(values[0], values[i])));
        for (int n = 0; n < 400; n++)
        {
            Map<String, String> options = new TreeMap<>();
            for (String[] values : VALUES)
                if (random.nextInt(4) == 0)
                    options.put(values[0], values[1 + random.nextInt(values.length - 1)]);
            option(options);
        }
        together();
        sizes();
        for (int n = 0; n < 40; n++)
            summary(n);
    }

    static void option(Map<String, String> options)
    {
        StringBuilder shown = new StringBuilder();
        options.forEach((key, value) -> shown.append(key).append('=').append(value).append('|'));
        String said;
        try { said = "=" + sorted(RepairOption.parse(options, Murmur3Partitioner.instance).toString()); }
        catch (IllegalArgumentException e) { said = "!" + e.getMessage(); }
        Repairs.line("option", shown, said);
    }

    /** All that is refused, alone and together: which error comes first. */
    static void together()
    {
        String[][] refused = { { "jobThreads", "5" }, { "dataCenters", "dc2" }, { "hosts", "127.0.0.1" }, { "primaryRange", "true" }, { "pullRepair", "true" },
                               { "previewKind", "ALL" }, { "repairPaxos", "true" }, { "paxosOnly", "true" }, { "ranges", "5:5" } };
        for (int set = 1; set < 1 << refused.length; set++)
        {
            Map<String, String> options = new TreeMap<>();
            for (int i = 0; i < refused.length; i++)
                if ((set >> i & 1) == 1)
                    options.put(refused[i][0], refused[i][1]);
            if (options.size() > 1)
                option(options);
        }
    }

    /** Sets in order. */
    static String sorted(String text)
    {
        Matcher sets = Pattern.compile("\\[([^\\]]*)\\]").matcher(text);
        return sets.replaceAll(set -> {
            String[] words = set.group(1).split(", ");
            Arrays.sort(words);
            return "[" + String.join(", ", words) + "]";
        });
    }

    static void sizes()
    {
        List<Long> sizes = new ArrayList<>(List.of(0L, 1L, 1023L, 1024L, 1025L, 1088L, 1152L, 1536L, 123456789L, 1048575L, 1048576L, 999999999L, Long.MAX_VALUE));
        for (int i = 0; i < 120; i++)
            sizes.add(random.nextLong() >>> (1 + random.nextInt(60)));
        // ties of three places
        for (int i = 0; i < 16; i++)
            sizes.add((1L + random.nextInt(1000)) * 1024 + 64 * (1 + 2 * random.nextInt(8)));
        // such as are printed otherwise if they are divided as a double
        for (int found = 0; found < 12;)
        {
            long size = random.nextLong() >>> (1 + random.nextInt(38));
            int tens = (63 - Long.numberOfLeadingZeros(size)) / 10;
            if (tens > 0 && !String.format("%.3f", Math.scalb((float) size, -tens * 10)).equals(String.format("%.3f", Math.scalb((double) size, -tens * 10))))
            {
                sizes.add(size);
                found++;
            }
        }
        for (long size : sizes)
            Repairs.line("size", size, FBUtilities.prettyPrintMemory(size));
    }

    static SyncStat stat(SyncNodePair nodes, List<Range<Token>> differences, List<SessionSummary> summaries) throws Exception
    {
        for (Constructor<?> constructor : SyncStat.class.getDeclaredConstructors())
            if (constructor.getParameterCount() == 3)
            {
                Object second = constructor.getParameterTypes()[1] == long.class ? (Object) (long) differences.size() : differences;
                return (SyncStat) constructor.newInstance(nodes, second, summaries);
            }
        throw new AssertionError("no constructor");
    }

    static void summary(int n) throws Exception
    {
        SyncStatSummary summary = new SyncStatSummary(n % 2 == 0);
        StringBuilder shown = new StringBuilder();
        for (int tables = random.nextInt(3); tables > 0; tables--)
        {
            String table = "t" + random.nextInt(2);
            List<SyncStat> stats = new ArrayList<>();
            shown.append(table).append('{');
            for (int pairs = random.nextInt(3); pairs > 0; pairs--)
            {
                InetAddressAndPort one = Messages.address(), other = Messages.address();
                List<Range<Token>> ranges = new ArrayList<>();
                for (int i = n % 8 == 3 ? 30 : random.nextInt(n % 8 == 7 ? 60 : 4); i > 0; i--)
                    ranges.add(Ranges.any(random));
                List<SessionSummary> sessions = null;
                shown.append(Ranges.show(ranges)).append(' ');
                if (random.nextInt(4) > 0)
                {
                    List<StreamSummary> received = Messages.streams(), sent = Messages.streams();
                    sessions = List.of(new SessionSummary(one, other, received, sent));
                    shown.append(Messages.show(one)).append(' ').append(Messages.show(other)).append(' ').append(Messages.showStreams(received)).append(' ')
                         .append(Messages.showStreams(sent));
                }
                shown.append(';');
                stats.add(stat(new SyncNodePair(one, other), ranges, sessions));
            }
            shown.append('}');
            RepairJobDesc desc = new RepairJobDesc(Messages.id(), Messages.id(), "ks", table, List.of());
            RepairResult result = new RepairResult(desc, stats);
            summary.consumeRepairResult(result);
        }
        Repairs.line("summary", n % 2 == 0, shown, summary.isEmpty(), summary.toString().replace("\n", "\\n"));
    }
}
