#!/usr/bin/env python3
"""Writes what a live Cassandra 5.0.9 shows in its virtual tables.

    capture_virtual_tables.py HOST START_DIR > virtual_tables.json

By table: names of the columns, and rows of values in hexadecimal. START_DIR, the node's directory, is written
/var/lib/cassandra.
"""
import json, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', '..', 'conformance', 'oracle'))
from wire import Connection, Options  # noqa: E402

TABLES = ['system_virtual_schema.' + t for t in ('keyspaces', 'tables', 'columns')] + ['system_views.' + t for t in (
    'settings', 'caches', 'thread_pools', 'clients', 'snapshots', 'gossip_info', 'internode_outbound', 'cql_metrics',
    'disk_usage', 'local_read_latency', 'batch_metrics', 'queries')]


def main(host, start):
    c, out = Connection(host), {}
    for table in TABLES:
        r = c.query('SELECT * FROM ' + table, Options(page_size=100000))
        shown = lambda v: v if v is None else v.replace(start.encode(), b'/var/lib/cassandra').hex()
        out[table] = {'columns': [column[2] for column in r['metadata']['columns']],
                      'rows': [[shown(v) for v in row] for row in r['rows']]}
    print('{\n' + ',\n'.join(json.dumps(k) + ':' + json.dumps(v, separators=(',', ':')) for k, v in out.items()) + '\n}')


main(*sys.argv[1:])
