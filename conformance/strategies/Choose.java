package org.apache.cassandra.db.compaction;

import java.io.PrintStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.BufferDecoratedKey;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.db.DecoratedKey;
import org.apache.cassandra.db.Directories;
import org.apache.cassandra.db.compaction.unified.Controller;
import org.apache.cassandra.db.compaction.unified.FixedController;
import org.apache.cassandra.db.lifecycle.SSTableSet;
import org.apache.cassandra.db.lifecycle.Tracker;
import org.apache.cassandra.db.lifecycle.View;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.io.sstable.Descriptor;
import org.apache.cassandra.io.sstable.SequenceBasedSSTableId;
import org.apache.cassandra.io.sstable.format.SSTableReader;
import org.apache.cassandra.io.sstable.format.big.BigTableReader;
import org.apache.cassandra.io.util.File;
import org.apache.cassandra.metrics.RestorableMeter;
import org.apache.cassandra.metrics.TableMetrics;
import org.apache.cassandra.schema.CompactionParams;
import org.apache.cassandra.utils.Clock;
import org.apache.cassandra.utils.EstimatedHistogram;
import org.apache.cassandra.utils.ExpMovingAverage;

/**
 * Lets Cassandra's own strategies choose over sets of SSTables that exist as descriptions only, and writes sets and
 * choices down. See README.md for what is real and what is not.
 */
public class Choose
{
    static final sun.misc.Unsafe UNSAFE = unsafe();
    static final long START_MILLIS = 1_700_000_000_000L;
    static long now = START_MILLIS;

    /** The JVM's time is the scenario's. */
    public static class SetClock implements Clock
    {
        public long nanoTime() { return now * 1_000_000; }
        public long currentTimeMillis() { return now; }
    }

    static sun.misc.Unsafe unsafe()
    {
        try
        {
            Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return (sun.misc.Unsafe) field.get(null);
        }
        catch (ReflectiveOperationException e)
        {
            throw new AssertionError(e);
        }
    }

    @SuppressWarnings("unchecked")
    static <T> T allocate(Class<T> type) throws Exception
    {
        return (T) UNSAFE.allocateInstance(type);
    }

    static void set(Object of, Class<?> type, String name, Object value) throws Exception
    {
        UNSAFE.putObject(of, UNSAFE.objectFieldOffset(type.getDeclaredField(name)), value);
    }

    static DecoratedKey key(long token)
    {
        ByteBuffer bytes = ByteBuffer.allocate(8);
        bytes.putLong(0, token);
        return new BufferDecoratedKey(new LongToken(token), bytes);
    }

    /** An SSTable of which only a description exists. */
    public static class Table extends BigTableReader
    {
        int id;
        long first, last, data, total, minTimestamp, maxTimestamp, maxDeletion, created, keys, shared, cells, partitions;
        int level;
        boolean repaired;
        double ratio, hotness;
        transient DecoratedKey firstKey, lastKey;

        Table() { super(null, null); throw new AssertionError(); }

        void ready() throws Exception
        {
            firstKey = key(first);
            lastKey = key(last);
            Descriptor descriptor = new Descriptor(new File("/nowhere/ks/t-00000000000000000000000000000001"), "ks", "t",
                                                   new SequenceBasedSSTableId(id));
            set(this, org.apache.cassandra.io.sstable.SSTable.class, "descriptor", descriptor);
        }

        public DecoratedKey getFirst() { return firstKey; }
        public DecoratedKey getLast() { return lastKey; }
        public long onDiskLength() { return data; }
        public long bytesOnDisk() { return total; }
        public long getMinTimestamp() { return minTimestamp; }
        public long getMaxTimestamp() { return maxTimestamp; }
        public long getMaxLocalDeletionTime() { return maxDeletion; }
        public int getSSTableLevel() { return level; }
        public boolean isRepaired() { return repaired; }
        public boolean isMarkedSuspect() { return false; }
        public long getDataCreationTime() { return created; }
        public long estimatedKeys() { return keys; }
        public long estimatedKeysForRanges(Collection<Range<Token>> ranges) { return shared; }
        public boolean isEstimationInformative() { return shared >= 0; }
        public double getEstimatedDroppableTombstoneRatio(long gcBefore) { return ratio; }
        public double tokenSpaceCoverage() { return Double.NaN; }
        public EstimatedHistogram getEstimatedCellPerPartitionCount() { return new Cells(cells, partitions); }
        public RestorableMeter getReadMeter() { return hotness == 0 ? null : new Meter(hotness * keys); }
        public void mutateLevelAndReload(int newLevel) { level = newLevel; }
        public boolean equals(Object that) { return that instanceof Table && ((Table) that).id == id; }
        public int hashCode() { return id * 31; }
        public String toString() { return "t" + id; }

        String line(char kind)
        {
            return String.format("%c %d %d %d %d %d %d %d %d %d %d %d %s %d %d %d %d %s", kind, id, first, last, data, total,
                                 minTimestamp, maxTimestamp, maxDeletion, created, level, repaired ? 1 : 0, ratio, keys,
                                 shared, cells, partitions, hotness);
        }
    }

    static class Cells extends EstimatedHistogram
    {
        final long mean, count;
        Cells(long mean, long count) { super(2); this.mean = mean; this.count = count; }
        public long mean() { return mean; }
        public long count() { return count; }
    }

    static class Meter extends RestorableMeter
    {
        final double rate;
        Meter(double rate) { this.rate = rate; }
        public double twoHourRate() { return rate; }
    }

    /** The sets of tables that strategies ask for. */
    public static class Tables extends Tracker
    {
        Store store;
        View view;
        Tables() { super(null, null, false); }
        public Set<SSTableReader> getCompacting() { return store.compacting; }
        public Iterable<SSTableReader> getUncompacting() { return store.free(); }
        public Iterable<SSTableReader> getUncompacting(Iterable<SSTableReader> candidates)
        {
            List<SSTableReader> free = new ArrayList<>();
            for (SSTableReader table : candidates)
                if (!store.compacting.contains(table))
                    free.add(table);
            return free;
        }
        public View getView() { return view; }
    }

    /** A table without anything but its sets of SSTables and its options. */
    public static class Store extends ColumnFamilyStore
    {
        Map<String, String> options;
        Set<SSTableReader> live;
        Set<SSTableReader> compacting;
        Tables tables;
        CompactionStrategyManager manager;

        Store() { super(null, null, null, null, null, false, false, false); throw new AssertionError(); }

        List<SSTableReader> free()
        {
            return live.stream().filter(t -> !compacting.contains(t)).collect(Collectors.toList());
        }

        int number(String name, int otherwise) { return Integer.parseInt(options.getOrDefault(name, "" + otherwise)); }
        public int getMinimumCompactionThreshold() { return number("min_threshold", 4); }
        public int getMaximumCompactionThreshold() { return number("max_threshold", 32); }
        public Tracker getTracker() { return tables; }
        public Directories getDirectories() { return null; }
        public CompactionStrategyManager getCompactionStrategyManager() { return manager; }
        public boolean getNeverPurgeTombstones() { return false; }
        public Set<SSTableReader> getLiveSSTables() { return live; }
        public Iterable<SSTableReader> getSSTables(SSTableSet set) { return live; }
        public Iterable<SSTableReader> getUncompactingSSTables() { return free(); }
        public String getKeyspaceName() { return "ks"; }
        public String getTableName() { return "t"; }

        public Collection<SSTableReader> getOverlappingLiveSSTables(Iterable<SSTableReader> these)
        {
            Set<SSTableReader> overlapping = new HashSet<>();
            for (SSTableReader other : live)
                for (SSTableReader table : these)
                    if (table.getFirst().compareTo(other.getLast()) <= 0 && other.getFirst().compareTo(table.getLast()) <= 0)
                        overlapping.add(other);
            for (SSTableReader table : these)
                overlapping.remove(table);
            return overlapping;
        }
    }

    static Store store(Map<String, String> options) throws Exception
    {
        Store store = allocate(Store.class);
        set(store, ColumnFamilyStore.class, "name", "t");
        store.options = options;
        store.live = new HashSet<>();
        store.compacting = new HashSet<>();
        store.tables = new Tables();
        store.tables.store = store;
        store.tables.view = allocate(View.class);
        set(store.tables.view, View.class, "liveMemtables", Collections.emptyList());
        set(store.tables.view, View.class, "flushingMemtables", Collections.emptyList());
        store.manager = allocate(CompactionStrategyManager.class);
        set(store.manager, CompactionStrategyManager.class, "compactionLogger", new CompactionLogger(store, store.manager));
        Map<String, String> common = new LinkedHashMap<>();
        String only = options.get("only_purge_repaired_tombstones");
        if (only != null)
            common.put("only_purge_repaired_tombstones", only);
        set(store.manager, CompactionStrategyManager.class, "params", CompactionParams.stcs(common));
        TableMetrics metrics = allocate(TableMetrics.class);
        set(metrics, TableMetrics.class, "flushSizeOnDisk", ExpMovingAverage.decayBy1000());
        set(store, ColumnFamilyStore.class, "metric", metrics);
        return store;
    }

    /** What a strategy chose. */
    static class Pick
    {
        final List<Table> tables = new ArrayList<>();
        int level;
        long limit;
        int shards = 1;
        int pending;
    }

    interface Chooser
    {
        Pick next(long gcBefore) throws Exception;
        void replaced(List<SSTableReader> removed, List<SSTableReader> added);
        void added(SSTableReader table);
    }

    static Method method(Class<?> type, String name, Class<?>... arguments) throws Exception
    {
        Method method = type.getDeclaredMethod(name, arguments);
        method.setAccessible(true);
        return method;
    }

    static void add(Pick pick, Collection<? extends SSTableReader> tables)
    {
        for (SSTableReader table : tables)
            pick.tables.add((Table) table);
        pick.tables.sort((a, b) -> Integer.compare(a.id, b.id));
    }

    /** Of strategies whose state is the set alone. */
    static abstract class Plain implements Chooser
    {
        abstract AbstractCompactionStrategy strategy();
        public void replaced(List<SSTableReader> removed, List<SSTableReader> added) { strategy().replaceSSTables(removed, added); }
        public void added(SSTableReader table) { strategy().addSSTable(table); }
    }

    static class Listed extends Plain
    {
        final AbstractCompactionStrategy strategy;
        final Method next;
        Listed(AbstractCompactionStrategy strategy) throws Exception
        {
            this.strategy = strategy;
            next = method(strategy.getClass(), "getNextBackgroundSSTables", long.class);
        }
        AbstractCompactionStrategy strategy() { return strategy; }
        public Pick next(long gcBefore) throws Exception
        {
            Pick pick = new Pick();
            @SuppressWarnings("unchecked")
            List<SSTableReader> chosen = (List<SSTableReader>) next.invoke(strategy, gcBefore);
            add(pick, chosen);
            pick.pending = strategy.getEstimatedRemainingTasks();
            return pick;
        }
    }

    static class OfLevels extends Plain
    {
        final LeveledCompactionStrategy strategy;
        OfLevels(LeveledCompactionStrategy strategy) { this.strategy = strategy; }
        AbstractCompactionStrategy strategy() { return strategy; }
        public Pick next(long gcBefore) throws Exception
        {
            Pick pick = new Pick();
            LeveledManifest.CompactionCandidate candidate = strategy.manifest.getCompactionCandidates();
            if (candidate == null)
            {
                Table table = (Table) method(LeveledCompactionStrategy.class, "findDroppableSSTable", long.class)
                                      .invoke(strategy, gcBefore);
                if (table != null)
                {
                    pick.tables.add(table);
                    pick.level = table.level;
                    pick.limit = strategy.getMaxSSTableBytes();
                }
            }
            else
            {
                add(pick, candidate.sstables);
                pick.level = candidate.level;
                pick.limit = candidate.maxSSTableBytes == Long.MAX_VALUE ? 0 : candidate.maxSSTableBytes;
            }
            pick.pending = strategy.getEstimatedRemainingTasks();
            return pick;
        }
    }

    static class OfDensity extends Plain
    {
        final UnifiedCompactionStrategy strategy;
        final Controller controller;
        final Store store;
        final ShardManager shards;
        OfDensity(Store store, Map<String, String> options) throws Exception
        {
            this.store = store;
            controller = FixedController.of(Controller.fromOptions(store, options));
            strategy = new UnifiedCompactionStrategy(store, options, controller);
            shards = new ShardManagerNoDisks(ColumnFamilyStore.fullWeightedRange(-1, Murmur3Partitioner.instance));
            set(strategy, UnifiedCompactionStrategy.class, "shardManager", shards);
        }
        AbstractCompactionStrategy strategy() { return strategy; }
        public Pick next(long gcBefore) throws Exception
        {
            Pick pick = new Pick();
            UnifiedCompactionStrategy.CompactionPick chosen = strategy.getNextCompactionPick(gcBefore);
            if (chosen != null)
            {
                add(pick, chosen);
                Set<SSTableReader> expired = CompactionController.getFullyExpiredSSTables(
                    store, chosen, store.getOverlappingLiveSSTables(chosen), gcBefore);
                Set<SSTableReader> left = new HashSet<>(chosen);
                left.removeAll(expired);
                double density = shards.calculateCombinedDensity(left);
                pick.shards = controller.getNumShards(density * shards.shardSetCoverage());
            }
            pick.pending = strategy.getEstimatedRemainingTasks();
            return pick;
        }
    }

    static Chooser chooser(String name, Store store, Map<String, String> options) throws Exception
    {
        switch (name)
        {
            case "SizeTieredCompactionStrategy": return new Listed(new SizeTieredCompactionStrategy(store, options));
            case "TimeWindowCompactionStrategy": return new Listed(new TimeWindowCompactionStrategy(store, options));
            case "LeveledCompactionStrategy": return new OfLevels(new LeveledCompactionStrategy(store, options));
            default: return new OfDensity(store, options);
        }
    }

    final Random random;
    final PrintStream out;
    int nextId = 1;
    long nextTimestamp;

    Choose(long seed, PrintStream out)
    {
        random = new Random(seed);
        this.out = out;
    }

    boolean oneIn(int n) { return random.nextInt(n) == 0; }

    String any(String... of) { return of[random.nextInt(of.length)]; }

    Map<String, String> options(String name)
    {
        Map<String, String> options = new TreeMap<>();
        if (oneIn(3)) options.put("tombstone_threshold", any("0.1", "0.35", "0.5"));
        if (oneIn(4)) options.put("tombstone_compaction_interval", any("0", "3600", "200000"));
        if (oneIn(4)) options.put("unchecked_tombstone_compaction", any("true", "false"));
        if (oneIn(6)) options.put("only_purge_repaired_tombstones", "true");
        if (!name.startsWith("Unified"))
        {
            if (oneIn(2)) options.put("min_threshold", any("2", "3", "6"));
            if (oneIn(3)) options.put("max_threshold", any("6", "8", "12"));
            if (oneIn(3)) options.put("bucket_high", any("1.2", "2.5"));
            if (oneIn(3)) options.put("bucket_low", any("0.3", "0.8"));
            if (oneIn(2)) options.put("min_sstable_size", any("0", "1000000", "200000000"));
        }
        if (name.startsWith("Leveled"))
        {
            options.put("sstable_size_in_mb", any("1", "2", "160"));
            if (oneIn(2)) options.put("fanout_size", any("2", "4"));
        }
        if (name.startsWith("TimeWindow"))
        {
            options.put("compaction_window_unit", any("MINUTES", "HOURS", "DAYS"));
            if (oneIn(2)) options.put("compaction_window_size", any("1", "6"));
            if (oneIn(3)) options.put("expired_sstable_check_frequency_seconds", any("0", "3600"));
        }
        if (name.startsWith("Unified"))
        {
            options.put("scaling_parameters", any("T4", "L10", "N", "L4", "T8, T4, N, L4", "T3", "-8", "2, N"));
            if (oneIn(2)) options.put("target_sstable_size", any("100MiB", "1GiB", "5GiB", "32MiB"));
            options.put("min_sstable_size", any("0B", "10MiB", "1MiB"));
            if (oneIn(2)) options.put("base_shard_count", any("1", "8", "12"));
            if (oneIn(2)) options.put("sstable_growth", any("0", "1", "0.5", "33%"));
            if (oneIn(2)) options.put("flush_size_override", any("1MiB", "20MiB", "128MiB"));
            if (oneIn(3)) options.put("max_sstables_to_compact", any("4", "8", "16"));
            if (oneIn(2)) options.put("overlap_inclusion_method", any("NONE", "SINGLE", "TRANSITIVE"));
            if (oneIn(2)) options.put("expired_sstable_check_frequency_seconds", any("1", "3600"));
        }
        return options;
    }

    Table table(String name, long typical) throws Exception
    {
        Table table = allocate(Table.class);
        table.id = nextId++;
        long a = random.nextLong(), b = random.nextLong();
        if (oneIn(3))
        {
            long width = (long) Math.scalb(random.nextDouble(), 50 + random.nextInt(13));
            b = a > Long.MAX_VALUE - width ? Long.MAX_VALUE - 1 : a + width;
        }
        table.first = Math.max(Math.min(a, b), Long.MIN_VALUE + 1);
        table.last = Math.max(a, b);
        table.data = Math.max(1, (long) (typical * Math.exp(random.nextGaussian() * (oneIn(2) ? 0.3 : 1.5))));
        table.total = table.data + table.data / 50 + random.nextInt(5000);
        describe(table);
        return table;
    }

    void describe(Table table) throws Exception
    {
        nextTimestamp += 1 + random.nextInt(90_000_000) * (oneIn(5) ? 60L : 1L);
        table.maxTimestamp = nextTimestamp;
        table.minTimestamp = nextTimestamp - random.nextInt(1_000_000_000);
        table.maxDeletion = oneIn(4) ? START_MILLIS / 1000 - 100_000 + random.nextInt(200_000) : Long.MAX_VALUE;
        table.created = START_MILLIS - random.nextInt(200_000_000);
        table.keys = 128 * (1 + random.nextInt(10_000));
        table.shared = oneIn(4) ? -1 : (long) (table.keys * random.nextDouble());
        table.cells = 1 + random.nextInt(40);
        table.partitions = 1 + table.keys - random.nextInt(100);
        table.ratio = oneIn(3) ? random.nextDouble() : 0;
        table.hotness = oneIn(3) ? random.nextInt(1000) / 64.0 : 0;
    }

    /** SSTables of a level that do not overlap, but for one now and then. */
    List<Table> level(int level, int count, long bytes) throws Exception
    {
        List<Table> tables = new ArrayList<>();
        long step = -1L >>> 1;
        step = step / count * 2;
        for (int i = 0; i < count; i++)
        {
            Table table = table("", bytes);
            table.first = Long.MIN_VALUE + 1 + i * step + random.nextInt(1_000_000);
            table.last = table.first + (long) (step * (0.3 + random.nextDouble() * (oneIn(30) ? 1 : 0.6)));
            if (table.last < table.first)
                table.last = Long.MAX_VALUE - 1;
            table.level = level;
            tables.add(table);
        }
        return tables;
    }

    List<Table> start(String name, Map<String, String> options) throws Exception
    {
        List<Table> tables = new ArrayList<>();
        long typical = 1L << (18 + random.nextInt(12));
        if (name.startsWith("Leveled"))
        {
            long size = Long.parseLong(options.get("sstable_size_in_mb")) << 20;
            int newest = any("2", "6", "12", "50").charAt(0) == '5' ? 33 + random.nextInt(20) : random.nextInt(14);
            for (int i = 0; i < newest; i++)
                tables.add(table(name, size / 3));
            int fanout = Integer.parseInt(options.getOrDefault("fanout_size", "10"));
            int depth = random.nextInt(4);
            for (int level = 1; level <= depth; level++)
                tables.addAll(level(level, 1 + random.nextInt(Math.min(40, 2 * (int) Math.pow(fanout, level))), size));
            Collections.shuffle(tables, random);
            // identifiers in the order of arrival
            List<Integer> ids = tables.stream().map(t -> t.id).sorted().collect(Collectors.toList());
            for (int i = 0; i < ids.size(); i++)
                tables.get(i).id = ids.get(i);
            return tables;
        }
        int count = oneIn(5) ? 20 + random.nextInt(60) : 2 + random.nextInt(16);
        for (int i = 0; i < count; i++)
            tables.add(table(name, oneIn(2) ? typical : typical * (1 + random.nextInt(20))));
        return tables;
    }

    List<SSTableReader> outputs(String name, Pick pick, Set<SSTableReader> expired) throws Exception
    {
        List<Table> inputs = pick.tables.stream().filter(t -> !expired.contains(t)).collect(Collectors.toList());
        List<SSTableReader> outputs = new ArrayList<>();
        if (inputs.isEmpty())
            return outputs;
        long bytes = inputs.stream().mapToLong(t -> t.data).sum();
        long first = inputs.stream().mapToLong(t -> t.first).min().getAsLong();
        long last = inputs.stream().mapToLong(t -> t.last).max().getAsLong();
        int count = pick.limit > 0 ? (int) Math.max(1, bytes / pick.limit) : 1;
        count = Math.min(count, 60);
        double width = ((double) last - (double) first) / count;
        for (int i = 0; i < count; i++)
        {
            Table table = allocate(Table.class);
            table.id = nextId++;
            table.first = i == 0 ? first : (long) (first + width * i) + 5_000;
            table.last = i == count - 1 ? last : (long) (first + width * (i + 1)) - 5_000;
            table.data = Math.max(1, bytes / count + i);
            table.total = table.data + table.data / 50;
            long newest = inputs.stream().mapToLong(t -> t.maxTimestamp).max().getAsLong();
            describe(table);
            table.maxTimestamp = newest - i;
            table.minTimestamp = inputs.stream().mapToLong(t -> t.minTimestamp).min().getAsLong();
            table.created = now - i;
            table.level = pick.level;
            table.ready();
            outputs.add(table);
        }
        return outputs;
    }

    void scenario(int number, String name) throws Exception
    {
        nextId = 1;
        now = START_MILLIS;
        nextTimestamp = (START_MILLIS - 400_000_000L) * 1000;
        Map<String, String> options = options(name);
        Store store = store(options);
        Chooser chooser = chooser(name, store, options);
        double flush = Math.pow(2, 18 + random.nextDouble() * 10);
        ((ExpMovingAverage) ((Object) store.metric.flushSizeOnDisk)).update(flush);
        out.printf("case %d %s %s%n", number, name,
                   options.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue().replace(" ", "")).collect(Collectors.joining(" ")));
        List<Table> tables = start(name, options);
        tables.sort((a, b) -> Integer.compare(a.id, b.id));
        boolean repaired = oneIn(4);
        for (Table table : tables)
        {
            table.repaired = repaired;
            table.ready();
            out.println(table.line('t'));
            store.live.add(table);
            chooser.added(table);
        }
        if (chooser instanceof OfLevels)
            ((OfLevels) chooser).strategy.startup();
        // some go on for so long that the highest level has to wait
        boolean isLong = name.startsWith("Leveled") && tables.size() < 40 && oneIn(6);
        int steps = isLong ? 45 : 2 + random.nextInt(4);
        for (int step = 0; step < steps; step++)
        {
            now += oneIn(2) ? 1000 : 700_000;
            long gcBefore = now / 1000 - (oneIn(2) ? 0 : 864_000);
            out.printf("at %d %d %s%n", now, gcBefore, flush);
            Pick pick = chooser.next(gcBefore);
            out.printf("pick %d %d %d %d :%s%n", pick.pending, pick.level, pick.limit, pick.shards,
                       pick.tables.stream().map(t -> " " + t.id).collect(Collectors.joining()));
            if (pick.tables.isEmpty() && !isLong)
                break;
            if (!isLong && oneIn(3))
            {
                // it goes on while the next one is chosen
                out.println("busy" + pick.tables.stream().map(t -> " " + t.id).collect(Collectors.joining()));
                store.compacting.addAll(pick.tables);
                continue;
            }
            List<SSTableReader> removed = new ArrayList<>(pick.tables);
            Set<SSTableReader> expired = CompactionController.getFullyExpiredSSTables(
                store, removed, store.getOverlappingLiveSSTables(removed), gcBefore);
            List<SSTableReader> added = pick.tables.isEmpty() ? new ArrayList<>() : outputs(name, pick, expired);
            for (SSTableReader table : added)
                ((Table) table).repaired = repaired;
            store.live.removeAll(removed);
            store.live.addAll(added);
            out.println("gone" + pick.tables.stream().map(t -> " " + t.id).collect(Collectors.joining()));
            for (SSTableReader table : added)
                out.println(((Table) table).line('o'));
            out.println("done");
            if (!removed.isEmpty())
                chooser.replaced(removed, added);
            for (int i = isLong ? 2 : random.nextInt(4); i > 0; i--)
            {
                Table table = table(name, 1L << 20);
                table.repaired = repaired;
                table.ready();
                out.println(table.line('t'));
                store.live.add(table);
                chooser.added(table);
            }
        }
    }

    void boundaries() throws Exception
    {
        ShardManager shards = new ShardManagerNoDisks(ColumnFamilyStore.fullWeightedRange(-1, Murmur3Partitioner.instance));
        for (int count : new int[]{ 1, 2, 3, 4, 7, 12, 24, 64, 1000, 4 << 20 })
        {
            ShardTracker tracker = shards.boundaries(count);
            for (int i = 0; i < 30; i++)
            {
                long token = Long.MIN_VALUE + 1 + i * (Long.MAX_VALUE / 15 - 1);
                tracker.advanceTo(new LongToken(token));
                out.printf("shard %d %d %d %s%n", count, token, tracker.shardIndex(), tracker.shardEnd() == null ? "end" : tracker.shardEnd());
            }
        }
    }

    public static void main(String[] args) throws Exception
    {
        System.setProperty("cassandra.clock", SetClock.class.getName());
        Path scratch = Path.of(args[0]).toAbsolutePath();
        Scratch.configure(scratch, scratch.resolve("data"), "SimpleSnitch");
        System.setProperty("cassandra.storagedir", scratch.toString());
        DatabaseDescriptor.daemonInitialization();
        PrintStream out = new PrintStream(args[1], "UTF-8");
        String[] names = { "SizeTieredCompactionStrategy", "LeveledCompactionStrategy", "TimeWindowCompactionStrategy",
                           "UnifiedCompactionStrategy" };
        long seed = Long.parseLong(args[2]);
        int count = Integer.parseInt(args[3]);
        Choose choose = new Choose(seed, out);
        choose.boundaries();
        for (int i = 0; i < count; i++)
            for (String name : names)
                choose.scenario(i, name);
        out.close();
        System.exit(0);
    }
}
