#!/usr/bin/env python3
"""Streams between two nodes of a ring, each alone in its data centre: what one has, the other fetches.

    streams.py KIND NAME HOST CENTER NODETOOL... -- HOST CENTER NODETOOL...

KIND is `whole` or `part`; NAME is that of the keyspace. The first node gets data in its data centre alone; then the
keyspace is replicated to the other's too, and that one is told to `rebuild`: of the whole ring, or of some ranges, which
takes parts of SSTables. Afterwards each table reads alike on both, at LOCAL_ONE, within what was fetched; reads at ALL
find no replicas that differ there. NODETOOL is the command line of the node's nodetool.

Tables: each compressor and none, statics, collections, TTLs, range tombstones, deleted partitions, counters, user types,
compact storage, columns that were dropped, names and values beyond ASCII.
"""

import json
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))
from wire import Connection, Options  # noqa: E402

PARTITIONS = 80
ROWS = 12
PATIENCE_SECONDS = 60

COMPRESSORS = {
    'lz4': "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}",
    'snappy': "{'class': 'SnappyCompressor'}",
    'deflate': "{'class': 'DeflateCompressor'}",
    'zstd': "{'class': 'ZstdCompressor'}",
    'noop': "{'class': 'NoopCompressor'}",
    'plain': "{'enabled': 'false'}",
}


def must(connection, text, consistency='LOCAL_ONE'):
    answer = connection.query(text, Options(consistency=consistency))
    if answer['kind'] == 'error':
        raise SystemExit(f'{text}: {answer["message"]}')
    return answer


def tables():
    """Names as in statements, definitions, and what is written: statements of a partition."""
    found = []
    for name, compression in COMPRESSORS.items():
        columns = 'k int, c int, s text static, v text, m map<text, int>, l list<int>, PRIMARY KEY (k, c)'
        found.append((name, f'({columns}) WITH compression = {compression}', rows_of))
    found.append(('counted', '(k int, c int, n counter, PRIMARY KEY (k, c))', counts_of))
    found.append(('typed', '(k int PRIMARY KEY, f frozen<pair>, u pair, t tuple<int, text>)', types_of))
    found.append(('compact', '(k int, c text, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE', compact_of))
    found.append(('dropped', '(k int, c int, gone int, v text, PRIMARY KEY (k, c))', dropped_of))
    found.append(('"Names"', '(k int, "ключ" text, "значение" text, PRIMARY KEY (k, "ключ"))', names_of))
    found.append(('down', '(k int, c int, v blob, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC)', blobs_of))
    found.append(('empty', '(k int PRIMARY KEY)', lambda name, k: []))
    return found


def rows_of(name, k):
    yield f"UPDATE {name} USING TIMESTAMP 10 SET s = 'static {k}' WHERE k = {k}"
    for c in range(ROWS):
        yield (f"INSERT INTO {name} (k, c, v, m, l) VALUES ({k}, {c}, '{'wert ' * (k % 9)}{c}', {{'a': {c}, 'ü': {k}}}, "
               f"[{c}, {k}]) USING TIMESTAMP 20" + (' AND TTL 86400' if c == 3 else ''))
    yield f'DELETE FROM {name} USING TIMESTAMP 30 WHERE k = {k} AND c > 4 AND c <= 6'
    yield f'DELETE v FROM {name} USING TIMESTAMP 30 WHERE k = {k} AND c = 8'
    if k % 10 == 3:
        yield f'DELETE FROM {name} USING TIMESTAMP 40 WHERE k = {k}'


def counts_of(name, k):
    for c in range(4):
        yield f'UPDATE {name} SET n = n + {k + c} WHERE k = {k} AND c = {c}'
        yield f'UPDATE {name} SET n = n - 1 WHERE k = {k} AND c = {c}'


def types_of(name, k):
    yield (f"INSERT INTO {name} (k, f, u, t) VALUES ({k}, {{a: {k}, b: 'x'}}, {{a: {k}}}, ({k}, 'y')) USING TIMESTAMP 1")


def compact_of(name, k):
    for c in 'abc':
        yield f"INSERT INTO {name} (k, c, v) VALUES ({k}, '{c}', 'v{k}') USING TIMESTAMP 1"


def dropped_of(name, k):
    for c in range(3):
        yield f"INSERT INTO {name} (k, c, gone, v) VALUES ({k}, {c}, 1, 'v{k}') USING TIMESTAMP 1"


def names_of(name, k):
    yield f"""INSERT INTO {name} (k, "ключ", "значение") VALUES ({k}, 'ключ {k}', '\U0001f600 {k}') USING TIMESTAMP 1"""


def blobs_of(name, k):
    for c in range(ROWS):
        yield f"INSERT INTO {name} (k, c, v) VALUES ({k}, {c}, 0x{'ab' * (c * 40)}) USING TIMESTAMP 1"


class Node:
    def __init__(self, words):
        self.host, self.center, *self.nodetool_command = words
        self.cql = Connection(self.host, timeout=60)

    def nodetool(self, *words):
        done = subprocess.run(self.nodetool_command + list(words), capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f'{" ".join(words)} on {self.host}: {done.stdout}{done.stderr}')
        return done.stdout

    def tokens(self):
        """Those of the ring."""
        rows = [row for table in ('local', 'peers') for row in must(self.cql, f'SELECT JSON tokens FROM system.{table}')['rows']]
        return sorted(int(token) for row in rows for token in json.loads(row[0])['tokens'])

    def mismatches(self):
        lines = self.nodetool('netstats').splitlines()
        return [line for line in lines if line.startswith('Mismatch')]

    def rows(self, table, where='', consistency='LOCAL_ONE'):
        return must(self.cql, f'SELECT JSON * FROM {table} {where}', consistency)['rows']


def replicate(centers):
    factors = ''.join(f", '{center}': 1" for center in centers)
    return f"{{'class': 'NetworkTopologyStrategy'{factors}}}"


def fill(source, keyspace):
    must(source.cql, f'DROP KEYSPACE IF EXISTS {keyspace}')
    must(source.cql, f'CREATE KEYSPACE {keyspace} WITH replication = {replicate([source.center])}')
    must(source.cql, f'USE {keyspace}')
    must(source.cql, 'CREATE TYPE pair (a int, b text)')
    for name, definition, _ in tables():
        must(source.cql, f'CREATE TABLE {name} {definition}')
    # two SSTables of each table
    for half in (range(0, PARTITIONS, 2), range(1, PARTITIONS, 2)):
        for name, _, statements in tables():
            for text in (text for k in half for text in statements(name, k)):
                must(source.cql, text)
        source.nodetool('flush', keyspace)
    must(source.cql, 'ALTER TABLE dropped DROP gone')


def wait_until_known(node, keyspace):
    until = time.time() + PATIENCE_SECONDS
    while time.time() < until:
        if node.cql.query(f'USE {keyspace}')['kind'] != 'error':
            return
        time.sleep(0.2)
    raise SystemExit(f'{node.host} does not learn of {keyspace}')


def wait_until_replicated(node, keyspace):
    """Until the node knows that it has a replica itself."""
    until = time.time() + PATIENCE_SECONDS
    while time.time() < until:
        answer = node.cql.query(f'SELECT * FROM {keyspace}.empty', Options(consistency='LOCAL_ONE'))
        if answer['kind'] != 'error':
            return
        time.sleep(0.2)
    raise SystemExit(f'{node.host} does not learn of the replication of {keyspace}')


def some_ranges(node):
    """Every third range of the ring but the one over its end: Cassandra takes none that has two owners."""
    tokens = node.tokens()
    return list(zip(tokens, tokens[1:]))[::3]


def within(ranges):
    """The ranges as conditions; none for all."""
    return [f'WHERE token(k) > {left} AND token(k) <= {right}' for left, right in ranges] or ['']


def check(source, target, keyspace, ranges, found):
    for name, _, _ in tables():
        table = f'{keyspace}.{name}'
        theirs = [row for where in within(ranges) for row in source.rows(table, where)]
        ours = [row for where in within(ranges) for row in target.rows(table, where)]
        if theirs != ours:
            only = [row for row in theirs if row not in ours][:2]
            found.append(f'{table}: {len(theirs)} rows on {source.host}, {len(ours)} on {target.host}; e.g. {only}')
        if ranges:
            everything = target.rows(table)
            if len(everything) != len(ours):
                found.append(f'{table}: {len(everything)} rows on {target.host}, {len(ours)} of them asked for')
        print(f'{table}: {len(ours)} rows')
    before = target.mismatches()
    for name, _, _ in tables():
        for where in within(ranges):
            for node in (source, target):
                node.rows(f'{keyspace}.{name}', where, 'ALL')
    if target.mismatches() != before:
        found.append(f'reads at ALL found replicas that differ: {before}, then {target.mismatches()}')


def main():
    kind, keyspace, *words = sys.argv[1:]
    at = words.index('--')
    source, target = Node(words[:at]), Node(words[at + 1:])
    fill(source, keyspace)
    wait_until_known(target, keyspace)
    both = replicate([source.center, target.center])
    must(source.cql, f'ALTER KEYSPACE {keyspace} WITH replication = {both}')
    wait_until_replicated(target, keyspace)
    found = []
    if target.rows(f'{keyspace}.lz4'):
        found.append('there are rows before anything was fetched')
    ranges = some_ranges(target) if kind == 'part' else []
    tokens = ['-ts', ','.join(f'({left},{right}]' for left, right in ranges)] if ranges else []
    began = time.time()
    target.nodetool('rebuild', '-ks', keyspace, *tokens, '--', source.center)
    print(f'rebuild took {time.time() - began:.2f} s')
    check(source, target, keyspace, ranges, found)
    for problem in found:
        print('WRONG:', problem)
    print(f'{len(tables())} tables, {len(found)} wrong')
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
