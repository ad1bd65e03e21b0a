"""All tables that corpus files leave behind: written on one server, read from any.

    tables.py fill HOST FILE...      runs the files of the corpus, and drops nothing
    tables.py index HOST FIRST       a table with an index, made if it is not there, and ROWS rows from FIRST on
    tables.py settle HOST            waits until Helenus there has its schema in SSTables
    tables.py dump HOST OUT.json     every row of every table of theirs, the timestamps of its cells, and what each index finds of each value
    tables.py compare A.json B.json  exit code 1 if they differ
"""

import json
import os
import sys
import time
import urllib.request
from decimal import Decimal

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import wire  # noqa: E402
from corpus import parse  # noqa: E402
from run import Server  # noqa: E402

SHOWN = 20
# tables that give two rows names that are equal and not alike, and which column that is
EQUAL_NAMES = {'"cf_lit"."asc7"': 1, '"cf_lit"."desc7"': 1}
SETTLE_SECONDS = 60
ROWS = 20
INDEXED = (
    "CREATE KEYSPACE IF NOT EXISTS cf_rt_indexed WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    'CREATE TABLE IF NOT EXISTS cf_rt_indexed.t (k int, c int, v int, PRIMARY KEY (k, c))',
    'CREATE INDEX IF NOT EXISTS t_v_idx ON cf_rt_indexed.t (v)',
)
# of which the system's own row is written at every start, and no change of the files that are filled in
UNCHANGED = 'scope="indexes"'
IN_MEMORY = 'cassandra_table_memtablelivedatasize_bytes{keyspace="system_schema",'


def fill(host, files):
    server = Server(host)
    server.clean()
    for name in files:
        for step in parse(os.path.join(HERE, '..', 'corpus', name + '.cql')):
            if step.cql and step.cql.lstrip().upper().startswith('DROP KEYSPACE'):
                continue
            server.run(step)
        server.close()


def index(host, first):
    connection = wire.Connection(host, 9042, 4)
    inserts = [f'INSERT INTO cf_rt_indexed.t (k, c, v) VALUES ({n % 7}, {n}, {n % 3})' for n in range(first, first + ROWS)]
    # rows of before move from one value to another
    moved = [f'UPDATE cf_rt_indexed.t SET v = 9 WHERE k = {n % 7} AND c = {n}' for n in range(0, first, 5)]
    for statement in (*INDEXED, *inserts, *moved):
        answer = connection.query(statement)
        if answer['kind'] == 'error':
            raise SystemExit(f'{statement}: {answer}')


def settle(host):
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        text = urllib.request.urlopen(f'http://{host}:7070/metrics').read().decode()
        lines = [line for line in text.splitlines() if line.startswith(IN_MEMORY) and UNCHANGED not in line]
        if lines and all(float(line.split()[-1]) == 0 for line in lines):
            return
        if time.monotonic() > end:
            raise SystemExit('\n'.join(lines) or f'{host} says nothing of system_schema')
        time.sleep(0.1)


def rows(connection, query):
    answer = connection.query(query)
    if answer['kind'] != 'rows':
        return answer['kind']  # refused there and here: told apart by the corpus itself
    return [[None if cell is None else cell.hex() for cell in row] for row in answer['rows']]


def by_index(connection, table, column):
    """What an index finds of each value that the table has of a column."""
    values = {row[0] for row in connection.query(f'SELECT {column} FROM {table}')['rows']} - {None}
    query = f'SELECT * FROM {table} WHERE {column} = ?'
    prepared = connection.prepare(query)
    found = []
    for value in sorted(values):
        answer = connection.execute(prepared, wire.Options(values=[value]))
        rows = answer['rows'] if answer['kind'] == 'rows' else answer['kind']
        found.append([value.hex(), str(rows)])
    return found


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def dump(host, path):
    connection = wire.Connection(host, 9042, 4)
    found = {}
    tables = connection.query('SELECT keyspace_name, table_name FROM system_schema.tables')['rows']
    for keyspace, table in sorted((k.decode(), t.decode()) for k, t in tables):
        if not keyspace.lower().startswith('cf_'):
            continue
        name = f'{quoted(keyspace)}.{quoted(table)}'
        found[name] = rows(connection, f'SELECT * FROM {name}')
        where = f"keyspace_name = '{keyspace}' AND table_name = '{table}'"
        columns = connection.query(f'SELECT column_name, kind, type FROM system_schema.columns WHERE {where}')['rows']
        timed = [c.decode() for c, kind, of in columns if kind in (b'regular', b'static') and of != b'counter']
        if timed:
            times = ', '.join(f'writetime({quoted(c)})' for c in timed)
            found[name + ' times'] = rows(connection, f'SELECT {times} FROM {name}')
        plain = {c.decode() for c, kind, _ in columns if kind == b'regular'}
        indexes = connection.query(f'SELECT index_name, options FROM system_schema.indexes WHERE {where}')['rows']
        for column in sorted(plain):
            if any(options.endswith(b'target' + len(column).to_bytes(4, 'big') + column.encode()) for _, options in indexes):
                found[f'{name} by {column}'] = by_index(connection, name, quoted(column))
    with open(path, 'w', encoding='ascii') as f:
        json.dump(found, f, indent=0)
    count = sum(len(r) for r in found.values() if isinstance(r, list))
    print(f'{host}: {len(found)} tables and their times, {count} rows')


def number(cell):
    """A decimal's value."""
    value = bytes.fromhex(cell)
    return str(Decimal(int.from_bytes(value[4:], 'big', signed=True)).scaleb(-int.from_bytes(value[:4], 'big', signed=True)).normalize())


def by_value(tables):
    """Cassandra replays its log with many hands: of rows named 1.5 and 1.50, which are one, either name stays."""
    for name, column in EQUAL_NAMES.items():
        rows = tables.get(name)
        if isinstance(rows, list):
            tables[name] = [[number(cell) if at == column else cell for at, cell in enumerate(row)] for row in rows]
    return tables


def compare(a, b):
    ours, theirs = (by_value(json.load(open(path, encoding='ascii'))) for path in (a, b))
    # a table that one of them does not serve is refused by it
    names = sorted(set(ours) | set(theirs))
    differ = [n for n in names if ours.get(n) != theirs.get(n) and 'error' not in (ours.get(n), theirs.get(n))]
    for name in differ[:SHOWN]:
        print(f'{name}\n  {str(ours.get(name))[:500]}\n  {str(theirs.get(name))[:500]}')
    refused = sum('error' in (ours.get(n), theirs.get(n)) for n in names)
    print(f'{len(names)} compared, {len(differ)} differ, {refused} not served by one of both')
    return 1 if differ or not names else 0


def main():
    command, *rest = sys.argv[1:]
    if command == 'fill':
        fill(rest[0], rest[1:])
    elif command == 'index':
        index(rest[0], int(rest[1]))
    elif command == 'settle':
        settle(*rest)
    elif command == 'dump':
        dump(*rest)
    elif command == 'compare':
        return compare(*rest)
    return 0


if __name__ == '__main__':
    sys.exit(main())
