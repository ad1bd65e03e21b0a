#!/usr/bin/env python3
"""Runs statements.py on a live Cassandra 5.0.9 and writes what it answered.

    capture.py HOST OWN_ADDRESS OUT_DIR

ddl.jsonl     a line a statement: the structure, `cql`, and `err` | `void` | `event`, `warn`, the schema `version`
              after it, `ts` (microseconds of its mutation), rows of system_schema that it changed, and the text of the
              elements of its keyspace that DESCRIBE now gives otherwise (null: gone).
start.json    the SCHEMA_PULL answer before the first statement, raw and decoded, and its version.
system.json   rows that describe the local and virtual system keyspaces, and DESCRIBE of all system keyspaces.
internals.json  DESCRIBE KEYSPACE ... WITH INTERNALS of each user keyspace at the end.
"""
import json, os, sys
from decode import decode
from statements import OPS, cql, ident
from node import Cql, Internode


def diff(before, after):
    """Partitions and rows of `after` that differ; null for rows that are gone."""
    out = {}
    for table in sorted(set(before) | set(after)):
        b, a = before.get(table, {'rows': {}}), after.get(table, {'rows': {}})
        if a == b:
            continue
        part = {}
        if a.get('del') != b.get('del'):
            part['del'] = a.get('del')
        rows = {k: a['rows'].get(k) for k in sorted(set(a['rows']) | set(b['rows'])) if a['rows'].get(k) != b['rows'].get(k)}
        if rows:
            part['rows'] = rows
        out[table] = part
    return out


def newest(part):
    """The time of the mutation: that of the keyspace's own row or deletion."""
    ks = part.get('keyspaces', {})
    ts = [row['t'] for row in ks.get('rows', {}).values() if row]
    return max(ts) if ts else ks['del'][0]


def describe(c, ks, internals=False):
    r = c.query('DESCRIBE KEYSPACE %s%s' % (ident(ks), ' WITH INTERNALS' if internals else ''))
    return {'%s %s' % (b.decode(), n.decode()): t.decode() for _, b, n, t in r.get('rows', [])}


def hexed(r):
    return {'columns': r['columns'], 'rows': [[v if v is None else v.hex() for v in row] for row in r['rows']]}


def main(host, own, out):
    c, node = Cql(host), Internode(own, host)
    start = node.pull()
    with open(os.path.join(out, 'start.json'), 'w') as f:
        json.dump({'version': node.version(), 'pull': start.hex(), 'rows': decode(start)}, f, separators=(',', ':'))
    state, told = decode(start), {}
    with open(os.path.join(out, 'ddl.jsonl'), 'w') as f:
        for o in OPS:
            line = dict(o, cql=cql(o), **c.query(cql(o)))
            if 'event' in line:
                after, ks = decode(node.pull()), o['ks']
                for name in set(after) | set(state):
                    d = diff(state.get(name, {}), after.get(name, {}))
                    if d:
                        line['ts'] = newest(d)
                        line.setdefault('rows', {})[name] = d
                state = after
                line['version'] = node.version()
                now, was = describe(c, ks), told.get(ks, {})
                line['desc'] = {k: now.get(k) for k in sorted(set(now) | set(was)) if now.get(k) != was.get(k)}
                told[ks] = now
            f.write(json.dumps(line, separators=(',', ':')) + '\n')
            if 'err' in line:
                print(line['cql'][:150], '->', line['err'])
    everything = {}
    for t in ('keyspaces', 'tables', 'columns'):
        everything['system_schema.' + t] = [hexed(c.query("SELECT * FROM system_schema.%s WHERE keyspace_name = '%s'" % (t, ks)))
                                            for ks in ('system', 'system_schema', 'system_auth', 'system_distributed', 'system_traces')]
        everything['system_virtual_schema.' + t] = [hexed(c.query('SELECT * FROM system_virtual_schema.%s' % t))]
    everything['describe'] = {ks: describe(c, ks) for ks in (
        'system', 'system_schema', 'system_auth', 'system_distributed', 'system_traces', 'system_virtual_schema', 'system_views')}
    with open(os.path.join(out, 'system.json'), 'w') as f:
        json.dump(everything, f, separators=(',', ':'))
    with open(os.path.join(out, 'internals.json'), 'w') as f:
        json.dump({ks: describe(c, ks, True) for ks in told}, f, indent=0)


main(*sys.argv[1:])
