#!/usr/bin/env python3
"""Clients of a ring while its nodes come, go and move: they read, write, delete and compare-and-set at QUORUM.

    load.py SEED MAY_LOSE REPLICATION... -- HOST...

REPLICATION is that of a keyspace, `CENTER=REPLICAS,...`; the keyspaces are elastic_1, elastic_2, ... MAY_LOSE is the
number of those, the first ones, whose rows may go with a node that dies. Each partition has one writer, so that the model
knows what a read may show.

Commands on standard input, each answered by lines and `done`:

    pause, resume             no requests for a while
    end                       no more requests; what they came to
    compare N HOST...         all rows of a keyspace at ALL through each of the nodes
    differing N HOST [KILLED] partitions whose replicas differ, by the traces of reads at ALL; such a read mends them.
                              KILLED: when a node was killed, in seconds since 1970. A coordinator that dies takes its
                              hints along, and replicas may differ in what was written just then: `near: ` says so
    truncate N                the table `bulk` of a keyspace
    replicate N REPLICATION   another replication of a keyspace
    logs HOST                 what a Helenus said, as `LEVEL message`

Lines that begin with `WRONG: ` name what must not be. Conditional writes are the only requests that a driver may not send
again by itself, so their failures are counted apart.
"""

import collections
import random
import sys
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.policies import RoundRobinPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

from model import Partition, Register

WORKERS = 6
REQUESTS_PER_SECOND = 120
PARTITIONS = 120
ROWS = 8
CONDITIONALS = 60
BULK_PARTITIONS = 200
BULK_ROWS = 5
TIMEOUT_SECONDS = 30
SHOWN_MAX = 5
FILL_TRIES = 3
WAIT_SECONDS = 60
NEAR_SECONDS = 3

TABLES = {
    'rows': '(k int, c int, v int, PRIMARY KEY (k, c))',
    'conditional': '(k int PRIMARY KEY, v int)',
    'bulk': '(k int, c int, v text, PRIMARY KEY (k, c))',
}
STATEMENTS = {
    'write': 'INSERT INTO {}.rows (k, c, v) VALUES (?, ?, ?)',
    'delete': 'DELETE FROM {}.rows WHERE k = ? AND c = ?',
    'delete_partition': 'DELETE FROM {}.rows WHERE k = ?',
    'read': 'SELECT c, v FROM {}.rows WHERE k = ?',
    'set': 'UPDATE {}.conditional SET v = ? WHERE k = ? IF v = ?',
    'get': 'SELECT v FROM {}.conditional WHERE k = ?',
    'bulk': 'SELECT v FROM {}.bulk WHERE k = ?',
    'fill': 'INSERT INTO {}.bulk (k, c, v) VALUES (?, ?, ?)',
    'found': 'INSERT INTO {}.conditional (k, v) VALUES (?, 0)',
}
# of a hundred requests
SHARES = {'write': 45, 'read': 35, 'delete': 7, 'delete_partition': 3, 'set': 10}


def connect(hosts, policy):
    profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=TIMEOUT_SECONDS,
                               consistency_level=ConsistencyLevel.QUORUM,
                               serial_consistency_level=ConsistencyLevel.SERIAL)
    cluster = Cluster(hosts, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, connect_timeout=20,
                      control_connection_timeout=20, idle_heartbeat_interval=5)
    return cluster, cluster.connect()


def replication(text):
    factors = ''.join(f", '{center}': {count}" for center, count in (part.split('=') for part in text.split(',')))
    return f"{{'class': 'NetworkTopologyStrategy'{factors}}}"


def bulk_value(k, c):
    return f'{k}/{c} ' * 40


class Keyspace:
    """A keyspace, its prepared statements and the model of its rows."""

    def __init__(self, session, number, factors, may_lose):
        self.name, self.session, self.may_lose = f'elastic_{number}', session, may_lose
        self.partitions = [Partition(ROWS) for _ in range(PARTITIONS)]
        self.conditionals = [Register(0) for _ in range(CONDITIONALS)]
        self.requests, self.failed, self.wrong = collections.Counter(), collections.Counter(), []
        self.failures = []
        session.execute(f'CREATE KEYSPACE {self.name} WITH replication = {replication(factors)}')
        for table, definition in TABLES.items():
            session.execute(f'CREATE TABLE {self.name}.{table} {definition}')
        self.prepared = self.prepare(session)

    def prepare(self, session, consistency=ConsistencyLevel.QUORUM):
        prepared = {name: session.prepare(text.format(self.name)) for name, text in STATEMENTS.items()}
        for name, statement in prepared.items():
            statement.is_idempotent = name != 'set'
            statement.consistency_level = consistency
        return prepared

    def fill(self):
        rows = [(k, c, bulk_value(k, c)) for k in range(BULK_PARTITIONS) for c in range(BULK_ROWS)]
        self.write_all('fill', rows)
        self.write_all('found', [(k,) for k in range(CONDITIONALS)])

    def write_all(self, name, rows):
        """Again, where a node that has only just started is slow."""
        for _ in range(FILL_TRIES):
            done = execute_concurrent_with_args(self.session, self.prepared[name], rows, 32, False)
            rows = [row for row, (is_done, _) in zip(rows, done) if not is_done]
            if not rows:
                return
        raise SystemExit(f'{self.name}: cannot write {len(rows)} rows')

    def run(self, name, arguments, level=None):
        """The rows, or None where there is no answer."""
        self.requests[name] += 1
        statement = self.prepared[name].bind(arguments)
        if level is not None:
            statement.consistency_level = level
        future = self.session.execute_async(statement)
        try:
            return future.result().all()
        except Exception as e:  # noqa: BLE001 - each failure counts alike
            self.failed[name] += 1
            host = getattr(future, '_current_host', None)
            self.failures.append(f'{time.strftime("%H:%M:%S")} {name} through {host}: {type(e).__name__}: {str(e)[:300]}')
            return None

    def say_wrong(self, text):
        self.wrong.append(f'{self.name}: {text}')

    def write(self, k, c, value):
        name, arguments = ('delete', (k, c)) if value is None else ('write', (k, c, value))
        row = self.partitions[k].rows[c]
        row.attempted(value)
        if self.run(name, arguments) is not None:
            row.acknowledged(value)

    def delete_partition(self, k):
        self.partitions[k].deleted(False)
        if self.run('delete_partition', (k,)) is not None:
            self.partitions[k].deleted(True)

    def read(self, k):
        rows = self.run('read', (k,))
        if rows is not None:
            found = {row.c: row.v for row in rows}
            for text in self.partitions[k].differences(found, self.may_lose):
                self.say_wrong(f'at QUORUM rows {k}/{text}')

    def compare_and_set(self, k):
        row = self.conditionals[k]
        if len(row.possible) > 1:
            found = self.run('get', (k,), ConsistencyLevel.SERIAL)
            if found is None:
                return
            value = found[0].v if found else None
            if not row.allows(value):
                self.say_wrong(f'at SERIAL conditional {k}: read {value}, may be {row.possible}')
            row.acknowledged(value)
        before = next(iter(row.possible))
        after = (before or 0) + 1
        row.attempted(after)
        answer = self.run('set', (after, k, before))
        if answer is None:
            return
        # one that the driver sent again finds what the first try did
        if not answer[0].applied and answer[0].v != after:
            self.say_wrong(f'conditional {k}: not applied, as it is {answer[0].v} rather than {before}')
            row.acknowledged(answer[0].v)
        else:
            row.acknowledged(after)

    def compare(self, host, session):
        prepared = self.prepare(session, ConsistencyLevel.ALL)
        keys = [(k,) for k in range(PARTITIONS)]
        for (k,), (done, rows) in zip(keys, execute_concurrent_with_args(session, prepared['read'], keys, 16, False)):
            if not done:
                yield f'{self.name}: at ALL through {host} rows {k}: {rows}'
                continue
            for text in self.partitions[k].differences({row.c: row.v for row in rows}, self.may_lose):
                yield f'{self.name}: at ALL through {host} rows {k}/{text}'
        keys = [(k,) for k in range(CONDITIONALS)]
        for (k,), (done, rows) in zip(keys, execute_concurrent_with_args(session, prepared['get'], keys, 16, False)):
            value = [row.v for row in rows] if done else rows
            if not (done and (self.may_lose or [v for v in value if self.conditionals[k].allows(v)])):
                yield f'{self.name}: at ALL through {host} conditional {k}: {value}, may be {self.conditionals[k].possible}'
        yield from self.compare_bulk(host, session)

    def compare_bulk(self, host, session):
        """By a read of the whole ring."""
        scan = SimpleStatement(f'SELECT k, c, v FROM {self.name}.bulk', consistency_level=ConsistencyLevel.ALL, fetch_size=300)
        try:
            found = {(row.k, row.c): row.v for row in session.execute(scan)}
        except Exception as e:  # noqa: BLE001
            yield f'{self.name}: at ALL through {host} bulk: {e}'
            return
        want = {(k, c): bulk_value(k, c) for k in range(BULK_PARTITIONS) for c in range(BULK_ROWS)}
        lost = want.keys() - found.keys()
        if (lost and not self.may_lose) or any(want.get(key) != value for key, value in found.items()):
            yield f'{self.name}: at ALL through {host} bulk: {len(found)} rows of {len(want)}, e.g. without {sorted(lost)[:5]}'


    def differing(self, host, session, killed):
        """A line for each partition, and when it was written last."""
        prepared = self.prepare(session, ConsistencyLevel.ALL)
        for name, keys in (('read', PARTITIONS), ('get', CONDITIONALS), ('bulk', BULK_PARTITIONS)):
            for k in range(keys):
                future = session.execute_async(prepared[name].bind((k,)), trace=True)
                future.result()
                trace = future.get_query_trace(max_wait=WAIT_SECONDS)
                if any('igest mismatch' in event.description for event in trace.events):
                    rows = {'read': self.partitions, 'bulk': []}.get(name)
                    rows = [self.conditionals[k]] if rows is None else rows[k].rows if rows else []
                    near = [row.last for row in rows if killed and abs(row.last - killed) < NEAR_SECONDS]
                    last = max((row.last for row in rows), default=0)
                    yield f'{"near" if near else "WRONG"}: {self.name}: {name} {k} through {host}, last written {last:.1f}'


class Load:
    """The clients."""

    def __init__(self, seed, keyspaces):
        self.keyspaces, self.ends = keyspaces, threading.Event()
        self.turns = [threading.Lock() for _ in range(WORKERS)]
        self.threads = [threading.Thread(target=self.work, args=(n, random.Random(seed * 1000 + n))) for n in range(WORKERS)]
        for thread in self.threads:
            thread.start()

    def work(self, worker, chance):
        value = worker
        while not self.ends.wait(chance.uniform(0, 2 * WORKERS / REQUESTS_PER_SECOND)):
            keyspace = chance.choice(self.keyspaces)
            k, c = chance.randrange(worker, PARTITIONS, WORKERS), chance.randrange(ROWS)
            kind, = chance.choices(list(SHARES), SHARES.values())
            value += WORKERS
            with self.turns[worker]:
                self.one(worker, chance, keyspace, kind, (k, c), value)

    def one(self, worker, chance, keyspace, kind, row, value):
        k, c = row
        if kind == 'set' and not keyspace.may_lose:
            keyspace.compare_and_set(chance.randrange(worker, CONDITIONALS, WORKERS))
        elif kind == 'read':
            keyspace.read(k)
        elif kind == 'delete_partition':
            keyspace.delete_partition(k)
        else:
            keyspace.write(k, c, None if kind == 'delete' else value)

    def pause(self):
        for turn in self.turns:
            turn.acquire()
        return []

    def resume(self):
        for turn in self.turns:
            turn.release()
        return []

    def end(self):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        for number, keyspace in enumerate(self.keyspaces, 1):
            requests, conditional = sum(keyspace.requests.values()), keyspace.failed['set']
            failed = sum(keyspace.failed.values()) - conditional
            yield f'keyspace {number} requests {requests} failed {failed} conditional {conditional}'
            yield f'{keyspace.name} {dict(keyspace.requests)} failed {dict(keyspace.failed)}'
            yield from (f'{keyspace.name} {failure}' for failure in keyspace.failures[:SHOWN_MAX])
            yield from (f'WRONG: {text}' for text in keyspace.wrong[:SHOWN_MAX])
            if len(keyspace.wrong) > SHOWN_MAX:
                yield f'WRONG: {keyspace.name}: {len(keyspace.wrong)} of these'


def compare(keyspace, hosts):
    for host in hosts:
        cluster, session = connect([host], WhiteListRoundRobinPolicy([host]))
        found = list(keyspace.compare(host, session))
        yield from (f'WRONG: {text}' for text in found[:SHOWN_MAX])
        if len(found) > SHOWN_MAX:
            yield f'WRONG: {keyspace.name}: {len(found)} of these through {host}'
        cluster.shutdown()


def differing(keyspace, host, killed=0):
    cluster, session = connect([host], WhiteListRoundRobinPolicy([host]))
    yield from keyspace.differing(host, session, float(killed))
    cluster.shutdown()


def truncate(session, keyspace):
    session.execute(f'TRUNCATE {keyspace.name}.bulk', timeout=WAIT_SECONDS)
    scan = SimpleStatement(f'SELECT k FROM {keyspace.name}.bulk', consistency_level=ConsistencyLevel.ALL)
    left = len(list(session.execute(scan)))
    if left:
        yield f'WRONG: {keyspace.name}: {left} rows after TRUNCATE'


def logs(host):
    cluster, session = connect([host], WhiteListRoundRobinPolicy([host]))
    scan = SimpleStatement('SELECT * FROM system_views.system_logs', consistency_level=ConsistencyLevel.ONE)
    for row in session.execute(scan):
        yield f'{row.level} {row.timestamp} {row.message}'.replace('\n', ' ')
    cluster.shutdown()


def main():
    seed, may_lose, *words = sys.argv[1:]
    hosts = words[words.index('--') + 1:]
    cluster, session = connect(hosts, RoundRobinPolicy())
    keyspaces = []
    for number, factors in enumerate(words[:words.index('--')], 1):
        keyspaces.append(Keyspace(session, number, factors, number <= int(may_lose)))
    for keyspace in keyspaces:
        keyspace.fill()
    load = Load(int(seed), keyspaces)
    print('done', flush=True)
    for line in sys.stdin:
        command, *arguments = line.split()
        try:
            for answer in answers(command, arguments, load, session):
                print(answer)
        except Exception as e:  # noqa: BLE001
            print(f'WRONG: {line.strip()}: {type(e).__name__}: {e}'.replace('\n', ' '))
        print('done', flush=True)
    load.ends.set()
    cluster.shutdown()


def answers(command, arguments, load, session):
    if command in ('pause', 'resume', 'end'):
        return getattr(load, command)()
    if command == 'logs':
        return logs(*arguments)
    keyspace = load.keyspaces[int(arguments[0]) - 1]
    if command == 'compare':
        return compare(keyspace, arguments[1:])
    if command == 'differing':
        return differing(keyspace, *arguments[1:])
    if command == 'truncate':
        return truncate(session, keyspace)
    if command == 'replicate':
        session.execute(f'ALTER KEYSPACE {keyspace.name} WITH replication = {replication(arguments[1])}')
        return []
    raise ValueError('no such command')


if __name__ == '__main__':
    main()
