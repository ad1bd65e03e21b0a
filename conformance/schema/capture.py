#!/usr/bin/env python3
"""Runs a family of statements on a live Cassandra and records, after each, the schema version and the rows it is of.

    capture.py HOST OWN_ADDRESS SEED STATEMENTS OUT [beyond]     with names beyond ASCII

OUT (gzip) is a line of JSON for the start and for each statement that was done: `cql`, the time in seconds, the
`version` that the node says, and the mutations of a SCHEMA_PULL answer that are not as they were in the line before, by
keyspace, in hexadecimal (null: the answer has none any more). A statement that is refused is left out.
"""

import gzip
import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'schema_goldens'))

from decode import BY_ID, TABLES, Cursor  # noqa: E402
from family import Family  # noqa: E402
from node import Cql, Internode  # noqa: E402

FIXED = dict(boolean=1, double=8, int=4, uuid=16, timestamp=8)


def skip_update(r):
    """Passes over a partition update; gives its key."""
    table = BY_ID[r.take(16)]
    arity, types = TABLES[table]
    key, flags = r.vbytes().decode(), r.u8()
    if flags & 1:
        return key
    r.uvint(), r.uvint(), r.uvint()
    assert not flags & 8
    columns = [r.vbytes().decode() for _ in range(r.uvint())]
    if flags & 4:
        r.uvint(), r.uvint()
    if flags & 0x10:
        r.uvint()
    while True:
        f = r.u8()
        if f & 1:
            return key
        if f & 2:
            kind = r.u8()
            n = r.u16()
            head = r.uvint() if n else 0
            for i in range(n):
                if not head >> 2 * i & 3:
                    r.vbytes()
            for _ in range(4 if kind in (2, 5) else 2):
                r.uvint()
            continue
        assert not f & 0x80
        head = r.uvint() if arity else 0
        for i in range(arity):
            if not head >> 2 * i & 3:
                r.vbytes()
        if f & 4:
            r.uvint()
        if f & 8:
            r.uvint(), r.uvint()
        if f & 16:
            r.uvint(), r.uvint()
        present = columns
        if not f & 0x20:
            bits = r.uvint()
            assert len(columns) < 64
            present = [c for i, c in enumerate(columns) if not bits >> i & 1]
        for c in present:
            cf = r.u8()
            if not cf & 8:
                r.uvint()
            if cf & 3 and not cf & 16:
                r.uvint()
            if cf & 2 and not cf & 16:
                r.uvint()
            if not cf & 4:
                r.take(FIXED[types[c]]) if types[c] in FIXED else r.vbytes()


def by_keyspace(answer):
    """The mutations of an answer, by keyspace."""
    r, out = Cursor(answer), {}
    for _ in range(r.i32()):
        begin, key = r.at, None
        for _ in range(r.uvint()):
            key = skip_update(r)
        out[key] = answer[begin:r.at].hex()
    assert r.at == len(answer)
    return out


def main(host, own, seed, count, out, names=''):
    c, node = Cql(host), Internode(own, host)
    before, refused, done = {}, 0, 0
    with open(out, 'wb') as raw, gzip.GzipFile(fileobj=raw, mode='wb', compresslevel=9, mtime=0, filename='') as f:
        def note(cql):
            nonlocal before
            now, version = by_keyspace(node.pull()), node.version()
            changed = {k: now.get(k) for k in sorted(set(now) | set(before)) if now.get(k) != before.get(k)}
            line = {'cql': cql, 'at': int(time.time()), 'version': version, 'changed': changed}
            f.write(json.dumps(line, separators=(',', ':')).encode() + b'\n')
            before = now
        note('')
        statements, is_refused = Family(int(seed), names == 'beyond').statements(int(count)), None
        while True:
            try:
                cql = statements.send(is_refused)
            except StopIteration:
                break
            answer = c.query(cql)
            is_refused = 'err' in answer
            if is_refused:
                refused += 1
                print(cql[:160], '->', answer['err'])
                continue
            if not cql.startswith(('CREATE', 'ALTER', 'DROP')):
                if cql.endswith('TTL 1'):
                    time.sleep(2)
                continue
            done += 1
            note(cql)
    print('%d statements, %d refused, %d bytes' % (done, refused, os.path.getsize(out)))


main(*sys.argv[1:])
