#!/usr/bin/env python3
"""Streams that mean harm: a node refuses them, says so, and keeps nothing of them.

    hostile.py HOST KEYSPACE DATA        a Helenus, a keyspace that streams.py filled, and the node's data directory

Each case opens a session as a node of the ring would, and then lies. Afterwards the node has logged a warning or an error that
names the stream, still answers, has the files that it had before, and nothing lies outside of its tables' directories.
"""

import os
import socket
import struct
import sys
import time
import uuid

for directory in ('oracle', 'hostile'):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', directory))
from internode import ACCEPT_BYTES, PORT, STREAMING, UNPROTECTED, address, initiate, utf, uvint  # noqa: E402
from wire import Connection, Options  # noqa: E402

ME = '127.0.0.99'
PATIENCE_SECONDS = 30
EVIL = 'evil-was-here'


def vint_bytes(raw):
    return uvint(len(raw)) + raw


def connect(host):
    link = socket.create_connection((host, PORT), timeout=PATIENCE_SECONDS)
    link.sendall(initiate(ME, kind=STREAMING, framing=UNPROTECTED))
    assert len(link.recv(ACCEPT_BYTES, socket.MSG_WAITALL)) == ACCEPT_BYTES, 'the node does not take connections for streams'
    return link


def init(plan):
    return b'\x0a' + address(ME) + struct.pack('>i', 0) + plan + utf('Bulk Load') + b'\0' + struct.pack('>i', 0)


def syn(*summaries):
    return b'\x01' + struct.pack('>ii', 0, len(summaries)) + b''.join(
        table + struct.pack('>iq', files, size) for table, files, size in summaries)


def header(table, plan, sequence=0, sections=(), chunks=None, manifest=None, keys=1, level=0):
    """A file of a table with an int as key and nothing else."""
    out = b'\x02' + table + address(ME) + plan + b'\0' + struct.pack('>iiq', 0, sequence, 0) + b'\0'
    out += utf('nb') + utf('big') + struct.pack('>q', keys) + struct.pack('>i', len(sections))
    out += b''.join(struct.pack('>qq', *section) for section in sections)
    if chunks is None:
        out += struct.pack('>i', -1)
    else:
        lengths, chunk = chunks
        out += struct.pack('>i', len(lengths)) + b''.join(struct.pack('>qi', 0, length) for length in lengths)
        out += utf('LZ4Compressor') + struct.pack('>i', 0) + struct.pack('>ii', chunk, 0x7fffffff)
    kind = b'org.apache.cassandra.db.marshal.Int32Type'
    out += struct.pack('>i', level) + uvint(0) + uvint(0) + uvint(0) + vint_bytes(kind) + uvint(0) + uvint(0) + uvint(0) + table
    if manifest is None:
        return out + b'\0'
    listed = b''.join(utf(name) + uvint(length) for name, length in manifest)
    return out + b'\1' + uvint(len(manifest)) + listed + vint_bytes(b'\0\0\0\1')


def block(data):
    """Data of fewer than 15 bytes as LZ4: literals alone."""
    packed = bytes([len(data) << 4]) + data
    return struct.pack('>ii', len(packed), len(data)) + packed


def cases(table):
    """Name, what is announced (of the table, or of several), and what each further connection sends (of a plan)."""
    one = (1, 100)
    yield 'a file of no session', None, lambda plan: [header(table, plan)]
    yield 'more in all than numbers hold', [(bytes([n]) * 16, 0x7fffffff, (1 << 63) - 1) for n in range(7, 10)], lambda plan: []
    yield 'a table that there is not', (1, 1), lambda plan: [header(b'\7' * 16, plan)]
    yield 'a file that was not announced', (0, 0), lambda plan: [header(table, plan, sections=[(0, 10)])]
    yield 'an SSTable without components', one, lambda plan: [header(table, plan, manifest=[])]
    yield 'paths as names', (2, 20), lambda plan: [
        header(table, plan, manifest=[('../../' + EVIL, 10), ('/tmp/' + EVIL, 10)]) + b'x' * 20]
    yield 'a name with the directory in it', (1, 5), lambda plan: [
        header(table, plan, manifest=[('Data.db/../' + EVIL, 5)]) + b'x' * 5]
    yield 'a component that ends early', (1, 9000), lambda plan: [header(table, plan, manifest=[('Data.db', 9000)]) + b'x' * 10]
    yield 'an SSTable of rubbish', (3, 30), lambda plan: [
        header(table, plan, manifest=[('Data.db', 10), ('Index.db', 10), ('Statistics.db', 10)]) + b'x' * 30]
    yield 'the same component twice', (2, 20), lambda plan: [
        header(table, plan, manifest=[('Data.db', 10), ('Data.db', 10)]) + b'x' * 20]
    yield 'more files than announced', (1, 100), lambda plan: [
        header(table, plan, sections=[(0, 100)]), header(table, plan, sequence=1, sections=[(0, 100)])]
    yield 'sections that overlap', one, lambda plan: [header(table, plan, sections=[(0, 10), (5, 20)])]
    yield 'a section before the file', one, lambda plan: [header(table, plan, sections=[(-5, 20)])]
    yield 'keys without number', one, lambda plan: [header(table, plan, keys=1 << 62, sections=[(0, 1 << 62)]) + block(b'x')]
    yield 'a block that says it is huge', one, lambda plan: [
        header(table, plan, sections=[(0, 100)]) + struct.pack('>ii', 0x7fffffff, 0x7fffffff)]
    yield 'a block that is smaller than it says', one, lambda plan: [
        header(table, plan, sections=[(0, 100)]) + struct.pack('>ii', 2, 1000) + b'\x10x']
    yield 'chunks of a length that is none', one, lambda plan: [header(table, plan, sections=[(0, 9)], chunks=([5], 12345))]
    yield 'fewer chunks than sections', one, lambda plan: [header(table, plan, sections=[(0, 1 << 20)], chunks=([], 16384))]
    yield 'a chunk with a wrong checksum', one, lambda plan: [
        header(table, plan, sections=[(0, 9)], chunks=([9], 16384)) + b'x' * 9 + b'\0\0\0\0']
    yield 'partitions of rubbish', one, lambda plan: [header(table, plan, sections=[(0, 12)]) + block(b'\xff' * 12)]
    yield 'a million sections, and no more', one, lambda plan: [header(table, plan)[:70] + struct.pack('>i', 1 << 30)]
    yield 'rubbish', one, lambda plan: [b'\x63' + os.urandom(400)]
    yield 'nothing', one, lambda plan: [b'']


def run(host, table, plan, announced, send):
    control = connect(host)
    if announced is not None:
        summaries = announced if isinstance(announced, list) else [(table, *announced)]
        control.sendall(init(plan) + syn(*summaries))
        answer = control.recv(1)
        if answer not in (b'\x08', b'\x06', b'\x05', b''):
            return f'was answered {answer!r}'
    others = []
    for data in send(plan):
        other = connect(host)
        other.sendall(data)
        others.append(other)
    # the session fails, or the connection closes; whoever waits for more is left alone
    for other in others:
        other.shutdown(socket.SHUT_WR)
        try:
            while other.recv(4096):
                pass
        except OSError:
            pass
        other.close()
    control.close()
    return None


def files(data):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(data) for name in names if 'commitlog' not in where)


def is_told(cql, plan):
    logged = cql.query('SELECT level, message FROM system_views.system_logs', Options(consistency='LOCAL_ONE'))['rows']
    return any(level in (b'WARN', b'ERROR') and str(plan).encode() in message for level, message in logged)


def main():
    host, keyspace, data = sys.argv[1:]
    cql = Connection(host, timeout=PATIENCE_SECONDS)
    found = cql.query(f"SELECT id FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND table_name = 'empty'")
    table = found['rows'][0][0]
    kept = lambda: [name for name in files(data) if f'/{keyspace}/' in name]
    before = kept()
    wrong = 0
    for name, announced, send in cases(table):
        plan = uuid.uuid1()
        problem = run(host, table, plan.bytes, announced, send)
        until = time.time() + PATIENCE_SECONDS
        while not is_told(cql, plan) and time.time() < until:
            time.sleep(0.1)
        if not is_told(cql, plan):
            problem = 'no line of the log tells it'
        while kept() != before and time.time() < until:
            time.sleep(0.1)
        if kept() != before:
            problem = f'left {sorted(set(kept()) - set(before))}'
        if any(EVIL in name for name in files(os.path.dirname(data))) or os.path.exists('/tmp/' + EVIL):
            problem = 'wrote outside of the directory of the table'
        answer = cql.query(f'SELECT * FROM {keyspace}.empty', Options(consistency='LOCAL_ONE'))
        if answer['kind'] == 'error' or answer.get('rows'):
            problem = f'changed what is read: {answer}'
        wrong += problem is not None
        print(f'WRONG: {name}: {problem}' if problem else f'refused: {name}')
    print(f'{wrong} wrong')
    sys.exit(1 if wrong else 0)


if __name__ == '__main__':
    main()
