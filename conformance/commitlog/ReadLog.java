import java.io.IOException;
import java.util.Arrays;

import conformance.Scratch;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.Mutation;
import org.apache.cassandra.db.commitlog.CommitLogDescriptor;
import org.apache.cassandra.db.commitlog.CommitLogReadHandler;
import org.apache.cassandra.db.commitlog.CommitLogReader;
import org.apache.cassandra.io.util.File;

/**
 * Reads each segment of a directory with Cassandra's CommitLogReader and tells, a line each, its compressor and how many
 * mutations it has: of tables that this JVM knows (of system keyspaces), and of others. An error of the reader's is told
 * and ends it with code 1.
 */
public class ReadLog
{
    public static void main(String[] args) throws IOException
    {
        Scratch.configure("read-log");
        DatabaseDescriptor.toolInitialization();
        File[] files = new File(args[0]).tryList(file -> CommitLogDescriptor.isValid(file.name()));
        Arrays.sort(files, (a, b) -> a.name().compareTo(b.name()));
        boolean[] failed = new boolean[1];
        for (File file : files)
        {
            int[] known = new int[1];
            CommitLogReader reader = new CommitLogReader();
            CommitLogReadHandler handler = new CommitLogReadHandler()
            {
                public boolean shouldSkipSegmentOnError(CommitLogReadException e)
                {
                    System.out.println(file.name() + ": " + e.getMessage());
                    failed[0] = true;
                    return true;
                }

                public void handleUnrecoverableError(CommitLogReadException e)
                {
                    shouldSkipSegmentOnError(e);
                }

                public void handleMutation(Mutation m, int size, int location, CommitLogDescriptor descriptor)
                {
                    known[0]++;
                }
            };
            reader.readCommitLogSegment(handler, file, false);
            int unknown = reader.getInvalidMutations().stream().mapToInt(e -> e.getValue().get()).sum();
            CommitLogDescriptor descriptor = CommitLogDescriptor.fromHeader(file, DatabaseDescriptor.getEncryptionContext());
            String compressor = descriptor.compression == null ? "none" : descriptor.compression.class_name;
            System.out.println(file.name() + " " + compressor + " " + known[0] + " " + unknown);
        }
        System.exit(failed[0] ? 1 : 0);
    }
}
