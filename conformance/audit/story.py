#!/usr/bin/env python3
"""Plays `story.txt` against a server, and reads what a Cassandra wrote of it.

    story.py HOST                 play it
    story.py HOST --record LOG    play it, and write what the audit log LOG has of it to `golden.txt`

`story.md` says how the Cassandra is started.
"""

import pathlib
import re
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'oracle'))

import wire  # noqa: E402

KINDS = {'logged': 0, 'unlogged': 1, 'counter': 2}


def text(raw):
    """A step's text, without its escapes."""
    return re.sub(r'\\n|\\u([0-9a-f]{4})|\\U([0-9a-f]{8})',
                  lambda m: chr(int(m[1] or m[2], 16)) if m[1] or m[2] else '\n', raw)


def values(words):
    return [None if word == '-' else bytes.fromhex(word) for word in words]


class Story:
    def __init__(self, host):
        self.host, self.connections, self.prepared = host, {}, {}

    def play(self):
        for line in (HERE / 'story.txt').read_text().splitlines():
            if line and not line.startswith('#'):
                verb, name, rest = line.split(' ', 2)
                getattr(self, verb)(name, text(rest))

    def login(self, name, rest):
        role, password = rest.split(' ', 1)
        connection = wire.Connection(self.host, version=4)
        answer = connection.log_in(b'\0' + role.encode() + b'\0' + password.encode())
        if answer['kind'] == 'auth_success':
            self.connections[name] = connection

    def query(self, name, cql):
        self.connections[name].query(cql)

    def prepare(self, name, rest):
        statement, cql = rest.split(' ', 1)
        answer = self.connections[name].prepare(cql)
        if answer['kind'] == 'prepared':
            self.prepared[statement] = answer

    def known(self, statement):
        return self.prepared.get(statement, {'id': b'\0' * 16})

    def execute(self, name, rest):
        statement, *words = rest.split(' ')
        self.connections[name].execute(self.known(statement), wire.Options(values=values(words)))

    def batch(self, name, rest):
        kind, entries = rest.split(' ', 1)
        made = []
        for entry in entries.split('; '):
            first, *words = entry.split(' ')
            is_prepared = first in self.prepared
            made.append((self.known(first), values(words)) if is_prepared else (entry, []))
        self.connections[name].batch(KINDS[kind], made)


def normal(entry, ids):
    """An entry without what differs from run to run: `HOST`, `SOURCE`, `PORT`, `TIME`, `BATCH1`..."""
    entry = re.sub(r'\|host:[^|]*\|source:[^|]*\|port:\d+\|timestamp:\d+', '|host:HOST|source:SOURCE|port:PORT|timestamp:TIME',
                   entry)
    uuid = r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'
    return re.sub(uuid, lambda m: ids.setdefault(m[0], f'BATCH{len(ids) + 1}'), entry)


def entries(log):
    """The entries of a log: all lines after the mark of one are its own."""
    found, current = [], None
    for line in log.splitlines():
        if re.match(r'[A-Z]+ +\[', line):
            mark = re.search(r' FileAuditLogger\.java:\d+ - ', line)
            current = line[mark.end():] if mark else None
            if current is not None:
                found.append(current)
        elif current is not None:
            found[-1] += '\n' + line
    return found


def main():
    host = sys.argv[1]
    log = pathlib.Path(sys.argv[3]) if sys.argv[2:3] == ['--record'] else None
    before = len(entries(log.read_text())) if log else 0
    Story(host).play()
    if log:
        ids, size = {}, -1
        while size != log.stat().st_size:
            size = log.stat().st_size
            time.sleep(1)
        lines = [normal(entry, ids).replace('\n', '\\n') for entry in entries(log.read_text())[before:]]
        (HERE / 'golden.txt').write_text('\n'.join(lines) + '\n')


main()
