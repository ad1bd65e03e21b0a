"""Reads a table as the Spark connector does: scan.py HOST KEYSPACE TABLE ROWS PARTITIONS.

The connector waits for `system.size_estimates`, concludes from them how large the table is, cuts the ranges of the ring into
pieces of some size and reads each by a prepared scan, page by page. Exit code 1 unless the estimates come near to PARTITIONS
and the pieces have ROWS rows, each in its own piece and in the order of the ring.
"""

import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

import wire  # noqa: E402

LEAST, RING = -2**63, 2**64
# a node estimates at its start and every few minutes (Cassandra: 5)
ESTIMATES_SECONDS = 330
# how far the estimate may be from what is there
TOLERANCE = 0.2
# what a piece should hold; the connector's own default would make one piece of a table this small
PIECE_BYTES = 64 * 1024
PAGE = 1000
ESTIMATES = ('SELECT range_start, range_end, partitions_count, mean_partition_size FROM system.size_estimates '
             'WHERE keyspace_name = ? AND table_name = ?')


def rows(answer):
    if answer['kind'] != 'rows':
        sys.exit(f'{answer}')
    return answer['rows']


def number(cell):
    return struct.unpack('>q', cell)[0]


def width(start, end):
    """The part of the ring that a range covers; one that ends at the least token ends at the ring's end."""
    return (end - start) % RING or RING


def estimates(connection, keyspace, table):
    """Ranges with their partitions and bytes."""
    found = rows(connection.query(ESTIMATES, wire.Options(values=[keyspace.encode(), table.encode()])))
    return [(int(a), int(b), number(n), number(n) * number(mean)) for a, b, n, mean in found]


def whole(found):
    """Partitions and bytes of the table, from what is known of some ranges."""
    share = sum(width(a, b) for a, b, _, _ in found) / RING
    return [sum(r[i] for r in found) / share if share else 0 for i in (2, 3)]


def wait(connection, keyspace, table, partitions):
    end = time.monotonic() + ESTIMATES_SECONDS
    while True:
        found = estimates(connection, keyspace, table)
        near = abs(whole(found)[0] - partitions) <= TOLERANCE * partitions
        if near:
            return found
        if time.monotonic() > end:
            sys.exit(f'{partitions} partitions, estimated as {whole(found)}')
        time.sleep(1)


def pieces(connection, size):
    """The ranges between the tokens of the ring, each cut in as many as its share of the table wants."""
    tokens = connection.query('SELECT tokens FROM system.local')
    tokens = sorted(int(t) for t in texts(rows(tokens)[0][0]))
    wanted = max(1, size / PIECE_BYTES)
    for start, end in zip(tokens[-1:] + tokens[:-1], tokens):
        whole_width = width(start, end)
        count = max(1, round(wanted * whole_width / RING))
        cuts = [start + whole_width * i // count for i in range(count + 1)]
        cuts = [(c - LEAST) % RING + LEAST for c in cuts]
        for a, b in zip(cuts, cuts[1:]):
            if a < b or b == LEAST:
                yield a, b
            else:  # over the end of the ring
                yield a, LEAST
                yield LEAST, b


def texts(cell):
    """The elements of a set<text>."""
    count, at, found = struct.unpack('>i', cell[:4])[0], 4, []
    for _ in range(count):
        size = struct.unpack('>i', cell[at:at + 4])[0]
        found.append(cell[at + 4:at + 4 + size].decode())
        at += 4 + size
    return found


def scan(connection, prepared, start, end):
    """Tokens of the rows of a piece."""
    values, state, found = [struct.pack('>q', start), struct.pack('>q', end)], None, []
    while True:
        answer = connection.execute(prepared, wire.Options(values=values, page_size=PAGE, paging_state=state))
        found += [number(row[0]) for row in rows(answer)]
        state = answer['metadata'].get('paging_state')
        if state is None:
            return found


def main():
    host, keyspace, table, count, partitions = sys.argv[1:]
    connection = wire.Connection(host, timeout=60)
    key = '"site", "sensor"'
    found = wait(connection, keyspace, table, int(partitions))
    guess = whole(found)
    prepared = connection.prepare(f'SELECT TOKEN({key}) AS connector_token, "at", "celsius" FROM "{keyspace}"."{table}" '
                                  f'WHERE token({key}) > ? AND token({key}) <= ?   ALLOW FILTERING')
    read, scans = 0, 0
    for start, end in pieces(connection, guess[1]):
        tokens = scan(connection, prepared, start, end)
        inside = all(start < t and (t <= end or end == LEAST) for t in tokens)
        if not inside or tokens != sorted(tokens):
            sys.exit(f'rows of other pieces, or out of order, in ({start}, {end}]')
        read, scans = read + len(tokens), scans + 1
    print(f'ok {len(found)} estimates say {guess[0]:.0f} partitions in {guess[1]:.0f} bytes (there are {partitions}); '
          f'{read} rows in {scans} pieces')
    return 0 if read == int(count) else 1


if __name__ == '__main__':
    sys.exit(main())
