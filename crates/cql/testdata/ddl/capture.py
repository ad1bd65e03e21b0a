#!/usr/bin/env python3
"""Runs a file of statements on a live Cassandra 5.0.9 and writes what it answers.

    capture.py HOST NAME...     NAME.cql -> NAME.jsonl, here

A statement a line. Lines that start with `--`: comments and `-- begin` (what stands before it is only executed),
`-- session` (a new connection), `-- prepare` (PREPARE the next one only), `-- page N` (page size of the next one; its
pages are all fetched). The first line of the output is the schema at `-- begin`: rows of system_schema and
system_virtual_schema, values in hexadecimal.
"""
import json, os, sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', '..', '..', '..', 'conformance', 'oracle'))
from wire import Connection, Options  # noqa: E402

STORED = ['keyspaces', 'tables', 'columns', 'dropped_columns', 'triggers', 'types', 'functions', 'aggregates', 'indexes',
          'views', 'column_masks']


def schema(host):
    c = Connection(host)
    out = {}
    for table in ['system_schema.' + t for t in STORED] + ['system_virtual_schema.' + t for t in STORED[:3]]:
        r = c.query('SELECT * FROM ' + table, Options(page_size=100000))
        names = [column[2] for column in r['metadata']['columns']]
        out[table] = [{n: v.hex() for n, v in zip(names, row) if v is not None} for row in r['rows']]
    c.close()
    return out


def answer(r):
    out = {}
    if r.get('warnings'):
        out['warn'] = r['warnings']
    kind = r['kind']
    if kind == 'error':
        out['err'] = [r['code'], r['message']]
        if 'detail' in r:
            out['detail'] = r['detail']
    elif kind == 'schema_change':
        out['change'] = r['change']
    elif kind == 'set_keyspace':
        out['use'] = r['keyspace']
    elif kind == 'rows':
        columns = r['metadata']['columns']
        out['columns'] = columns
        text = [c[3] in ('text', 'varchar') for c in columns]
        out['rows'] = [[v if v is None else v.decode() if t else v.hex() for v, t in zip(row, text)] for row in r['rows']]
        if r['metadata'].get('paging_state') is not None:
            out['paging_state'] = r['metadata']['paging_state'].hex()
    elif kind == 'prepared':
        out['prepared'] = {'bind': r['bind'].get('columns', []), 'result': r['result'].get('columns', [])}
    else:
        out[kind] = True
    return out


def run(host, name):
    c, keyspace, recording, page, prepare, count = Connection(host), None, False, None, False, 0
    with open(os.path.join(HERE, name + '.jsonl'), 'w') as f:
        def write(line):
            f.write(json.dumps(line, separators=(',', ':')) + '\n')
        for text in open(os.path.join(HERE, name + '.cql')).read().split('\n'):
            text = text.strip()
            if not text:
                continue
            if text.startswith('--'):
                words = text[2:].split()
                if words == ['begin']:
                    recording = True
                    write(schema(host))
                elif words == ['session']:
                    c.close()
                    c, keyspace = Connection(host), None
                elif words == ['prepare']:
                    prepare = True
                elif words[:1] == ['page'] and len(words) == 2:
                    page = int(words[1])
                continue
            line, state = {'cql': text, 'keyspace': keyspace}, None
            if prepare:
                line['prepare'] = True
                r = answer(c.prepare(text))
            elif page:
                line['page'], r = page, {'pages': []}
                while True:
                    got = answer(c.query(text, Options(page_size=page, paging_state=state)))
                    r['pages'].append(got)
                    state = bytes.fromhex(got.get('paging_state', ''))
                    if not state:
                        break
            else:
                r = answer(c.query(text))
            prepare, page = False, None
            line.update(r)
            if 'use' in r:
                keyspace = r['use']
            if recording:
                count += 1
                write(line)
                print(text[:110], '->', str({k: v for k, v in r.items() if k not in ('columns',)})[:200])
            elif 'err' in r:
                print('SETUP', text, r['err'])
    print(name, count)


for n in sys.argv[2:]:
    run(sys.argv[1], n)
