"""Flush, major compaction and scrub of the same data on one server; or the figures of such runs.

    run.py measure NAME HOST PORT PID DATA OUT.json NODETOOL... [-- --mb N --repeats N --schemas a,b,...]
    run.py report OUT.json [OUT.json]

`measure` fills a table of each schema in FLUSHES parts, half of whose rows overwrite rows of the parts before, and flushes each part on
demand; then it has all of the table compacted, and scrubbed. Of each step: the bytes of data that it worked on (of a compaction those that
it read, of the others those that they wrote), the time, and the CPU time of the server's process. Compactions are neither started by
themselves nor held back. The last of the repeats counts, when a JVM is warm.
"""

import argparse
import glob
import json
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'conformance', 'oracle'))

import wire  # noqa: E402

FLUSHES = 4
PARTITION = 64          # rows
BATCH = 32              # rows
MIB = 1 << 20
TICK = os.sysconf('SC_CLK_TCK')
LOGGED, UNLOGGED, COUNTER = 0, 1, 2
STEPS = ('flush', 'compact', 'scrub')


class Text:
    """Words, which compress about as well as what people write."""

    def __init__(self, rng):
        words = [''.join(rng.choices('abcdefghijklmnopqrstuvwxyz', k=rng.randint(3, 9))) for _ in range(4000)]
        self.pool = ' '.join(rng.choices(words, k=400_000)).encode()
        self.rng = rng

    def __call__(self, length):
        at = self.rng.randrange(len(self.pool) - length)
        return self.pool[at:at + length]


def number(n):
    return n.to_bytes(4, 'big')


def text_map(entries):
    out = number(len(entries))
    for key, value in entries:
        out += number(4) + number(key) + number(len(value)) + value
    return out


# Each schema: its table, and the statements of a row: (CQL, values), the first of them at most of the time.

class Rows:
    columns, kind, row_bytes = 'p int, c int, v text, PRIMARY KEY (p, c)', UNLOGGED, 1024
    statements = ['INSERT INTO {} (p, c, v) VALUES (?, ?, ?)']

    def row(self, p, c, text, rng):
        return 0, [number(p), number(c), text(1000)]


class Collections:
    columns, kind, row_bytes = 'p int, c int, m map<int, text>, s set<text>, PRIMARY KEY (p, c)', UNLOGGED, 1100
    statements = ['INSERT INTO {} (p, c, m, s) VALUES (?, ?, ?, ?)', 'UPDATE {} SET m = m + ? WHERE p = ? AND c = ?']

    def row(self, p, c, text, rng):
        if rng.random() < 0.3:
            return 1, [text_map([(rng.randrange(64), text(50))]), number(p), number(c)]
        words = sorted({text(20) for _ in range(10)})
        members = number(len(words)) + b''.join(number(len(word)) + word for word in words)
        return 0, [number(p), number(c), text_map([(n, text(50)) for n in sorted(rng.sample(range(64), 14))]), members]


class Counters:
    # a tenth of the bytes: each takes a read
    columns, kind, row_bytes = 'p int, c int, n counter, PRIMARY KEY (p, c)', COUNTER, 600
    statements = ['UPDATE {} SET n = n + ? WHERE p = ? AND c = ?']

    def row(self, p, c, text, rng):
        return 0, [rng.randrange(1 << 40).to_bytes(8, 'big'), number(p), number(c)]


class Tombstones:
    columns, kind, row_bytes = 'p int, c int, a text, b text, PRIMARY KEY (p, c)', UNLOGGED, 600
    statements = ['INSERT INTO {} (p, c, a, b) VALUES (?, ?, ?, ?)', 'DELETE FROM {} WHERE p = ? AND c = ?',
                  'DELETE a FROM {} WHERE p = ? AND c = ?', 'DELETE FROM {} WHERE p = ? AND c >= ? AND c < ?',
                  'INSERT INTO {} (p, c, a, b) VALUES (?, ?, ?, ?) USING TTL 864000']

    def row(self, p, c, text, rng):
        what = rng.choices(range(5), weights=(5, 2, 1, 1, 1))[0]
        if what in (0, 4):
            return what, [number(p), number(c), text(500), text(500)]
        return what, [number(p), number(c)] + ([number(c + 4)] if what == 3 else [])


SCHEMAS = {'rows': Rows(), 'collections': Collections(), 'counters': Counters(), 'tombstones': Tombstones()}


class Bench:
    def __init__(self, args, nodetool):
        self.args, self.command = args, nodetool
        self.connection = wire.Connection(args.host, args.port, version=4, timeout=600)
        self.query("CREATE KEYSPACE IF NOT EXISTS bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.nodetool('setcompactionthroughput', '0')

    def query(self, cql):
        answer = self.connection.query(cql)
        if answer['kind'] == 'error':
            raise SystemExit(f'{cql}: {answer}')
        return answer

    def nodetool(self, *words):
        done = subprocess.run([*self.command, *words], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f'nodetool {" ".join(words)}: {done.stdout}{done.stderr}')
        return done.stdout

    def cpu(self):
        fields = open(f'/proc/{self.args.pid}/stat').read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def data(self, table):
        """The bytes of data of each SSTable of a table."""
        sizes = {}
        for file in glob.glob(f'{self.args.data}/bench/{table}-*/*-Data.db'):
            try:
                sizes[file] = os.path.getsize(file)
            except FileNotFoundError:
                pass  # compacted away, and just removed
        return sizes

    def step(self, read, table, *words):
        """Lets nodetool do something: MiB of data (of what is there before if it is read, else of what is new), seconds, seconds of CPU."""
        before, cpu, started = self.data(table), self.cpu(), time.monotonic()
        self.nodetool(*words)
        seconds, cpu = time.monotonic() - started, self.cpu() - cpu
        new = {file: size for file, size in self.data(table).items() if file not in before}
        return sum((before if read else new).values()) / MIB, seconds, cpu

    def fill(self, schema, prepared, part, partitions, rng, text):
        """A part of the data: half of its partitions are new, half those of the part before."""
        first = part * partitions // 2
        for p in range(first, first + partitions):
            rows = [schema.row(p, c, text, rng) for c in range(PARTITION)]
            for at in range(0, len(rows), BATCH):
                answer = self.connection.batch(schema.kind, [(prepared[which], values) for which, values in rows[at:at + BATCH]])
                if answer['kind'] == 'error':
                    raise SystemExit(f'a batch: {answer}')

    def count(self, table):
        return int.from_bytes(self.query(f'SELECT count(*) FROM bench.{table}')['rows'][0][0], 'big')

    def once(self, name, seed):
        schema, table = SCHEMAS[name], f'{name}_{seed}'
        rng = random.Random(seed)
        text = Text(rng)
        self.query(f'CREATE TABLE bench.{table} ({schema.columns})')
        self.nodetool('disableautocompaction', 'bench', table)
        prepared = [self.connection.prepare(cql.format(f'bench.{table}')) for cql in schema.statements]
        partitions = max(2, self.args.mb * MIB // (FLUSHES * PARTITION * schema.row_bytes))
        flushes = []
        for part in range(FLUSHES):
            self.fill(schema, prepared, part, partitions, rng, text)
            flushes.append(self.step(False, table, 'flush', 'bench', table))
        found = {'flush': [sum(column) for column in zip(*flushes)]}
        found['compact'] = self.step(True, table, 'compact', 'bench', table)
        found['rows'] = self.count(table)
        found['scrub'] = self.step(False, table, 'scrub', '--no-snapshot', 'bench', table)
        found['lost'] = found['rows'] - self.count(table)
        self.query(f'DROP TABLE bench.{table}')
        return found


def measure(argv):
    parser = argparse.ArgumentParser()
    parser.add_argument('name'), parser.add_argument('host'), parser.add_argument('port', type=int)
    parser.add_argument('pid', type=int), parser.add_argument('data'), parser.add_argument('out')
    parser.add_argument('--mb', type=int, default=200)
    parser.add_argument('--repeats', type=int, default=3)
    parser.add_argument('--schemas', default=','.join(SCHEMAS))
    cut = argv.index('--') if '--' in argv else len(argv)
    args = parser.parse_args(argv[:6] + argv[cut + 1:])
    bench = Bench(args, argv[6:cut])
    found = {name: [bench.once(name, seed + 1) for seed in range(args.repeats)] for name in args.schemas.split(',')}
    with open(args.out, 'w') as file:
        json.dump({'name': args.name, 'mb': args.mb, 'schemas': found}, file, indent=1)


def rate(step):
    megabytes, seconds, cpu = step
    return megabytes / seconds, cpu / (megabytes / 1024), megabytes / max(cpu, 1 / TICK)


def report(files):
    runs = [json.load(open(file)) for file in files]
    print(f'{"":<12}{"":<9}' + ''.join(f'{run["name"]:>32}' for run in runs) + ('    MB per CPU second' if len(runs) == 2 else ''))
    print(f'{"":<12}{"":<9}' + ''.join(f'{"MB":>10}{"MB/s":>10}{"CPU s/GB":>12}' for _ in runs))
    least = {}
    for name in runs[0]['schemas']:
        counts = {json.dumps([once['rows'] for once in run['schemas'][name]]) for run in runs}
        if len(counts) > 1:
            raise SystemExit(f'{name}: the servers have not the same rows: {counts}')
        for step in STEPS:
            cells, per_cpu = '', []
            # Cassandra 5.0.9's scrub fails on range tombstones, and leaves their partitions out.
            lost = [(run['name'], run['schemas'][name][-1]['lost']) for run in runs if step == 'scrub']
            if any(rows for _, rows in lost):
                print(f'{name:<12}{step:<9}' + ', '.join(f'{of} loses {rows} rows' for of, rows in lost if rows))
                continue
            for run in runs:
                last = run['schemas'][name][-1][step]
                speed, cost, _ = rate(last)
                per_cpu.append([rate(once[step])[2] for once in run['schemas'][name]])
                cells += f'{last[0]:>10.0f}{speed:>10.0f}{cost:>12.2f}'
            line = f'{name:<12}{step:<9}{cells}'
            if len(runs) == 2:
                ratios = [ours / theirs for ours, theirs in zip(*per_cpu)]
                least[step] = min(least.get(step, ratios[-1]), ratios[-1])
                line += f'    {ratios[-1]:>6.1f} times ({" ".join(f"{ratio:.1f}" for ratio in ratios)})'
            print(line)
    for step, ratio in least.items():
        print(f'{step}: at least {ratio:.1f} times the MB per CPU second')
    return 0


if __name__ == '__main__':
    sys.exit(report(sys.argv[2:]) if sys.argv[1:2] == ['report'] else measure(sys.argv[2:]))
