#!/usr/bin/env python3
"""Records what a Cassandra sends over its connections for streams.

    capture.py HOST FOLDER

A session is opened as a node would, for tables of each form (compressed, not compressed, counters, statics, a partition
that is asked for alone), and every byte that Cassandra sends is kept: `NAME-control.bin` of the first connection,
`NAME-file.bin` of the one with the files. The tests of `crates/streaming` read them. HOST is a Cassandra that is alone,
started by `conformance/peer/cassandra`; this program listens on 127.0.0.2.
"""

import os
import socket
import struct
import sys
import threading
import time
import uuid

for directory in ('oracle', 'hostile'):
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', directory))
from internode import ACCEPT_BYTES, PORT, STREAMING, UNPROTECTED, address, initiate, receive, utf  # noqa: E402
from wire import Connection, crc32  # noqa: E402

ME = '127.0.0.2'
VERSION = 12
WHOLE = (-(1 << 63), -(1 << 63))

TABLES = [
    ("lz4", "k int PRIMARY KEY, v text", "compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}"),
    ("plain", "k int PRIMARY KEY, v text", "compression = {'enabled': false}"),
    ("wide", "k int, c int, s text static, m map<text, int>, v text, PRIMARY KEY (k, c)",
     "compression = {'class': 'ZstdCompressor'}"),
    ("counted", "k int PRIMARY KEY, n counter", "compression = {'class': 'SnappyCompressor'}"),
]


class Kept:
    """Reads, and keeps what it read."""

    def __init__(self, connection):
        self.connection, self.bytes = connection, b''

    def until_quiet(self, seconds):
        self.connection.settimeout(seconds)
        try:
            while True:
                more = self.connection.recv(1 << 16)
                if not more:
                    return
                self.bytes += more
        except socket.timeout:
            pass


class Files:
    """Takes connections that the other node opens."""

    def __init__(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((ME, PORT))
        self.listener.listen(8)
        self.found = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.take, args=(connection,), daemon=True).start()

    def take(self, connection):
        head = receive(connection, 8)
        size = receive(connection, 1)
        receive(connection, size[0] + 4)
        body = struct.pack('>II', VERSION, VERSION)
        connection.sendall(body + struct.pack('>I', crc32(body)))
        if struct.unpack('>II', head)[1] & STREAMING:
            kept = Kept(connection)
            self.found.append(kept)
            kept.until_quiet(3)


def session(host, keyspace, table, ranges, files, name, folder):
    files.found.clear()
    control = socket.socket()
    control.bind((ME, 0))
    control.connect((host, PORT))
    control.sendall(initiate(ME, kind=STREAMING, framing=UNPROTECTED))
    receive(control, ACCEPT_BYTES)
    plan = uuid.UUID('c0ffee00-ca5c-11f0-8000-00000000000a').bytes
    control.sendall(b'\x0a' + address(ME) + struct.pack('>i', 0) + plan + utf('Rebuild') + b'\0' + struct.pack('>i', 0))
    token = lambda value: struct.pack('>iq', 8, value)
    request = utf(keyspace) + struct.pack('>i', 1) + address(ME) + struct.pack('>i', len(ranges))
    request += b''.join(token(left) + token(right) for left, right in ranges) + struct.pack('>i', 0) + utf(table)
    control.sendall(b'\x01' + struct.pack('>i', 1) + request + struct.pack('>i', 0))
    kept = Kept(control)
    kept.until_quiet(2)
    control.sendall(b'\x09')
    kept.until_quiet(4)
    control.close()
    time.sleep(0.5)
    for what, data in [('control', kept.bytes), ('file', b''.join(found.bytes for found in files.found))]:
        with open(os.path.join(folder, f'{name}-{what}.bin'), 'wb') as out:
            out.write(data)
        print(name, what, len(data), 'bytes')


def main():
    host, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    files = Files()
    cql = Connection(host)
    cql.query("CREATE KEYSPACE IF NOT EXISTS streams WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for name, columns, options in TABLES:
        cql.query(f"CREATE TABLE IF NOT EXISTS streams.{name} ({columns}) WITH {options}")
    for k in range(40):
        cql.query(f"INSERT INTO streams.lz4 (k, v) VALUES ({k}, '{'v' * 200}') USING TIMESTAMP 1000000")
        cql.query(f"INSERT INTO streams.plain (k, v) VALUES ({k}, 'value {k}') USING TIMESTAMP 1000000")
    for k in range(3):
        cql.query(f"UPDATE streams.wide USING TIMESTAMP 5 SET s = 'static {k}' WHERE k = {k}")
        for c in range(20):
            cql.query(f"INSERT INTO streams.wide (k, c, m, v) VALUES ({k}, {c}, {{'a': {c}}}, 'v') USING TIMESTAMP 7")
        cql.query(f"DELETE FROM streams.wide USING TIMESTAMP 9 WHERE k = {k} AND c > 3 AND c < 6")
    for k in range(5):
        cql.query(f"UPDATE streams.counted SET n = n + {k} WHERE k = {k}")
    for name, _, _ in TABLES:
        session(host, 'streams', name, [WHOLE], files, name, folder)
    half = [(-(1 << 62), 0), (1 << 61, 1 << 62)]
    for name in ['lz4', 'plain', 'wide', 'counted']:
        session(host, 'streams', name, half, files, f'{name}-part', folder)


if __name__ == '__main__':
    main()
