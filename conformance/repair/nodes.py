"""Nodes of a ring under repair: CQL, nodetool, logs, files."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))
from wire import Connection, Options  # noqa: E402

PATIENCE_SECONDS = 90
UNAVAILABLE = 0x1000
PROBE = 'repair_probe'

# warnings of a Cassandra that have nothing to do with repairs: of its start, and of a ring that comes and goes
USUAL = [re.compile(text) for text in (
    r' \[main\] ', r'Seed provider couldn', r'NoSpamLogger', r'\[Messaging-EventLoop-', r'JNA', r'jemalloc',
    r'gossip by operator request', r'Disabling gossip while', r'Not marking nodes down due to local pause', r'Trigger directory',
)]


class Failed(Exception):
    """Something did not go as it must."""


def until(what, holds, seconds=PATIENCE_SECONDS):
    by = time.time() + seconds
    while not holds():
        if time.time() > by:
            raise Failed(f'not {what} within {seconds} s')
        time.sleep(0.1)


class Node:
    def __init__(self, number, words):
        self.number = number
        kind, self.host, self.dir, *self.tool = words
        self.is_ours = kind == 'ours'
        self.name = f'{"H" if self.is_ours else "J"}{number}'
        self.cql = Connection(self.host, timeout=60)
        self.heard = set()

    def ask(self, text, consistency='ONE'):
        return self.cql.query(text, Options(consistency=consistency))

    def must(self, text, consistency='ONE'):
        answer = self.ask(text, consistency)
        if answer['kind'] == 'error':
            raise Failed(f'{text[:200]} at {self.name}, {consistency}: {answer["message"]}')
        return answer

    def rows(self, text):
        return [json.loads(row[0]) for row in self.must(text)['rows']]

    def nodetool(self, *words, may_fail=False):
        done = subprocess.run(self.tool + list(words), capture_output=True, text=True, env=dict(os.environ, LC_ALL='C.UTF-8'))
        if done.returncode and not may_fail:
            raise Failed(f'nodetool {" ".join(words)} of {self.name} ended with {done.returncode}: {done.stdout}{done.stderr}')
        return done.stdout + done.stderr

    def folder(self, keyspace):
        return os.path.join(self.dir, 'data', 'data', keyspace)

    def files(self, keyspace):
        return sorted(glob.glob(os.path.join(self.folder(keyspace), '*', '*-Data.db')))

    def log(self):
        """All that it said so far: `LEVEL ...` lines."""
        if not self.is_ours:
            with open(os.path.join(self.dir, 'log', 'system.log'), encoding='utf-8', errors='replace') as file:
                return file.read().splitlines()
        with open(os.path.join(self.dir, 'stderr.log'), encoding='utf-8', errors='replace') as file:
            panics = [line for line in file.read().splitlines() if 'panicked at' in line]
        rows = self.rows('SELECT JSON * FROM system_views.system_logs')
        rows.sort(key=lambda row: (row['timestamp'], row['order_in_millisecond']))
        return panics + [f'{row["level"]} {row["timestamp"]}+{row["order_in_millisecond"]} {row["message"]}'.replace('\n', ' ') for row in rows]

    def news(self):
        """What it said since this was asked last."""
        fresh = [line for line in self.log() if line not in self.heard]
        self.heard.update(fresh)
        return fresh

    def tokens(self):
        """Those of the ring."""
        found = [row for table in ('local', 'peers') for row in self.rows(f'SELECT JSON tokens FROM system.{table}')]
        return sorted(int(token) for row in found for token in row['tokens'] or ())

    def sees_all(self):
        return self.ask(f'INSERT INTO {PROBE}.t (k) VALUES (1)', 'ALL')['kind'] != 'error'

    def sees_one_down(self):
        answer = self.ask(f'INSERT INTO {PROBE}.t (k) VALUES (1)', 'ALL')
        return answer.get('code') == UNAVAILABLE and answer['detail'][1:] == [3, 2]


class Ring:
    def __init__(self, scratch, nodes):
        self.scratch, self.nodes = scratch, nodes

    def nodes_tokens(self):
        own = [node.rows('SELECT JSON tokens FROM system.local') for node in self.nodes]
        return sum(len(rows[0]['tokens']) for rows in own)

    def each(self, what):
        return [what(node) for node in self.nodes]

    def others(self, victim):
        return [node for node in self.nodes if node is not victim]

    def until_known(self, table):
        for node in self.nodes:
            until(f'{table} known to {node.name}', lambda: node.ask(f'INSERT INTO {table} (k) VALUES (1)', 'ANY')['kind'] != 'error')

    def until_agreed(self):
        def versions():
            answer = [row['schema_version'] for table in ('local', 'peers') for node in self.nodes
                      for row in node.rows(f'SELECT JSON schema_version FROM system.{table}')]
            return len(set(answer)) == 1
        until('agreed on the schema', versions)

    def probe(self):
        first = self.nodes[0]
        for node in self.nodes:
            until(f'{node.name} knows all', lambda: len(node.tokens()) == self.nodes_tokens())
        first.must(f"CREATE KEYSPACE IF NOT EXISTS {PROBE} WITH replication = {{'class': 'NetworkTopologyStrategy', 'datacenter1': 3}}")
        first.must(f"CREATE TABLE IF NOT EXISTS {PROBE}.t (k int PRIMARY KEY) WITH read_repair = 'NONE'")
        self.until_agreed()
        self.until_whole()

    def until_whole(self):
        for node in self.nodes:
            until(f'{node.name} sees all', node.sees_all)

    def without(self, victim, work):
        """Does something while a replica is away: others see it down, and send it nothing."""
        victim.nodetool('disablegossip')
        try:
            for other in self.others(victim):
                until(f'{other.name} sees {victim.name} down', other.sees_one_down)
            work(self.others(victim))
        finally:
            victim.nodetool('enablegossip')
        self.until_whole()

    def flush(self, keyspace):
        self.each(lambda node: node.nodetool('flush', keyspace))


class Exporter:
    """Export.java as a process that waits for orders."""

    def __init__(self, ring):
        self.ring, self.orders = ring, 0
        # the definitions are Cassandra's own: a copy, so that nothing is opened beneath a node
        theirs = next(node for node in ring.nodes if not node.is_ours)
        theirs.nodetool('flush', 'system_schema')
        target = os.path.join(ring.scratch, 'data', 'system_schema')
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(theirs.folder('system_schema'), target)
        script = os.path.join(HERE, '..', 'peer', 'cassandra')
        command = [script, 'run', HERE, 'org.apache.cassandra.repair.Export', ring.scratch]
        # 5.0 reads what 4.1 writes
        environment = {name: value for name, value in os.environ.items() if name != 'CASSANDRA_VERSION'}
        self.errors = open(os.path.join(ring.scratch, 'export.log'), 'w', encoding='utf-8')
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=environment)

    def answer(self, wanted):
        for line in self.process.stdout:
            if line.startswith(wanted):
                return line.split()
        with open(self.errors.name, encoding='utf-8') as file:
            raise Failed(f'the export ended: {file.read()[-2000:]}')

    def take(self, keyspace, now):
        """What each node has on its disk of a keyspace: {table: {key: (token, lines)}} of each."""
        self.ring.flush(keyspace)
        return self.ring.each(lambda node: self.one(node, keyspace, now))

    def one(self, node, keyspace, now):
        if not self.orders:
            self.answer('ready')
        self.orders += 1
        linked = os.path.join(self.ring.scratch, 'linked', str(self.orders))
        for file in glob.glob(os.path.join(node.folder(keyspace), '*', '*-*-big-*')):
            target = os.path.join(linked, os.path.basename(os.path.dirname(file)))
            os.makedirs(target, exist_ok=True)
            os.link(file, os.path.join(target, os.path.basename(file)))
        out = os.path.join(self.ring.scratch, 'exported', f'{self.orders}-{keyspace}-{node.name}')
        try:
            self.process.stdin.write(f'{keyspace} {now} {linked} {out}\n')
            self.process.stdin.flush()
        except BrokenPipeError:
            pass    # the answer says why
        self.answer('done')
        shutil.rmtree(linked)
        return {name: partitions(os.path.join(out, name)) for name in sorted(os.listdir(out))}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def partitions(path):
    found, lines = {}, None
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith('partition '):
                _, key, token = line.split()
                lines = []
                found[key] = (int(token), lines)
            else:
                lines.append(line.rstrip('\n'))
    return found


def problems_of(node, lines):
    """Errors, and warnings that are not usual."""
    def is_wrong(line):
        if line.startswith('ERROR') or 'panicked at' in line:
            return True
        return line.startswith('WARN') and not any(usual.search(line) for usual in USUAL)
    # of a Cassandra's error the line behind it says what it is
    return [f'log of {node.name}: {line[:400]} {after[:200]}'.strip() for line, after in zip(lines, lines[1:] + ['']) if is_wrong(line)]
