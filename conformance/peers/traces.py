"""Traced requests in a ring: each of its nodes coordinates, and the session has the events of all replicas.

    traces.py HOST HOST [HOST...]        nodes of one ring, each with the native protocol on port 9042
"""

import os
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))
import wire  # noqa: E402

TRACING = 0x02
PATIENCE = 20
KEYSPACE = 'cf_traces'
# Statements, and the starts of what each replica has to say of them: as a Cassandra says it, or a Helenus.
CASES = [
    ('INSERT INTO t (k, v) VALUES (1, 1)', ['Adding to t memtable']),
    ('SELECT * FROM t WHERE k = 1', ['Executing single-partition query on t', 'Read 1 live rows']),
    ('SELECT * FROM t', ['Executing seq scan', 'Read 1 live rows']),
    ('UPDATE t SET v = 2 WHERE k = 1 IF v = 1', ['Promising ballot', 'Accepting proposal', 'Committing proposal']),
]


def trace(connection, text):
    """Runs a statement at ALL, traced; the id of its session."""
    body = wire.long_string(text) + wire.Options(consistency='ALL').encode(connection.version)
    connection._send(struct.pack('>BBhBi', connection.version, TRACING, 1, wire.QUERY, len(body)) + body)
    opcode, flags, _, answer = connection.receive()
    if opcode == wire.ERROR or not flags & TRACING:
        raise SystemExit(f'{text}: {answer}')
    return answer[:16]


def events(connection, session):
    answer = connection.query(f'SELECT source, activity FROM system_traces.events WHERE session_id = {wire_uuid(session)}',
                              wire.Options(consistency='ALL'))
    return [('.'.join(map(str, source)), activity.decode()) for source, activity in answer.get('rows', [])]


def wire_uuid(raw):
    text = raw.hex()
    return '-'.join([text[:8], text[8:12], text[12:16], text[16:20], text[20:]])


def must(connection, text):
    answer = connection.query(text)
    if answer['kind'] == 'error':
        raise SystemExit(f'{text}: {answer["message"]}')


def lacks(found, hosts, wanted):
    """What replicas have not said."""
    said = {host: [activity for source, activity in found if source == host] for host in hosts}
    return [(host, start) for host in hosts for start in wanted if not any(activity.startswith(start) for activity in said[host])]


def main(hosts):
    connections = [wire.Connection(host) for host in hosts]
    must(connections[0], f'DROP KEYSPACE IF EXISTS {KEYSPACE}')
    must(connections[0], f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {len(hosts)}}}")
    must(connections[0], f'CREATE TABLE {KEYSPACE}.t (k int PRIMARY KEY, v int)')
    time.sleep(2)
    failed = 0
    for host, connection in zip(hosts, connections):
        must(connection, f'USE {KEYSPACE}')
        for text, wanted in CASES:
            wanted = [start for start in wanted]
            if ' IF ' in text:
                must(connection, 'UPDATE t SET v = 1 WHERE k = 1')
            session, end = trace(connection, text), time.monotonic() + PATIENCE
            while (missing := lacks(found := events(connection, session), hosts, wanted)) and time.monotonic() < end:
                time.sleep(0.2)
            told = [activity for _, activity in found if 'mismatch' in activity]
            failed += bool(missing or told)
            print(f'{"failed" if missing or told else "ok"} {host}: {text}: {len(found)} events {missing} {told}')
            if missing and '--show' in sys.argv:
                for event in found:
                    print('   ', *event)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main([host for host in sys.argv[1:] if not host.startswith('--')])
