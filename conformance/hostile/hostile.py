"""Clients that mean harm: hostile.py HOST PORT PID [--measure SECONDS].

Every case must end in an error or a closed connection, or in a plain answer where what was sent is harmless; the server must go on
serving others, within a bound of memory. With --measure, the latency of a client that means none is compared with and without them.
"""

import argparse
import itertools
import os
import resource
import select
import socket
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

from wire import AUTH_RESPONSE, BATCH, EXECUTE, OPTIONS, PREPARE, QUERY, REGISTER, STARTUP, long_string, string  # noqa: E402
from wrong import COMPRESSED, QUERY_TAIL, QUERY_TAIL_V5, SECONDS, Connection, frame, integer, lz4_bomb, segment, short, snappy_bomb, startup_body  # noqa: E402

# Attacks a second, each on a connection of its own, beside which others' 99th percentile may be at most twice that beside nobody.
PACE = 100
# Measurements of each kind, in turn.
ROUNDS = 3
HALF_OPEN = 10_000
# What the node may take more than before, in MiB.
MEMORY_MAX = 128
NESTED = 20_000
PROTOCOL, SYNTAX, INVALID = 'error 000a', 'error 2000', 'error 2200'


def query(text, version=4):
    return long_string(text) + (QUERY_TAIL_V5 if version >= 5 else QUERY_TAIL)


def before_startup():
    """(name, bytes, what may come of it)"""
    yield 'another protocol', b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', {PROTOCOL, 'closed'}
    yield 'a TLS hello', bytes.fromhex('16030100c8010000c40303') + bytes(200), {PROTOCOL, 'closed'}
    yield 'nothing but zeros', bytes(4096), {PROTOCOL, 'closed'}
    yield 'nothing but ones', b'\xff' * 4096, {PROTOCOL, 'closed'}
    for version in (0, 1, 2, 6, 66, 127):
        yield f'version {version}', frame(version, STARTUP, startup_body()), {PROTOCOL, 'closed'}
    yield 'a response', frame(0x84, 2), {PROTOCOL, 'closed'}
    yield 'no such opcode', frame(4, 0x7F), {PROTOCOL, 'closed'}
    for length in (0x7FFFFFFF, 0xFFFFFFFF, 0x80000000, 256 << 20):
        yield f'a length of {length:#x}', frame(4, STARTUP, startup_body(), length=length) + bytes(70000), {INVALID, 'closed'}
    yield 'a statement', frame(4, QUERY, query('SELECT key FROM system.local')), {PROTOCOL, 'closed'}
    yield 'a token', frame(4, AUTH_RESPONSE, integer(3) + b'abc'), {PROTOCOL, 'closed'}
    yield 'compressed before it is agreed on', frame(4, STARTUP, lz4_bomb(1 << 20), COMPRESSED), {PROTOCOL, 'closed'}
    for name, body in (
        ('a map of 65535 options', short(0xFFFF) + string('CQL_VERSION')),
        ('an option longer than the message', short(1) + short(0xFFFF) + b'CQL'),
        ('an option that is no UTF-8', short(1) + string(b'\xff\xfe') + string(b'\xc3')),
        ('no options', short(0)),
        ('nothing', b''),
        ('an unknown compression', startup_body(COMPRESSION='zip')),
        ('an unknown version of CQL', startup_body(CQL_VERSION='\u0000' * 60000)),
    ):
        yield f'STARTUP with {name}', frame(4, STARTUP, body), {PROTOCOL, 'closed'}


VALUE_INSERT = 'INSERT INTO hostile.t (k, v) VALUES (?, ?)'


def bodies(version):
    """Messages that are right, of which every beginning is sent."""
    flags = integer(1) if version >= 5 else b'\x01'
    values = b'\x00\x01' + flags + short(2) + integer(4) + integer(1) + integer(1) + b'a'
    batch = b'\x01' + short(2) + b'\x00' + long_string(VALUE_INSERT) + short(2) + integer(4) + integer(1) + integer(1) + b'a'
    batch += b'\x01' + string(b'0123456789abcdef') + short(0) + b'\x00\x01' + (integer(0) if version >= 5 else b'\x00')
    yield QUERY, long_string(VALUE_INSERT) + values
    yield PREPARE, long_string(VALUE_INSERT) + (integer(1) + string('hostile') if version >= 5 else b'')
    yield EXECUTE, string(b'0123456789abcdef') + (string(b'0123456789abcdef') if version >= 5 else b'') + values
    yield BATCH, batch
    yield REGISTER, short(2) + string('SCHEMA_CHANGE') + string('STATUS_CHANGE')


def messages(version):
    """(name, opcode, body, flags, what may come of it) after STARTUP."""
    tail = QUERY_TAIL_V5 if version >= 5 else QUERY_TAIL
    flags = integer(1) if version >= 5 else b'\x01'
    for length in (0x7FFFFFFF, -3, -0x80000000):
        body = long_string(VALUE_INSERT) + b'\x00\x01' + flags + short(1) + integer(length)
        yield f'a value of {length} bytes', QUERY, body, 0, {PROTOCOL, INVALID}
        yield f'a statement of {length} bytes', QUERY, integer(length) + b'SELECT', 0, {PROTOCOL}
    yield '65535 values that are not there', QUERY, long_string(VALUE_INSERT) + b'\x00\x01' + flags + short(0xFFFF), 0, {PROTOCOL}
    yield 'a batch of 65535 statements that are not there', BATCH, b'\x00' + short(0xFFFF), 0, {PROTOCOL}
    yield 'a batch of no known kind', BATCH, b'\x63' + short(0) + tail, 0, {PROTOCOL}
    yield '65535 events that are not there', REGISTER, short(0xFFFF) + string('STATUS_CHANGE'), 0, {PROTOCOL}
    yield 'an event that does not exist', REGISTER, short(1) + string('RAIN'), 0, {PROTOCOL}
    yield 'a statement that is no UTF-8', QUERY, query(b'SELECT \xff\xfe\xc3 FROM system.local', version), 0, {PROTOCOL, SYNTAX}
    yield 'a statement of zeros', QUERY, query(bytes(60000), version), 0, {SYNTAX}
    yield 'a payload that is not there', QUERY, short(0xFFFF), 4, {PROTOCOL}
    yield 'a paging state of nonsense', QUERY, long_string('SELECT * FROM hostile.t') + b'\x00\x01' + (
        integer(8) if version >= 5 else b'\x08') + integer(4000) + b'\xff' * 4000, 0, {PROTOCOL, INVALID}
    yield 'a consistency of nonsense', QUERY, long_string('SELECT * FROM hostile.t') + b'\xff\xff' + tail[2:], 0, {PROTOCOL}
    yield 'a page of -2147483648 rows', QUERY, long_string('SELECT * FROM hostile.t') + b'\x00\x01' + (
        integer(4) if version >= 5 else b'\x04') + integer(-0x80000000), 0, {PROTOCOL, 'answer 8'}
    for name, text in (
        ('parentheses', 'SELECT ' + '(' * NESTED + '1' + ')' * NESTED + ' FROM hostile.t'),
        ('lists', 'INSERT INTO hostile.t (k, v) VALUES (1, ' + '[' * NESTED + ']' * NESTED + ')'),
        ('maps', 'INSERT INTO hostile.t (k, v) VALUES (1, ' + '{1:' * NESTED + '1' + '}' * NESTED + ')'),
        ('calls', 'SELECT ' + 'f(' * NESTED + 'v' + ')' * NESTED + ' FROM hostile.t'),
        ('types', 'CREATE TABLE hostile.u (k int PRIMARY KEY, v ' + 'frozen<list<' * NESTED + 'int' + '>>' * NESTED + ')'),
        ('minus signs', 'SELECT ' + '- ' * NESTED + 'k FROM hostile.t'),
        ('casts', 'SELECT ' + '(int) ' * NESTED + 'k FROM hostile.t'),
        ('sums', 'SELECT ' + 'k + ' * NESTED + 'k FROM hostile.t'),
        ('JSON', "INSERT INTO hostile.t JSON '" + '{"k": 1, "v": ' + '[' * NESTED + ']' * NESTED + "}'"),
        ('fields', 'SELECT v' + '.a' * NESTED + ' FROM hostile.t'),
        ('elements', 'SELECT v' + '[1]' * NESTED + ' FROM hostile.t'),
    ):
        yield f'{name} nested {NESTED} deep', QUERY, query(text, version), 0, {SYNTAX, INVALID, PROTOCOL}
    many = 'SELECT * FROM hostile.t WHERE k IN (' + ','.join('?' * 65536) + ')'
    yield '65536 markers', QUERY, query(many, version), 0, {INVALID, SYNTAX, PROTOCOL}
    yield 'no such message', 0x20, b'', 0, {PROTOCOL, 'closed'}
    yield 'a message of a server', 8, b'', 0, {PROTOCOL, 'closed'}
    yield 'STARTUP again', STARTUP, startup_body(), 0, {PROTOCOL, 'answer 2'}


def raw_v4():
    """(name, compression, bytes, what may come of it)"""
    for length in (0xFFFFFFFF, 0x80000000, 0x7FFFFFFF, 300 << 20):
        yield f'a length of {length:#x}', None, frame(4, QUERY, b'', length=length), {PROTOCOL, 'closed', 'error 2200'}
    for claimed in (0x7FFFFFFF, -1, 300 << 20, 1, 0):
        body = integer(claimed) + lz4_bomb(1 << 20)
        yield f'LZ4 that claims {claimed} bytes', 'lz4', frame(4, QUERY, body, COMPRESSED), {PROTOCOL, 'closed'}
    yield 'an LZ4 bomb', 'lz4', frame(4, QUERY, integer(200 << 20) + lz4_bomb(200 << 20), COMPRESSED), {PROTOCOL, 'closed', 'error 2200'}
    yield 'LZ4 that is none', 'lz4', frame(4, QUERY, integer(1000) + b'\xff' * 500, COMPRESSED), {PROTOCOL, 'closed'}
    yield 'a Snappy bomb', 'snappy', frame(4, QUERY, snappy_bomb(200 << 20), COMPRESSED), {PROTOCOL, 'closed', 'error 2200'}
    yield 'Snappy that claims 4 GiB', 'snappy', frame(4, QUERY, b'\xff\xff\xff\xff\x0f\x00a', COMPRESSED), {PROTOCOL, 'closed'}
    yield 'Snappy that is none', 'snappy', frame(4, QUERY, b'\x10' + b'\xff' * 500, COMPRESSED), {PROTOCOL, 'closed'}
    yield 'compressed without agreement', None, frame(4, QUERY, lz4_bomb(1 << 16), COMPRESSED), {PROTOCOL, 'closed'}


def raw_v5():
    good = frame(5, QUERY, query('SELECT key FROM system.local', 5))
    lz4 = integer(0)
    yield 'a wrong checksum of a header', None, segment(good, header_crc=0), {PROTOCOL, 'closed'}
    yield 'a wrong checksum of a payload', None, segment(good, payload_crc=0), {PROTOCOL, 'closed'}
    yield 'no segment', None, good, {PROTOCOL, 'closed'}
    yield 'a segment without a payload', None, segment(b'') * 1000 + segment(good), {PROTOCOL, 'closed', 'answer 8'}
    yield 'half a message in a whole segment', None, segment(good[:-5]) + segment(good), {PROTOCOL, 'closed'}
    yield 'a header alone in a segment', None, segment(good[:4]) + segment(good), {PROTOCOL, 'closed'}
    long = frame(5, QUERY, b'', length=0x7FFFFFFF)
    yield 'a message of 2 GiB', None, segment(long, False) + segment(bytes(1000), False) * 1000, {PROTOCOL, 'closed', 'error 2200'}
    yield 'a message of 4 GiB', None, segment(frame(5, QUERY, b'', length=0xFFFFFFFF), False), {PROTOCOL, 'closed', 'error 2200'}
    yield 'version 4 in a segment', None, segment(frame(4, OPTIONS)), {PROTOCOL, 'closed'}
    yield 'compressed in a segment', None, segment(frame(5, QUERY, lz4_bomb(1 << 16), COMPRESSED)), {PROTOCOL, 'closed'}
    bomb = lz4_bomb(131071)
    yield 'an LZ4 bomb', 'lz4', segment(bomb, uncompressed=131071), {PROTOCOL, 'closed'}
    yield 'LZ4 that claims more', 'lz4', segment(lz4_bomb(1000), uncompressed=131071), {PROTOCOL, 'closed'}
    yield 'LZ4 that claims less', 'lz4', segment(bomb, uncompressed=10), {PROTOCOL, 'closed'}
    yield 'LZ4 that is none', 'lz4', segment(b'\xff' * 500 + lz4, uncompressed=5000), {PROTOCOL, 'closed'}


class Run:
    def __init__(self, host, port, pid):
        self.host, self.port, self.pid = host, port, pid
        self.cases, self.wrong = 0, []

    def resident(self):
        with open(f'/proc/{self.pid}/statm') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE') >> 20

    def connect(self, *args, **options):
        return Connection(self.host, self.port, *args, **options)

    def execute(self, text):
        with self.connect() as connection:
            connection.send_message(QUERY, query(text))
            return connection.end()

    def serves(self):
        return self.execute('SELECT key FROM system.local') == 'answer 8'

    def case(self, name, connection, send, allowed):
        self.cases += 1
        with connection:
            try:
                send(connection)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was closed in the middle: what was answered may be read still
            end = connection.end()
        if end not in allowed:
            self.wrong.append(f'{name}: {end}, not {" or ".join(sorted(allowed))}')
        if not self.serves():
            raise SystemExit(f'{name}: nobody is served after it')

    def all(self):
        for name, data, allowed in before_startup():
            self.case(f'before STARTUP, {name}', self.connect(ready=False), lambda c, d=data: c.send(d), allowed)
        for version, compression in ((3, None), (4, None), (5, None), (5, 'lz4')):
            where = f'v{version} {compression or ""}'
            for name, opcode, body, flags, allowed in messages(version):
                if len(body) > 100_000 and version >= 5:
                    continue  # longer than a segment
                send = lambda c, o=opcode, b=body, f=flags: c.send_message(o, b, f)
                self.case(f'{where}, {name}', self.connect(version, compression), send, allowed)
            for opcode, body in bodies(version):
                for length in range(len(body)):
                    self.beginning(version, compression, opcode, body[:length])
        for version, cases in ((4, raw_v4()), (5, raw_v5())):
            for name, compression, data, allowed in cases:
                self.case(f'v{version}, {name}', self.connect(version, compression), lambda c, d=data: c.send(d), allowed)

    def beginning(self, version, compression, opcode, body):
        self.cases += 1
        with self.connect(version, compression) as connection:
            connection.send_message(opcode, body)
            end = connection.end()
        if not end.startswith('error'):
            self.wrong.append(f'v{version}, {len(body)} bytes of opcode {opcode}: {end}')

    def half_open(self):
        """Strangers who never finish their first message, and others who come in between."""
        held = []
        for n in range(HALF_OPEN):
            try:
                stranger = socket.create_connection((self.host, self.port), SECONDS)
            except OSError as error:
                self.wrong.append(f'half-open connection {n}: {error}')
                break
            stranger.setblocking(False)
            stranger.send(frame(4, STARTUP, startup_body())[: n % 12])
            held.append(stranger)
            if n % 1000 == 0 and not self.serves():
                self.wrong.append(f'nobody is served beside {n} half-open connections')
        self.cases += 1
        if not self.serves():
            self.wrong.append('nobody is served beside half-open connections')
        poll = select.poll()
        open_ones = {stranger.fileno(): stranger for stranger in held}
        for number in open_ones:
            poll.register(number, select.POLLIN | select.POLLHUP)
        deadline = time.monotonic() + 6 * SECONDS
        while open_ones and time.monotonic() < deadline:
            for number, _ in poll.poll(1000):
                try:
                    data = open_ones[number].recv(4096)
                except ConnectionResetError:
                    data = b''
                if not data:
                    poll.unregister(number)
                    open_ones.pop(number).close()
        if open_ones:
            self.wrong.append(f'{len(open_ones)} half-open connections are open still')


def apart(niceness):
    """Clients live on machines of their own: here they share the cores that the node leaves, so the attack stands back and the victim comes first."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[1:] or cores)
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, niceness)


def give_a_core(pid):
    """The node, of one shard, has the first core to itself."""
    core = {min(os.sched_getaffinity(0))}
    for thread in os.listdir(f'/proc/{pid}/task'):
        os.sched_setaffinity(int(thread), core)


def victim(host, port, seconds):
    """One who means no harm: prints the 50th and 99th percentile of its reads, in microseconds."""
    apart(-10)
    took = []
    with Connection(host, port) as connection:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            start = time.perf_counter()
            connection.send_message(QUERY, query('SELECT v FROM hostile.t WHERE k = 1'))
            connection.answer()
            took.append(time.perf_counter() - start)
            time.sleep(0.002)
    took.sort()
    print(len(took), *(round(took[int(len(took) * p)] * 1e6) for p in (0.5, 0.99)))


def measure(run, seconds):
    """The victim's latency alone and beside each kind of attack, at a pace and as fast as one client can; medians of rounds that take turns."""
    give_a_core(run.pid)

    def percentiles(attack, pace):
        command = [sys.executable, __file__, run.host, str(run.port), '0', '--victim', str(seconds)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        due = time.monotonic()
        while process.poll() is None:
            attack()
            due = max(due + pace, time.monotonic() - 1)
            time.sleep(max(0, due - time.monotonic()))
        return [int(word) for word in process.stdout.read().split()]

    def one(cases):
        endless = itertools.cycle(cases)

        def attack():
            version, compression, data = next(endless)
            with run.connect(version, compression) as connection:
                try:
                    connection.send(data)
                except (BrokenPipeError, ConnectionResetError):
                    pass
                connection.end()
        return attack

    attacks = {
        'good neighbour': one([(4, None, frame(4, QUERY, query('SELECT v FROM hostile.t WHERE k = 1')))]),
        'frames': one([(4, c, d) for _, c, d, _ in raw_v4()]),
        'segments': one([(5, c, d) for _, c, d, _ in raw_v5()]),
        'statements': one([(4, None, frame(4, o, b, f)) for _, o, b, f, _ in messages(4)]),
    }
    apart(19)
    cells = [('nobody', lambda: None, 0.05)]
    cells += [(f'{name}, {PACE} a second', attack, 1 / PACE) for name, attack in attacks.items()]
    cells += [(f'{name}, endless', attack, 0) for name, attack in attacks.items()]
    found = {name: [] for name, _, _ in cells}
    for _ in range(ROUNDS):
        for name, attack, pace in cells:
            found[name].append(percentiles(attack, pace))
    medians = {name: [statistics.median(column) for column in zip(*rows)] for name, rows in found.items()}
    wrong = 0
    for name, _, pace in cells:
        count, median, p99 = medians[name]
        each = ' '.join(str(row[2]) for row in found[name])
        alone = p99 / medians['nobody'][2]
        print(f'{name:<30}{count:>7.0f} reads  p50 {median:>6.0f} us  p99 {p99:>6.0f} us ({each})  {alone:.2f}', flush=True)
        wrong += pace == 1 / PACE and alone > 2
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('host')
    parser.add_argument('port', type=int)
    parser.add_argument('pid', type=int)
    parser.add_argument('--measure', type=int)
    parser.add_argument('--victim', type=int)
    args = parser.parse_args()
    if args.victim:
        return victim(args.host, args.port, args.victim)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, HALF_OPEN + 1000), hard))
    run = Run(args.host, args.port, args.pid)
    for text in ("CREATE KEYSPACE IF NOT EXISTS hostile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                 'CREATE TABLE IF NOT EXISTS hostile.t (k int PRIMARY KEY, v text)', "INSERT INTO hostile.t (k, v) VALUES (1, 'a')"):
        end = run.execute(text)
        if not end.startswith('answer'):
            raise SystemExit(f'{text}: {end}')
    before = run.resident()
    if args.measure:
        return measure(run, args.measure)
    run.all()
    after = run.resident()
    run.half_open()
    last = run.resident()
    if max(after, last) > before + MEMORY_MAX:
        run.wrong.append(f'{before} MiB became {after} and {last} MiB')
    for line in run.wrong:
        print(f'wrong: {line}')
    print(f'{run.cases} cases, {len(run.wrong)} wrong; resident {before} MiB before, {after} MiB after, {last} MiB after {HALF_OPEN} half-open connections')
    return 1 if run.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
