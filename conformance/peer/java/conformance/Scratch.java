package conformance;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The cassandra.yaml and the directories of a JVM that runs Cassandra's classes and is no node. `cassandra run` compiles it
 * with the sources that it is given.
 */
public final class Scratch
{
    private Scratch() {}

    /** All in a new folder: what the classes need before they are initialised. */
    public static Path configure(String name) throws IOException
    {
        Path scratch = Files.createTempDirectory(name);
        configure(scratch, scratch.resolve("data"), "SimpleSnitch");
        return scratch;
    }

    /** In this folder, with data directories elsewhere, a snitch's class, and further lines of the file. */
    public static void configure(Path scratch, Path data, String snitch, String... more) throws IOException
    {
        Files.createDirectories(scratch);
        List<String> lines = new ArrayList<>(List.of(
            "cluster_name: none", "partitioner: Murmur3Partitioner", "commitlog_sync: periodic",
            "commitlog_sync_period: 10000ms", "endpoint_snitch: " + snitch, "listen_address: 127.0.0.1",
            "commitlog_directory: " + scratch.resolve("commitlog"), "hints_directory: " + scratch.resolve("hints"),
            "saved_caches_directory: " + scratch.resolve("caches"), "cdc_raw_directory: " + scratch.resolve("cdc"),
            "data_file_directories: [" + data + "]",
            "seed_provider: [{class_name: org.apache.cassandra.locator.SimpleSeedProvider, parameters: [{seeds: 127.0.0.1}]}]"));
        lines.addAll(List.of(more));
        Path yaml = scratch.resolve("cassandra.yaml");
        Files.writeString(yaml, String.join("\n", lines));
        System.setProperty("cassandra.config", yaml.toUri().toString());
    }
}
