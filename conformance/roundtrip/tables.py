"""All tables that corpus files leave behind: written on one server, read from any.

    tables.py fill HOST FILE...      runs the files of the corpus, and drops nothing
    tables.py settle HOST            waits until Helenus there has its schema in SSTables
    tables.py dump HOST OUT.json     every row of every table of theirs, and the timestamps of its cells
    tables.py compare A.json B.json  exit code 1 if they differ
"""

import json
import os
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import wire  # noqa: E402
from corpus import parse  # noqa: E402
from run import Server  # noqa: E402

SHOWN = 20
SETTLE_SECONDS = 60
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


def settle(host):
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        text = urllib.request.urlopen(f'http://{host}:7070/metrics').read().decode()
        lines = [line for line in text.splitlines() if line.startswith(IN_MEMORY)]
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
    with open(path, 'w', encoding='ascii') as f:
        json.dump(found, f, indent=0)
    count = sum(len(r) for r in found.values() if isinstance(r, list))
    print(f'{host}: {len(found)} tables and their times, {count} rows')


def compare(a, b):
    ours, theirs = (json.load(open(path, encoding='ascii')) for path in (a, b))
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
    elif command == 'settle':
        settle(*rest)
    elif command == 'dump':
        dump(*rest)
    elif command == 'compare':
        return compare(*rest)
    return 0


if __name__ == '__main__':
    sys.exit(main())
