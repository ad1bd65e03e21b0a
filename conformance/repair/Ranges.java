package org.apache.cassandra.repair;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Random;

import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.dht.Murmur3Partitioner.LongToken;
import org.apache.cassandra.dht.Range;
import org.apache.cassandra.dht.Token;

/** Ranges of all kinds, and tokens in them. */
class Ranges
{
    static final long MIN = Long.MIN_VALUE, MAX = Long.MAX_VALUE;

    static Range<Token> of(long left, long right)
    {
        return new Range<>(new LongToken(left), new LongToken(right));
    }

    /** Whole rings, short ranges, such as go over the ring's end, and such as touch it. */
    static Range<Token> any(Random random)
    {
        long a = random.nextLong(), b = random.nextLong(), few = random.nextInt(40);
        switch (random.nextInt(12))
        {
            case 0: return of(MIN, MIN);
            case 1: return of(a, a);
            case 2: return of(Math.max(a, b), Math.min(a, b));
            case 3: return of(a >> 1, (a >> 1) + 1 + few);
            case 4: return of(MAX - few, MIN + 1 + random.nextInt(40));
            case 5: return of(a, MIN);
            case 6: return of(MIN, a);
            case 7: return of(MAX, a);
            case 8: return of(MAX - 1 - few, MIN);
            case 9: return of(MIN, MIN + 1 + few);
            case 10: return of(a >> 8, (a >> 8) + (b >>> 40));
            default: return of(Math.min(a, b), Math.max(a, b));
        }
    }

    static long left(Range<Token> range) { return ((LongToken) range.left).token; }

    static long right(Range<Token> range) { return ((LongToken) range.right).token; }

    /** A token in a range; now and then one at which trees divide it. */
    static long token(Random random, Range<Token> range)
    {
        if (random.nextInt(4) == 0)
        {
            Token left = range.left, right = range.right;
            for (int depth = random.nextInt(5); depth >= 0; depth--)
            {
                Token middle = Murmur3Partitioner.instance.midpoint(left, right);
                if (random.nextBoolean()) left = middle; else right = middle;
            }
            for (Token at : new Token[]{ left, right, range.right })
                if (range.contains(at) && !at.isMinimum())
                    return ((LongToken) at).token;
        }
        while (true)
        {
            long token = random.nextBoolean() ? random.nextLong()
                                              : random.nextBoolean() ? left(range) + random.nextInt(100) : right(range) - random.nextInt(100);
            if (token != MIN && range.contains(new LongToken(token)))
                return token;
        }
    }

    static List<Long> tokens(Random random, Range<Token> range, int count)
    {
        List<Long> tokens = new ArrayList<>();
        for (int i = 0; i < count; i++)
            tokens.add(token(random, range));
        return tokens;
    }

    static String show(Collection<Range<Token>> ranges)
    {
        List<String> shown = new ArrayList<>();
        for (Range<Token> range : ranges)
            shown.add(range.left + ":" + range.right);
        return Repairs.join(shown);
    }

    static String show(List<Long> tokens)
    {
        List<String> shown = new ArrayList<>();
        for (long token : tokens)
            shown.add(Long.toString(token));
        return Repairs.join(shown);
    }
}
