import java.io.File;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

import net.openhft.chronicle.bytes.BytesStore;
import net.openhft.chronicle.queue.RollCycles;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.ValueIn;
import net.openhft.chronicle.wire.ValueOut;
import net.openhft.chronicle.wire.WireIn;
import net.openhft.chronicle.wire.WireOut;

/**
 * Queues of Chronicle as Cassandra's audit log and full query log use them.
 *
 *   Queues write FILE      writes the same records to a queue of each roll cycle; what their files have goes to FILE
 *   Queues read DIR CYCLE  says what the records of a queue have, a line each
 */
public class Queues
{
    static final long TIME = 1795989621000L;
    static final String[] CYCLES = { "MINUTELY", "HOURLY", "DAILY", "LARGE_DAILY", "XLARGE_DAILY", "HUGE_DAILY" };

    public static void main(String[] args) throws Exception
    {
        if (args[0].equals("write"))
            Files.writeString(new File(args[1]).toPath(), written());
        else
            read(new File(args[1]), RollCycles.valueOf(args[2]));
    }

    static String written() throws Exception
    {
        StringBuilder out = new StringBuilder();
        for (String cycle : CYCLES)
        {
            File dir = Files.createTempDirectory("queue").toFile();
            try (var queue = SingleChronicleQueueBuilder.single(dir).rollCycle(RollCycles.valueOf(cycle)).timeProvider(() -> TIME).build();
                 var appender = queue.acquireAppender())
            {
                for (int i = 0; i < 20; i++)
                {
                    int n = i;
                    appender.writeDocument(wire -> record(wire, n));
                }
            }
            File[] files = dir.listFiles();
            Arrays.sort(files);
            for (File file : files)
            {
                out.append(cycle).append(' ').append(file.getName()).append(' ').append(file.length()).append('\n');
                runs(Files.readAllBytes(file.toPath()), out);
                file.delete();
            }
            dir.delete();
        }
        return out.toString();
    }

    /** Each stretch of 16 bytes that has anything. */
    static void runs(byte[] bytes, StringBuilder out)
    {
        for (int at = 0; at < bytes.length; at += 16)
        {
            byte[] line = Arrays.copyOfRange(bytes, at, Math.min(at + 16, bytes.length));
            for (byte b : line)
            {
                if (b != 0)
                {
                    out.append(String.format("%x ", at)).append(HexFormat.of().formatHex(line)).append('\n');
                    break;
                }
            }
        }
    }

    static void record(WireOut wire, int n)
    {
        boolean isBatch = n % 4 == 3;
        wire.write("version").int16((short) 0);
        wire.write("type").text(isBatch ? "batch" : "single-query");
        wire.write("query-start-time").int64(TIME + n);
        wire.write("protocol-version").int32(4);
        wire.write("query-options").bytes(BytesStore.wrap(new byte[n * 17]));
        wire.write("generated-timestamp").int64(TIME * 1000 + n);
        wire.write("generated-now-in-seconds").int32((int) (TIME / 1000) + n);
        wire.write("keyspace").text(n % 2 == 0 ? null : "k".repeat(n));
        String text = "\u00e9\ud83d\ude00x".repeat(n);
        if (!isBatch)
        {
            wire.write("query").text(text);
            return;
        }
        wire.write("batch-type").text("LOGGED");
        ValueOut out = wire.write("queries");
        out.int32(2);
        out.text(text);
        out.text("");
        out = wire.write("values");
        out.int32(2);
        out.int32(2);
        out.bytes(BytesStore.wrap(new byte[] { 1, 2, (byte) n }));
        out.bytes((BytesStore) null);
        out.int32(0);
    }

    static void read(File dir, RollCycles cycle)
    {
        try (var queue = SingleChronicleQueueBuilder.single(dir).readOnly(true).rollCycle(cycle).build())
        {
            var tailer = queue.createTailer();
            while (tailer.readDocument(Queues::say));
        }
    }

    static void say(WireIn wire)
    {
        List<String> said = new ArrayList<>();
        said.add(String.valueOf(wire.read("version").int16()));
        String type = wire.read("type").text();
        said.add(type);
        if (type.equals("audit"))
        {
            said.add(wire.read("message").text());
            System.out.println(String.join("\t", said).replace("\n", "\\n"));
            return;
        }
        said.add(String.valueOf(wire.read("query-start-time").int64()));
        said.add(String.valueOf(wire.read("protocol-version").int32()));
        said.add(HexFormat.of().formatHex(wire.read("query-options").bytes()));
        said.add(String.valueOf(wire.read("generated-timestamp").int64()));
        said.add(String.valueOf(wire.read("generated-now-in-seconds").int32()));
        said.add(wire.read("keyspace").text());
        if (type.equals("single-query"))
            said.add(wire.read("query").text());
        else
        {
            said.add(wire.read("batch-type").text());
            ValueIn in = wire.read("queries");
            for (int n = in.int32(); n > 0; n--)
                said.add(in.text());
            in = wire.read("values");
            for (int n = in.int32(); n > 0; n--)
            {
                StringBuilder values = new StringBuilder("[");
                for (int m = in.int32(); m > 0; m--)
                {
                    byte[] bytes = in.bytes();
                    values.append(bytes == null ? "null" : HexFormat.of().formatHex(bytes)).append(m > 1 ? " " : "");
                }
                said.add(values + "]");
            }
        }
        System.out.println(String.join("\t", said.stream().map(String::valueOf).toList()).replace("\n", "\\n"));
    }
}
