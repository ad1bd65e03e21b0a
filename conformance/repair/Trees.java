package org.apache.cassandra.repair;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;

import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;
import org.apache.cassandra.utils.MerkleTree;

/** What Cassandra's own classes make of Merkle trees, and Guava's of bytes. */
class Trees
{
    static final Random random = new Random(13);
    /** Trees of more bytes are recorded as their hash. */
    static final int BYTES_MOST = 600;

    static void all() throws Exception
    {
        for (int i = 0; i < 400; i++)
            tree(i);
        for (int i = 0; i < 120; i++)
            split();
        for (int i = 0; i < 400; i++)
            differences(i);
        for (int i = 0; i < 120; i++)
            moved(i);
        for (int depth = 0; depth <= 16; depth++)
        {
            MerkleTree tree = even(Ranges.of(Ranges.MIN, Ranges.MIN), depth);
            Repairs.line("even", depth, tree.size(), shown(bytes(tree)));
        }
        depths();
        for (int length = 0; length < 200; length++)
            hash(length < 100 ? length : random.nextInt(3000));
    }

    static byte[] digest(byte[] bytes)
    {
        Hasher hasher = Hashing.concatenating(Hashing.murmur3_128(1000), Hashing.murmur3_128(2000)).newHasher();
        return hasher.putBytes(bytes).hash().asBytes();
    }

    /** A partition's hash is that of its token. */
    static void add(MerkleTree tree, long token)
    {
        add(tree, token, token);
    }

    static void add(MerkleTree tree, long token, long hashed)
    {
        byte[] hash = digest(ByteBuffer.allocate(8).putLong(hashed).array());
        LongToken at = new LongToken(token);
        tree.get(at).addHash(new MerkleTree.RowHash(at, hash, 100));
    }

    static MerkleTree even(Range<Token> range, int depth)
    {
        MerkleTree tree = new MerkleTree(Murmur3Partitioner.instance, range, MerkleTree.RECOMMENDED_DEPTH, (int) Math.pow(2, depth));
        tree.init();
        return tree;
    }

    static byte[] bytes(MerkleTree tree) throws Exception
    {
        byte[] bytes = Repairs.bytes(out -> tree.serialize(out, Repairs.VERSION));
        if (bytes.length != tree.serializedSize(Repairs.VERSION))
            throw new AssertionError("the size of " + tree);
        return bytes;
    }

    static String shown(byte[] bytes)
    {
        return bytes.length <= BYTES_MOST ? Repairs.hex(bytes) : bytes.length + ":" + Repairs.hex(digest(bytes));
    }

    static int depth(int i)
    {
        return i % 20 == 0 ? 9 + random.nextInt(3) : i % 4 == 0 ? random.nextInt(8) : random.nextInt(4);
    }

    static void tree(int i) throws Exception
    {
        Range<Token> range = Ranges.any(random);
        int depth = depth(i);
        MerkleTree tree = even(range, depth);
        List<Long> tokens = Ranges.tokens(random, range, random.nextInt(12));
        if (tokens.size() > 6)
            tokens.add(tokens.get(0)); // twice the same: what is left may be zeros
        for (long token : tokens)
            add(tree, token);
        Repairs.line("tree", range.left, range.right, depth, Ranges.show(tokens), shown(bytes(tree)));
    }

    /** A tree of another shape: divided where tokens are. */
    static MerkleTree splitted(Range<Token> range, List<Long> shared) throws Exception
    {
        MerkleTree tree = new MerkleTree(Murmur3Partitioner.instance, range, MerkleTree.RECOMMENDED_DEPTH, 1 + random.nextInt(24));
        for (int n = random.nextInt(30); n > 0; n--)
            tree.split(new LongToken(Ranges.token(random, range)));
        for (long token : shared)
            add(tree, token);
        for (long token : Ranges.tokens(random, range, random.nextInt(3)))
            add(tree, token);
        return tree;
    }

    static void split() throws Exception
    {
        Range<Token> range = Ranges.any(random);
        List<Long> shared = Ranges.tokens(random, range, random.nextInt(6));
        MerkleTree one = splitted(range, shared), other = splitted(range, shared);
        Repairs.line("split", bytes(one), bytes(other), Ranges.show(new ArrayList<>(MerkleTree.difference(one, other))));
    }

    static void differences(int i) throws Exception
    {
        Range<Token> range = Ranges.any(random);
        int depth = depth(i), otherDepth = random.nextInt(3) == 0 ? depth(i) : depth;
        int many = random.nextInt(8) == 0 ? 40 : 2;
        List<Long> both = Ranges.tokens(random, range, random.nextInt(8)), first = Ranges.tokens(random, range, random.nextInt(many + 1)),
                   second = Ranges.tokens(random, range, random.nextInt(many + 1));
        MerkleTree one = even(range, depth), other = even(range, otherDepth);
        for (long token : both) { add(one, token); add(other, token); }
        for (long token : first) add(one, token);
        for (long token : second) add(other, token);
        List<Range<Token>> found = new ArrayList<>(MerkleTree.difference(one, other));
        Repairs.line("difference", range.left, range.right, depth, otherDepth, Ranges.show(both), Ranges.show(first), Ranges.show(second), Ranges.show(found));
    }

    /** The same hash at another token: nodes above both are equal, and what is below them is not looked at. */
    static void moved(int i) throws Exception
    {
        Range<Token> range = Ranges.any(random);
        int depth = 1 + random.nextInt(6);
        List<Long> first = Ranges.tokens(random, range, 1 + random.nextInt(3)), second = Ranges.tokens(random, range, first.size()),
                   more = Ranges.tokens(random, range, random.nextInt(3));
        MerkleTree one = even(range, depth), other = even(range, depth);
        for (int n = 0; n < first.size(); n++)
        {
            add(one, first.get(n), first.get(n));
            add(other, second.get(n), first.get(n));
        }
        for (long token : more) add(one, token);
        List<Range<Token>> found = new ArrayList<>(MerkleTree.difference(one, other));
        Repairs.line("moved", range.left, range.right, depth, Ranges.show(first), Ranges.show(second), Ranges.show(more), Ranges.show(found));
    }

    /** What depth fits into bytes: at each step, and the depth that a count of partitions wants. */
    static void depths()
    {
        for (int depth = 1; depth <= 22; depth++)
        {
            long low = 1, high = 1L << 40; // the most bytes with this depth
            while (low < high)
            {
                long middle = (low + high + 1) / 2;
                if (MerkleTree.estimatedMaxDepthForBytes(Murmur3Partitioner.instance, middle, 32) <= depth) low = middle; else high = middle - 1;
            }
            Repairs.line("depth_of_bytes", depth, low);
        }
        for (int power = 0; power <= 40; power++)
            for (long partitions = Math.max(1, (1L << power) - 1); partitions <= (1L << power) + 1; partitions++)
                Repairs.line("depth_of_partitions", partitions, (int) Math.ceil(Math.log(partitions) / Math.log(2)));
    }

    static void hash(int length)
    {
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        Repairs.line("hash", length <= 100 ? Repairs.hex(bytes) : "random:" + length, digest(bytes));
    }
}
