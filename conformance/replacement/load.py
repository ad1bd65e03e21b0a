#!/usr/bin/env python3
"""Readers and writers of a ring whose nodes come and go.

usage: load.py SECONDS|- HOST... [OPTIONS]

Half reads, half updates (--writes), as YCSB's workload A, of rows of ten columns; all statements idempotent, with speculative executions and the
driver's own retry policy. Runs so many seconds, or (-) until its standard input ends; a line of it ends a window, whose figures are printed as JSON under that name.
A thread alone writes its rows, with a number that
rises: a read that shows an older number than the last one acknowledged is wrong, and so is one that shows a number never tried.
One more thread adds one to a few rows by conditional statements: none may be applied twice, and none that was applied be lost. Such a
statement is not idempotent: whether one that failed was applied nobody knows, and it is not counted as failed.
In the end all rows are read at ALL through each host and compared. The last line says what was found, as JSON; each second one says how
it goes. --keep: the table and its rows are there already. --only run: nothing is compared; --only compare: whatever is there.
"""

import argparse
import json
import random
import socket
import sys
import threading
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import (ConstantReconnectionPolicy, ConstantSpeculativeExecutionPolicy, DCAwareRoundRobinPolicy,
                                TokenAwarePolicy, WhiteListRoundRobinPolicy)
from cassandra.query import SimpleStatement

COLUMNS = 10
COLUMN_BYTES = 100
# after how long another node is asked, and how many others: one of three is left to ask where the connection to the first breaks (the
# driver gives a request up once a plan has no more nodes, whoever is still asked)
SPECULATIVE = (0.2, 1)
TIMEOUT = 12.0
# after how long without an acknowledgement a connection is given up, in milliseconds: one to a node that was cut off for half a minute
# would else wait for the system's next retry, long after the node is back
UNACKNOWLEDGED = 5000
KEYSPACE = "swap"
# the line that ends a run; all is compared once the standard input ends
END = "end"
# reasons that are kept of each kind of failure
REASONS = 5


def connect(hosts, profile, name):
    return Cluster(hosts, execution_profiles={EXEC_PROFILE_DEFAULT: profile}, protocol_version=5, connect_timeout=10,
                   sockopts=[(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED)],
                   reconnection_policy=ConstantReconnectionPolicy(1.0, max_attempts=None), application_name=name)


def say(text):
    """A line whole: several threads have something to say."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Rows:
    """What is known of the rows of a thread."""

    def __init__(self, name, first, step, count):
        self.keys = [f"{name}{n}" for n in range(first, count, step)]
        self.acked = dict.fromkeys(self.keys, 0)
        self.tried = dict.fromkeys(self.keys, 0)


class Conditions:
    """Rows to which conditional statements add one."""

    COUNT = 5

    def __init__(self, name):
        self.keys = [f"{name}{n}" for n in range(self.COUNT)]
        self.applied = {key: [] for key in self.keys}
        self.unknown = dict.fromkeys(self.keys, 0)

    def wrong(self, key, value):
        applied, unknown = self.applied[key], self.unknown[key]
        if len(set(applied)) < len(applied):
            return f"condition {key}: one was applied twice"
        if not len(applied) <= value <= len(applied) + unknown:
            return f"condition {key} is {value}: {len(applied)} were applied and of {unknown} nobody knows"
        return None


class Load:
    def __init__(self, options):
        self.options = options
        profile = ExecutionProfile(
            load_balancing_policy=TokenAwarePolicy(DCAwareRoundRobinPolicy()),
            speculative_execution_policy=ConstantSpeculativeExecutionPolicy(*SPECULATIVE),
            consistency_level=getattr(ConsistencyLevel, options.level), request_timeout=TIMEOUT)
        self.cluster = connect(options.hosts, profile, "load")
        self.session = self.cluster.connect()
        self.parts = [Rows(options.name, n, options.threads, options.rows) for n in range(options.threads)]
        self.lock = threading.Lock()
        self.done, self.failed, self.wrong, self.reasons = 0, 0, [], {}
        self.second, self.window, self.reads = [], [], []
        self.closed = threading.Event()
        self.failed_before = 0
        self.conditions = Conditions(options.name)
        self.over = threading.Event()

    def prepare(self):
        if not self.options.keep:
            replication = "{'class': 'NetworkTopologyStrategy', 'replication_factor': 3}"
            self.session.execute(f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = {replication}")
            columns = ", ".join(f"field{n} text" for n in range(COLUMNS))
            self.session.execute(f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.usertable (y_id text PRIMARY KEY, {columns})")
            self.session.execute(f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.conditions (k text PRIMARY KEY, v int)")
        every = ", ".join(f"field{n}" for n in range(COLUMNS))
        marks = ", ".join("?" * (COLUMNS + 1))
        self.insert = self.session.prepare(f"INSERT INTO {KEYSPACE}.usertable (y_id, {every}) VALUES ({marks})")
        self.update = self.session.prepare(f"UPDATE {KEYSPACE}.usertable SET field0 = ? WHERE y_id = ?")
        self.select = self.session.prepare(f"SELECT * FROM {KEYSPACE}.usertable WHERE y_id = ?")
        for statement in (self.insert, self.update, self.select):
            statement.is_idempotent = True
        self.look = self.session.prepare(f"SELECT v FROM {KEYSPACE}.conditions WHERE k = ?")
        self.look.consistency_level = ConsistencyLevel.LOCAL_SERIAL
        self.add = self.session.prepare(f"UPDATE {KEYSPACE}.conditions SET v = ? WHERE k = ? IF v = ?")
        self.add.serial_consistency_level = ConsistencyLevel.LOCAL_SERIAL

    def conditional(self):
        rng = random.Random(0)
        while not self.over.wait(0.05):
            key = rng.choice(self.conditions.keys)
            is_sent = False
            try:
                value = self.session.execute(self.look, [key]).one().v
                is_sent = True
                if self.session.execute(self.add, [value + 1, key, value]).was_applied:
                    self.conditions.applied[key].append(value + 1)
            except Exception:
                self.conditions.unknown[key] += is_sent

    def load(self):
        for key in self.conditions.keys:
            self.session.execute(f"INSERT INTO {KEYSPACE}.conditions (k, v) VALUES ('{key}', 0)")
        filler = "x" * COLUMN_BYTES
        waiting = []
        for part in self.parts:
            for key in part.keys:
                waiting.append(self.session.execute_async(self.insert, [key, shown(0)] + [filler] * (COLUMNS - 1)))
                if len(waiting) == 100:
                    for each in waiting:
                        each.result()
                    waiting = []
        for each in waiting:
            each.result()

    def thread(self, part, seed):
        rng = random.Random(seed)
        pause = self.options.threads / self.options.rate
        due = time.monotonic() + rng.random() * pause
        while not self.over.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            # what was missed meanwhile is not made up for
            due = max(due, time.monotonic() - pause) + pause
            key = rng.choice(part.keys)
            begun = time.monotonic()
            try:
                is_write = rng.random() < self.options.writes
                if is_write:
                    number = part.tried[key] + 1
                    part.tried[key] = number
                    self.session.execute(self.update, [shown(number), key])
                    part.acked[key] = number
                else:
                    row = self.session.execute(self.select, [key]).one()
                    self.judge(part, key, row, "read")
                outcome = None
            except Exception as error:  # whatever a driver raises is a failed request
                outcome = error
            took = time.monotonic() - begun
            with self.lock:
                self.second.append(took)
                self.window.append(took)
                self.done += 1
                if not is_write:
                    self.reads.append(took)
                if outcome is not None:
                    self.failed += 1
                    known = self.reasons.setdefault(type(outcome).__name__, [])
                    if len(known) < REASONS:
                        known.append(f"{time.strftime('%H:%M:%S')} {str(outcome)[:300]}")

    def judge(self, part, key, row, where):
        if self.options.keep:  # by another's numbers
            return
        number = None if row is None else int(row.field0.rstrip("x") or -1)
        if number is None or not part.acked[key] <= number <= part.tried[key]:
            with self.lock:
                self.wrong.append(f"{where} of {key}: {number}, not {part.acked[key]} to {part.tried[key]}")
        elif where == "read":
            part.acked[key] = number  # whoever reads again must see it too

    def listen(self):
        for line in sys.stdin:
            if line.strip() == END:
                self.over.set()
            else:
                self.end_window(line.strip())
        self.over.set()
        self.closed.set()

    def end_window(self, name):
        with self.lock:
            took, self.window = sorted(self.window), []
            reads, self.reads = sorted(self.reads), []
            failed, self.failed_before = self.failed - self.failed_before, self.failed
        at = {f"p{part}": round(took[int(len(took) * part / 100)] * 1e3, 2) for part in (50, 99, 99.9)} if took else {}
        at["reads_p99"] = round(reads[int(len(reads) * 0.99)] * 1e3, 2) if reads else 0.0
        worst = round(took[-1] * 1e3, 2) if took else 0.0
        say(json.dumps({"window": name, "done": len(took), "failed": failed, **at, "worst": worst}))

    def run(self):
        threads = [threading.Thread(target=self.thread, args=(part, n)) for n, part in enumerate(self.parts)]
        threads.append(threading.Thread(target=self.conditional))
        for thread in threads:
            thread.start()
        if self.options.seconds == "-":
            threading.Thread(target=self.listen, daemon=True).start()
        end = None if self.options.seconds == "-" else time.monotonic() + float(self.options.seconds)
        while not self.over.wait(1.0):
            with self.lock:
                took, self.second = sorted(self.second), []
            p99 = took[int(len(took) * 0.99)] * 1e3 if took else 0.0
            worst = took[-1] * 1e3 if took else 0.0
            say(f"{time.strftime('%H:%M:%S')} {len(took)} done, p99 {p99:.1f} ms, worst {worst:.1f} ms, {self.failed} failed")
            if end is not None and time.monotonic() > end:
                self.over.set()
        for thread in threads:
            thread.join()
        if self.options.seconds == "-":
            say("ended")
            self.closed.wait()

    def compare(self):
        """All rows at ALL through each host: the same everywhere, and nothing acknowledged lost."""
        seen = {}
        for host in self.options.through or self.options.hosts:
            profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]),
                                       consistency_level=ConsistencyLevel.ALL, request_timeout=60)
            cluster = connect([host], profile, "compare")
            session = cluster.connect()
            select = session.prepare(f"SELECT * FROM {KEYSPACE}.usertable WHERE y_id = ?")
            for part in self.parts:
                for key in part.keys:
                    row = session.execute(select, [key]).one()
                    self.judge(part, key, row, f"{host} at ALL")
                    if seen.setdefault(key, row) != row:
                        self.wrong.append(f"{host} at ALL: {key} is {row}, elsewhere {seen[key]}")
            for key in self.conditions.keys:
                text = f"SELECT v FROM {KEYSPACE}.conditions WHERE k = '{key}'"
                look = SimpleStatement(text, consistency_level=ConsistencyLevel.SERIAL)
                value = session.execute(look).one().v
                wrong = self.conditions.wrong(key, value)
                self.wrong.extend([f"{host}: {wrong}"] if wrong and not self.options.keep else [])
            cluster.shutdown()


def shown(number):
    return str(number).ljust(COLUMN_BYTES, "x")


def main():
    # a thread that is ready waits for another no longer than this: else what is measured is the interpreter's turns of 5 ms
    sys.setswitchinterval(0.0005)
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("seconds")
    parser.add_argument("hosts", nargs="+")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--rate", type=float, default=300.0)
    parser.add_argument("--threads", type=int, default=24)
    parser.add_argument("--writes", type=float, default=0.5, help="the share of writes")
    parser.add_argument("--name", default="user", help="of its rows: other clients have others")
    parser.add_argument("--through", nargs="+", help="through whom all is compared, in place of HOST...")
    parser.add_argument("--level", default="LOCAL_QUORUM")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--only", choices=["run", "compare"])
    load = Load(parser.parse_args())
    only = load.options.only
    load.prepare()
    if not load.options.keep:
        load.load()
    say("running")
    if only != "compare":
        load.run()
    if only != "run":
        load.compare()
    load.cluster.shutdown()
    load.end_window("last")
    wrong = len(load.wrong)
    print(json.dumps({"done": load.done, "failed": load.failed, "reasons": load.reasons, "wrong": wrong,
                      "conditions": sum(len(of) for of in load.conditions.applied.values()),
                      "unknown": sum(load.conditions.unknown.values()), "first_wrong": load.wrong[:REASONS]}))
    sys.exit(1 if wrong or load.failed else 0)


main()
