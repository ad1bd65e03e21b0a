"""A node that means harm, at the storage ports of a ring of two: peers.py IP PID IP PID [--seeds N] [--all] [--only PART].

Whatever it says must be refused, dropped or answered with a failure, be told of by a line or a counter, and leave everything as it was:
who is in the ring, its schema, its data, the nodes' memory; while both nodes serve. With --all every message is cut at every length.
"""

import argparse
import contextlib
import itertools
import pathlib
import random
import re
import resource
import socket
import struct
import sys
import threading
import time
import urllib.request
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'oracle'))

import internode as node  # noqa: E402
from internode import (  # noqa: E402
    CRC, ECHO, FAILURE, FRAME_MAX, LARGE, LZ4, SMALL, URGENT, Ear, Peer, frame, initiate, message, uvint)
from wire import QUERY, long_string  # noqa: E402
from wrong import QUERY_TAIL, SECONDS, Connection, integer, lz4_bomb  # noqa: E402

# Where the harm comes from: one address that answers, one that does not.
HERE, ELSEWHERE = '127.0.0.35', '127.0.0.36'
# Where a replica that lies asks what the truth is.
RELAY = '127.0.0.37'
# Unavailable; a read or a write of which too little came, in time or at all; a condition of which nobody knows what came.
LACKS = {0x1000, 0x1100, 0x1200, 0x1300, 0x1500, 0x1700}
NATIVE_PORT, METRICS_PORT = 9042, 7070
# Consistency levels of the native protocol.
ONE, TWO, ALL = 1, 2, 5
CLUSTER = 'peer'
ROOT = pathlib.Path(__file__).parent.parent.parent
# What the node may take more than before, in MiB.
MEMORY_MAX = 256
IDLE = 2000
# How long a handshake may take where request_timeout is one second, and how long one may be known who is no node, with some to spare.
HANDSHAKE_SECONDS, FORGET_SECONDS = 3 + 4, 2 + 10
MAX_MESSAGE = 128 << 20
NESTED = 20_000
# Ids of the tables of the recorded messages.
RECORDED = {'t': ('00000000000010000000000000000001', '00000000000010008000000000000001'),
            'ck': ('00000000000010000000000000000004',)}
RECORDED_HOST = '5c3b3720e5dd11f19a151b96078e4459'
TABLES = {
    't': 'k int, c text, s int static, ss set<int> static, v int, m map<text, int>, f frozen<list<int>>, si smallint, d date, '
         'PRIMARY KEY (k, c)',
    'ck': 'k bigint PRIMARY KEY, n counter',
    'large': 'k int PRIMARY KEY, v blob',
}
STATUS, LOAD, SCHEMA, DC, RACK, RELEASE, NET_VERSION, HOST_ID, TOKENS, STATUS_WITH_PORT = 0, 1, 2, 3, 4, 5, 11, 12, 13, 17


class Node:
    def __init__(self, ip, pid):
        self.ip, self.pid = ip, pid
        self.clients = {}

    def query(self, text, consistency=ONE):
        """The answer: (opcode, body)."""
        client = self.clients.get('it')
        if client is None:
            client = self.clients['it'] = Connection(self.ip, NATIVE_PORT)
        client.send_message(QUERY, long_string(text) + struct.pack('>H', consistency) + QUERY_TAIL[2:])
        return client.answer()

    def rows(self, text, consistency=ONE):
        opcode, body = self.query(text, consistency)
        assert opcode == 8, (text, body)
        return body

    def value(self, text, size=16):
        """The one value of an answer of one row."""
        return self.rows(text)[-size:]

    def serves(self):
        return self.query('SELECT key FROM system.local')[0] == 8

    def resident(self):
        status = pathlib.Path(f'/proc/{self.pid}/status').read_text()
        return int(re.search(r'VmRSS:\s+(\d+)', status)[1]) >> 10

    def said(self, text):
        return text.encode() in self.rows('SELECT message FROM system_views.system_logs')

    def counter(self, name):
        with urllib.request.urlopen(f'http://{self.ip}:{METRICS_PORT}/metrics', timeout=SECONDS) as page:
            text = page.read().decode()
        found = re.findall(rf'^cassandra_internode_{name.lower()}_total(?:{{[^}}]*}})? (\S+)$', text, re.MULTILINE)
        assert found, f'no counter {name}'
        return sum(float(n) for n in found)


def until(holds, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def changes(before, after, path=''):
    """What is another than it was: (where, what it was, what it is)."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            yield from changes(before.get(key), after.get(key), f'{path} {key}')
    elif isinstance(before, (list, tuple)) and isinstance(after, (list, tuple)) and len(before) == len(after):
        for n, (was, now) in enumerate(zip(before, after)):
            yield from changes(was, now, f'{path} {n}')
    elif before != after:
        yield path, before, after


class Run:
    def __init__(self, nodes, every, seeds):
        self.nodes, self.first, self.second = nodes, *nodes
        self.every, self.seeds = every, seeds
        self.cases, self.wrong, self.numbers, self.told = 0, [], itertools.count(1), set()
        self.ear = Ear(HERE)
        self.prepare()

    # what is done to whom

    def fail(self, what):
        self.wrong.append(what)
        print(f'wrong: {what}', flush=True)

    @contextlib.contextmanager
    def case(self, name, says=None, counts=None):
        """What happens within is told of by the first node, which serves afterwards, as does the other."""
        self.cases += 1
        before = self.first.counter(counts) if counts else 0
        if says and says not in self.told and self.first.said(says):
            self.fail(f'{name}: {says!r} was said before, by whatever it was')
        self.told.add(says)
        try:
            yield
        except (AssertionError, OSError, EOFError) as error:
            self.fail(f'{name}: {error!r}')
        if says and not until(lambda: self.first.said(says)):
            self.fail(f'{name}: it does not say {says!r}')
        if counts and not until(lambda: self.first.counter(counts) > before):
            self.fail(f'{name}: {counts} does not count it')
        for each in self.nodes:
            try:
                serves = each.serves()
            except (OSError, EOFError) as error:
                serves = False
                print(repr(error))
            if not serves:
                raise SystemExit(f'{name}: {each.ip} serves nobody after it')

    def peer(self, **options):
        return Peer(self.first.ip, HERE, **options)

    def answers(self, peer, messages, seconds=SECONDS):
        """Sends messages, each as (verb, payload, options): what answers each, by its place."""
        numbers = [next(self.numbers) for _ in messages]
        peer.say(*(message(n, verb, payload, **options) for n, (verb, payload, options) in zip(numbers, messages)))
        wanted = set(numbers)

        def found(heard):
            came = {number: (verb, payloads[-1]) for (number, verb), payloads in heard.items() if number in wanted}
            return came if len(came) == len(wanted) else None
        came = self.ear.wait(found, seconds) or {n: (v, p[-1]) for (n, v), p in self.ear.heard.items() if n in wanted}
        return [came.get(number, (None, b'')) for number in numbers]

    def echoes(self, peer):
        """Is it heard? A node that knows of very many strangers may need a second to find room for another one's answer."""
        return any(self.answers(peer, [(ECHO, b'', {})], 1.5)[0][0] == node.ECHO_RSP for _ in range(8))

    # what must stay as it is

    def gossip(self, of):
        """What a node says of all: a round that begins with nothing is answered with everything."""
        self.ear.forget()
        with Peer(of.ip, HERE, kind=URGENT) as peer:
            for _ in range(8):
                peer.say(message(next(self.numbers), node.SYN, node.syn(CLUSTER), flags=0))
                told = self.ear.wait(lambda heard: next((p[-1] for (_, verb), p in heard.items() if verb == node.ACK), None), 1.5)
                if told is not None:
                    break
        assert told is not None, f'{of.ip} does not answer a SYN'
        changing = {LOAD}
        return {who: (generation, {kind: value for kind, value in values.items() if kind not in changing})
                for who, (generation, values) in node.states(told).items()}

    def everything(self):
        schema = [each.rows('SELECT schema_version FROM system.local') for each in self.nodes]
        names = [each.rows('SELECT keyspace_name, table_name, id FROM system_schema.tables') for each in self.nodes]
        peers = [each.rows('SELECT * FROM system.peers_v2') for each in self.nodes]
        data = [self.first.rows(f'SELECT * FROM hostile.{table}', ALL) for table in TABLES if table != 'large']
        return dict(gossip=[self.gossip(each) for each in self.nodes], peers=peers, schema=schema, tables=names, data=data)

    def unchanged(self, after_what, but=()):
        """Is everything as it was? Who was told of may be known for a while."""
        self.cases += 1

        def differs():
            now = self.everything()
            return [part for part in now if part not in but and now[part] != self.before[part]]
        if not until(lambda: not differs(), FORGET_SECONDS):
            now = self.everything()
            for path, was, is_now in changes(self.before, now):
                self.fail(f'{after_what}: {path} was {was!r:.300} and is {is_now!r:.300}')
            self.before = now
        for each in self.nodes:
            resident = each.resident()
            if resident > self.resident[each.ip] + MEMORY_MAX:
                self.fail(f'{after_what}: {each.ip} had {self.resident[each.ip]} MiB and has {resident}')

    def prepare(self):
        assert until(lambda: all(n.value('SELECT count(*) FROM system.peers_v2', 8)[-1] == 1 for n in self.nodes)), 'no ring of two'
        for text in ("CREATE KEYSPACE hostile WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
                     *(f'CREATE TABLE hostile.{name} ({columns})' for name, columns in TABLES.items())):
            opcode, body = self.first.query(text)
            assert opcode == 8, (text, body)
        assert until(lambda: len({n.value('SELECT schema_version FROM system.local') for n in self.nodes}) == 1), 'two schemas'
        for k in range(5):
            for text in (f"INSERT INTO hostile.t (k, c, v, m) VALUES ({k}, 'new', {k}, {{'a': 1}})",
                         f'UPDATE hostile.ck SET n = n + 1 WHERE k = {k}'):
                opcode, body = self.second.query(text, ALL)
                assert opcode == 8, (text, body)
        where = "FROM system_schema.tables WHERE keyspace_name = 'hostile' AND table_name = "
        self.ids = {name: self.first.value(f"SELECT id {where}'{name}'").hex() for name in TABLES}
        self.hosts = [each.value('SELECT host_id FROM system.local').hex() for each in self.nodes]
        self.recorded = list(self.record())
        # what is whole among it does what it says, once
        with self.peer() as peer:
            for name, verb, payload in self.recorded:
                if verb in (node.MUTATION, node.READ_REPAIR, node.HINT, node.COMMIT, node.COUNTER, node.READ, node.RANGE, node.PREPARE):
                    came, said = self.answers(peer, [(verb, payload, {})])[0]
                    assert came not in (None, FAILURE), f'{name}: answered by {came}, {said!r}'
        self.settle()

    def settle(self):
        """From here on nothing changes by itself: both nodes know what there is."""
        time.sleep(1.5)
        self.before = self.everything()
        self.resident = {each.ip: each.resident() for each in self.nodes}

    def record(self):
        """(name, verb, payload): what a Cassandra sent, about tables of this ring."""
        def ours(text):
            for table, ids in RECORDED.items():
                for recorded in ids:
                    text = text.replace(recorded, self.ids[table])
            return bytes.fromhex(text.replace(RECORDED_HOST, self.hosts[0], 1) if text.startswith(RECORDED_HOST) else text)
        vectors = [line.split() for line in (ROOT / 'crates/internode/testdata/5.0.9.txt').read_text().splitlines()]
        replica = [line.split() for line in (ROOT / 'crates/cluster/testdata/replica-5.0.9.txt').read_text().splitlines()]

        def of(words, lines, last=-1):
            return next(line[last] for line in lines if line[:len(words)] == words)
        written = [line[1] for line in replica if line[:1] == ['mutation'] and RECORDED['t'][1] in line[1]]
        longest = sorted(written, key=len, reverse=True)
        counted = of(['counter'], vectors)
        mutation = of(['mutation'], vectors)
        for n, text in enumerate([mutation, *longest[:20:5]]):
            yield f'MUTATION {n}', node.MUTATION, ours(text)
        yield 'READ_REPAIR', node.READ_REPAIR, ours(longest[3])
        reads = [line[1] for line in replica if line[:1] == ['read'] and RECORDED['t'][1] in line[1]]
        for verb, kind in ((node.READ, '00'), (node.RANGE, '01')):
            some = sorted((text for text in reads if text.startswith(kind)), key=len, reverse=True)
            for n, text in enumerate(some[:20:10]):
                yield f'read {kind} {n}', verb, ours(text)
        yield 'HINT', node.HINT, self.hint(ours(mutation))
        yield 'COUNTER_MUTATION', node.COUNTER, ours(counted)
        yield 'BATCH_STORE', node.BATCH_STORE, ours(of(['batch'], vectors))
        prepare, proposal = (bytes.fromhex(of(['commit', kind], vectors)) for kind in ('prepare', 'proposal'))
        for name, verb, payload in (('PREPARE', node.PREPARE, prepare), ('PROPOSE', node.PROPOSE, proposal), ('COMMIT', node.COMMIT, proposal)):
            yield f'PAXOS_{name}', verb, payload[:16] + ours(payload[16:].hex())
        yield 'TRUNCATE', node.TRUNCATE, node.utf('hostile') + node.utf('t')

    def hint(self, mutation, host=0):
        body = struct.pack('>q', int(time.time() * 1000)) + uvint(864_000) + mutation
        return bytes.fromhex(self.hosts[host]) + uvint(len(body)) + body

    # the harm

    def handshakes(self):
        good = initiate(HERE)
        wide = b'\x12' + bytes(16) + struct.pack('>H', node.PORT)
        strange = 'not a Cassandra node'
        for name, data, says in (
            ('another protocol', b'GET / HTTP/1.1\r\nHost: x\r\n\r\n', strange),
            ('a client', bytes.fromhex('0400000001000000160001000b') + b'CQL_VERSION', strange),
            ('zeros', bytes(4096), strange),
            ('ones', b'\xff' * 4096, strange),
            ('TLS', bytes.fromhex('16030100c8010000c40303') + bytes(200), 'it speaks TLS'),
            ('another magic', initiate(HERE, magic=0xCA552DFB), strange),
            ('a version of before 4.0', initiate(HERE, low=10, high=11), 'from before Cassandra 4.0'),
            ('version 0', initiate(HERE, low=0, high=0), 'from before Cassandra 4.0'),
            ('a legacy version of before 4.0', initiate(HERE, legacy=3), 'from before Cassandra 4.0'),
            ('later versions', initiate(HERE, low=13, high=14), 'the peer speaks internode messaging 13 to 14'),
            ('versions upside down', initiate(HERE, low=14, high=12, legacy=12), 'messaging from 14 to 12'),
            ('a wrong checksum', initiate(HERE, crc=0), 'its handshake fails its checksum: 0x00000000 read'),
            ('a kind of connection that there is not', initiate(HERE, kind=0), 'invalid flags'),
            ('a framing that there is not', initiate(HERE, framing=3), 'invalid flags'),
            ('a stream in frames', initiate(HERE, kind=node.STREAMING), 'invalid flags'),
            ('an address of four bytes', initiate(HERE, at=b'\x04' + bytes(4)), 'invalid address'),
            ('an address of 255 bytes', initiate(HERE, at=b'\xff' + bytes(255)), 'invalid address'),
        ):
            with self.case(f'handshake, {name}', says, 'RefusedConnections'), self.peer(ready=False) as peer:
                with contextlib.suppress(ConnectionError):
                    peer.send(data)
                assert peer.is_closed(), 'it is open'
        for name, data in (('an address of zeros', initiate('0.0.0.0', at=wide)), ('to everybody', initiate('255.255.255.255')),
                           ('no port', initiate(HERE, at=node.address(HERE, 0))), ('all versions', initiate(HERE, low=0, high=255, legacy=12)),
                           ('itself', initiate(self.first.ip)), ('the other node', initiate(self.second.ip))):
            with self.case(f'in the name of {name}'), self.peer(ready=False) as peer:
                peer.send(data)
                assert len(node.receive(peer.socket, node.ACCEPT_BYTES)) == node.ACCEPT_BYTES
                peer.say(*(message(n, verb, payload) for n in range(1, 20) for _, verb, payload in self.recorded
                           if verb in (node.READ, node.PREPARE) or n == 1 and verb == node.RANGE))
                peer.say(*(message(n, ECHO) for n in range(1, 50)), message(50, node.SYN, node.syn(CLUSTER), flags=0))
        for length in range(len(good)):
            with self.case(f'handshake of {length} bytes'), self.peer(ready=False) as peer:
                peer.send(good[:length])
                peer.socket.shutdown(socket.SHUT_WR)
                assert peer.is_closed(), 'it is open'
        self.unchanged('handshakes')

    def slow(self):
        """A byte now and then, for longer than a handshake may take; and many who say nothing."""
        with self.case('slow handshake and idle connections', 'it did not complete the handshake in time', 'RefusedConnections'):
            slow, held = self.peer(ready=False), []
            for _ in range(IDLE):
                held.append(Peer(self.first.ip, ELSEWHERE, ready=False))
            assert until(lambda: self.first.said('256 connections to one shard already')), 'there are as many as one likes'
            with self.peer() as peer:
                assert self.echoes(peer), 'nobody else is heard'
            begun, data = time.monotonic(), initiate(HERE)
            for n in itertools.cycle(range(len(data) - 1)):
                try:
                    if n >= len(data) - 2 or slow.is_closed(0.25):
                        break
                    slow.send(data[n:n + 1])
                except ConnectionError:
                    break
            assert slow.is_closed(HANDSHAKE_SECONDS), 'a slow handshake is waited for'
            assert time.monotonic() - begun < HANDSHAKE_SECONDS, 'a slow handshake is waited for too long'
            assert all(peer.is_closed(HANDSHAKE_SECONDS) for peer in held), 'idle connections are open'
            for peer in [slow, *held]:
                peer.close()
        self.unchanged('idle connections')

    def frames(self):
        echo = message(1, ECHO)
        bounds, long = message(1, ECHO, length=1000), message(1, node.MUTATION, length=MAX_MESSAGE + 1)
        excess = message(1, node.MUTATION, length=200_000)
        for name, framing in node.FRAMINGS.items():
            part = dict(framing=framing, whole=False)
            cases = [
                ('a wrong checksum of a header', frame(framing, echo, header_crc=0), "a frame's header fails its checksum"),
                ('a message behind its frame', frame(framing, bounds), f'a message of {len(bounds) + 1000} bytes does not fit'),
                ('no message', frame(framing, b'\xff' * 100), 'malformed message'),
                ('the start of one alone', frame(framing, echo[:5]), 'malformed message'),
                ('one larger than allowed', frame(framing, long), 'larger than internode_max_message_size'),
                ('one larger than allowed, in parts', frame(payload=long + bytes(100_000), **part), 'larger than internode_max_message_size'),
                ('one of 2^63 bytes', frame(payload=message(1, node.MUTATION, length=1 << 63), **part), 'larger than internode_max_message_size'),
                ('more of a large one than it has', frame(payload=excess + bytes(100_000), **part) * 3, f'frames of a message of {len(excess) + 200_000} bytes'),
            ]
            if framing != node.UNPROTECTED:
                cases.append(('a damaged first part', frame(payload=excess, payload_crc=0, **part), "a large message's first frame fails its checksum"))
            if framing == LZ4:
                for what, block, claimed in (('more', lz4_bomb(1000), FRAME_MAX), ('less', lz4_bomb(FRAME_MAX), 10), ('all of it', b'\xff' * 500, FRAME_MAX),
                                             ('itself', b'', FRAME_MAX)):
                    cases.append((f'LZ4 that claims {what}', frame(framing, block, uncompressed=claimed), 'does not decompress to its length'))
            for what, data, says in cases:
                with self.case(f'{name} frames, {what}', says), self.peer(framing=framing) as peer:
                    with contextlib.suppress(ConnectionError):
                        peer.send(data)
                    assert peer.is_closed(), 'it is open'
            with self.case(f'{name} frames, nothing in them'), self.peer(framing=framing) as peer:
                peer.send(frame(framing, b'') * 1000)
                assert self.echoes(peer), 'what comes behind is not heard'
            with self.case(f'{name} frames, as large as can be'), self.peer(framing=framing) as peer:
                peer.send(frame(framing, (message(1, ECHO) * (FRAME_MAX // len(echo)))))
                assert self.echoes(peer), 'what comes behind is not heard'
            if framing != node.UNPROTECTED:
                with self.case(f'{name} frames, damaged', counts='CorruptFrames'), self.peer(framing=framing) as peer:
                    peer.send(frame(framing, echo, payload_crc=0))
                    assert self.echoes(peer), 'what comes behind is not heard'
            for cut in (1, 4, 5, 9, len(frame(framing, echo)) - 1):
                with self.case(f'{name} frames, the first {cut} bytes'), self.peer(framing=framing) as peer:
                    peer.send(frame(framing, echo)[:cut])
                    peer.socket.shutdown(socket.SHUT_WR)
                    assert peer.is_closed(), 'it is open'
            for seed in range(self.seeds):
                noise = random.Random(seed).randbytes(3000)
                with self.case(f'{name} frames, noise {seed}'), self.peer(framing=framing) as peer:
                    with contextlib.suppress(ConnectionError):
                        peer.send(frame(framing, noise) if seed % 2 else noise)
                    peer.is_closed(0.02)
        self.unchanged('frames')

    def never_ending(self):
        """Large messages of which no more comes: the room for them is another's soon, whoever they say they are of."""
        with self.case('large messages that never end', counts='ExpiredMessages'):
            head = message(1, node.MUTATION, length=100 << 20, expires=1500)
            before = self.first.counter('ExpiredMessages')
            held = [self.peer(kind=LARGE, called=self.second.ip) for _ in range(8)]
            for peer in held:
                peer.send(frame(CRC, head + bytes(1000), whole=False))
            opcode, body = self.second.query(f"INSERT INTO hostile.large (k, v) VALUES (1, 0x{'ab' * (1 << 20)})", ALL)
            assert opcode == 8, f'the other node is not heard: {body[:100]}'
            assert until(lambda: self.first.counter('ExpiredMessages') > before), 'they are waited for'
            for peer in held:
                peer.close()
        self.unchanged('large messages')

    def messages(self):
        longs = integer(0x7FFFFFFF), integer(-1), uvint((1 << 64) - 1), uvint(1 << 31), b'\xff' * 20
        with self.peer() as peer:
            for verb in (7, 13, 200, 1 << 31, (1 << 64) - 1):
                with self.case(f'verb {verb}', counts='ErrorMessages'):
                    number = next(self.numbers)
                    peer.say(message(number, verb, b'x'))
                    assert self.ear.wait(lambda heard: heard.get((number, FAILURE))), 'nobody is told that it failed'
            with self.case('a parameter that nobody knows'):
                assert self.answers(peer, [(ECHO, b'', dict(params=[(99, b'x' * 1000), (77, b'')]))])[0][0] == node.ECHO_RSP
            for what, params in (('a trace of no kind', [(node.TRACE_TYPE, b'\x09')]), ('an address of none', [(node.RESPOND_TO, b'\x06ab')]),
                                 ('2^63 to forward to', [(node.FORWARD_TO, uvint(1 << 63))]), ('half a session', [(5, b'1234567')])):
                with self.case(f'a parameter with {what}', counts='ErrorMessages'):
                    number = next(self.numbers)
                    peer.say(message(number, ECHO, params=params))
                    assert self.ear.wait(lambda heard: heard.get((number, FAILURE))), 'nobody is told that it failed'
            for what, created, expires in (('ten minutes ago', -600, 1), ('now, for no time', 0, 0)):
                with self.case(f'made {what}', counts='ExpiredMessages'):
                    answered = self.answers(peer, [(ECHO, b'', dict(created=time.time() + created, expires=expires))], 0.3)
                    assert answered[0][0] is None, 'it is answered'
            for what, created, expires in (('in ten minutes', 600, 1000), ('in a day', 86_400, 1000), ('a month ago', -30 * 86_400, 1000),
                                           ('for ever', 0, (1 << 64) - 1)):
                with self.case(f'made {what}'):
                    assert self.answers(peer, [(ECHO, b'', dict(created=time.time() + created, expires=expires))])[0][0] == node.ECHO_RSP
            with self.case('answers that nobody waits for', counts='UnaskedAnswers'):
                peer.say(*(message(n, verb, payload, flags=0) for n in range(64) for verb in range(60, 100) for payload in (b'', b'\xff' * 40)))
                assert self.echoes(peer)
            with self.case('a message that is to go to one node 10,000 times'):
                everyone = uvint(10_000) + b''.join(node.address(self.second.ip) + uvint(n) for n in range(10_000))
                before = self.second.counter('ReceivedMessages')
                assert self.answers(peer, [(node.MUTATION, self.recorded[0][2], dict(params=[(node.FORWARD_TO, everyone)]))])[0][0] == node.MUTATION_RSP
                assert self.second.counter('ReceivedMessages') < before + 1000, 'it goes there each time'
            with self.case('a message that is to go to 10,000 nodes'):
                everyone = uvint(10_000) + b''.join(node.address(f'127.99.{n >> 8}.{n & 255}', 9) + uvint(n) for n in range(10_000))
                assert self.answers(peer, [(node.MUTATION, self.recorded[0][2], dict(params=[(node.FORWARD_TO, everyone)]))])[0][0] == node.MUTATION_RSP
            for verb in sorted({verb for _, verb, _ in self.recorded} | {node.BATCH_REMOVE}):
                with self.case(f'verb {verb} with counts of what is not there'):
                    payloads = [prefix + long for long in longs for prefix in (b'', b'\0', bytes(16), b'\1' * 24, b'\0' * 40, self.some_head(verb))]
                    answered = self.answers(peer, [(verb, payload, {}) for payload in payloads])
                    wrong = [payload.hex() for payload, (came, _) in zip(payloads, answered) if came != FAILURE]
                    assert not wrong, f'not refused: {wrong[:3]}'
            for _, verb, payload in self.recorded:
                self.cuts(peer, verb, payload)
            self.noise(peer)
        self.unchanged('messages')

    def some_head(self, verb):
        return next((payload[:24] for _, of, payload in self.recorded if of == verb), b'')

    def cuts(self, peer, verb, payload):
        """Every beginning of a message is refused."""
        step = 1 if self.every else max(1, len(payload) // 40)
        lengths = [n for n in range(len(payload)) if n % step == 0 or n < 30]
        with self.case(f'beginnings of verb {verb}'):
            answered = self.answers(peer, [(verb, payload[:n], {}) for n in lengths])
            wrong = [n for n, (came, _) in zip(lengths, answered) if came != FAILURE]
            assert not wrong, f'the first {wrong[:5]} bytes of {payload.hex()} are not refused: {answered[lengths.index(wrong[0])]}'
            self.cases += len(lengths) - 1

    def noise(self, peer):
        """Bytes that are changed, of a seed: answered in some way or other."""
        for seed in range(self.seeds):
            draw, changed = random.Random(seed), []
            for _, verb, payload in self.recorded:
                # what such a message rightly does would be a change; those that only ask are changed as anything else may be
                if verb not in (node.READ, node.RANGE, node.PREPARE):
                    continue
                data = bytearray(payload)
                for _ in range(draw.randrange(1, 6)):
                    data[draw.randrange(len(data))] = draw.randrange(256)
                changed.append((verb, bytes(data), {}))
            for verb in (*range(0, 60), *range(100, 120)):
                if verb in (node.SYN, node.ACK, node.ACK2, node.SHUTDOWN):
                    continue
                changed.append((verb, draw.randbytes(draw.randrange(60)), {}))
            with self.case(f'noise {seed}'):
                self.answers(peer, changed, 0.2)
                assert self.echoes(peer), 'what comes behind is not heard'
                self.cases += len(changed) - 1

    def replays(self):
        """The same again: what is older than what there is changes nothing, nor does what was said by a node before its last start."""
        writes = (node.MUTATION, node.READ_REPAIR, node.COMMIT, node.HINT)
        said = [message(7, verb, payload) for _, verb, payload in self.recorded if verb in writes]
        with self.case('the same writes 200 times'), self.peer() as peer:
            for _ in range(200):
                peer.say(*said)
            assert self.echoes(peer)
        with self.case('the same reads 50 times'), self.peer() as peer:
            for _ in range(50):
                peer.say(*(message(7, verb, payload) for _, verb, payload in self.recorded if verb in (node.READ, node.RANGE, node.PREPARE)))
            assert self.echoes(peer)
        self.unchanged('replays')

    def of_strangers(self):
        """Mutations of what there is not, or may not be written from outside."""
        unknown, name = uuid.uuid4().bytes, self.recorded[0]
        first = name[2]
        at = first.index(bytes.fromhex(self.ids['t']))
        tables = dict(re.findall(r'(\w+) (\w{32})', ' '.join(self.known_tables())))
        with self.peer() as peer:
            for what, table in [('a table that there is not', unknown), *((name, bytes.fromhex(table)) for name, table in tables.items())]:
                with self.case(f'a write to {what}'):
                    payload = first[:at] + table + first[at + 16:]
                    hint = self.hint(payload)
                    answered = self.answers(peer, [(verb, payload, {}) for verb in (node.MUTATION, node.READ_REPAIR)] + [(node.HINT, hint, {})])
                    assert [came for came, _ in answered] == [FAILURE] * 3, answered
            with self.case('a write to a column that there is not'):
                column = first.index(b'\x02si')
                answered = self.answers(peer, [(node.MUTATION, first[:column] + b'\x02sx' + first[column + 3:], {})])
                assert answered[0][0] == FAILURE, answered
            with self.case('an end to tables of the node'):
                names = [('system', 'local'), ('system', 'peers_v2'), ('system_schema', 'tables'), ('system_views', 'clients'), ('hostile', 'none'),
                         ('none', 'none'), ('', ''), ('../..', '..')]
                answered = self.answers(peer, [(node.TRUNCATE, node.utf(ks) + node.utf(table), {}) for ks, table in names])
                assert {came for came, _ in answered} == {FAILURE}, answered
            with self.case('batches and hints of nonsense'):
                batch = uuid.uuid1().bytes + struct.pack('>q', 1) + uvint(3) + b'\x03abc' + b'\x00' + uvint(500) + b'\xff' * 500
                hints = [uuid.uuid4().bytes + uvint(30) + struct.pack('>q', 1) + b'\x01' + noise for noise in (b'\xff' * 21, bytes(21))]
                answered = self.answers(peer, [(node.BATCH_STORE, batch, {})] + [(node.HINT, hint, {}) for hint in hints])
                assert [came for came, _ in answered[1:]] == [FAILURE] * 2, answered
        self.unchanged('writes to what there is not')

    def known_tables(self):
        for keyspace, table in (('system', 'local'), ('system', 'peers_v2'), ('system', 'paxos'), ('system', 'batches'), ('system_schema', 'tables'),
                                ('system_schema', 'keyspaces'), ('system_schema', 'columns')):
            where = f"WHERE keyspace_name = '{keyspace}' AND table_name = '{table}'"
            yield f'{keyspace}_{table} {self.first.value("SELECT id FROM system_schema.tables " + where).hex()}'

    # the schema

    def schemas(self):
        """Schemas that make no sense, made of what the node itself says."""
        with self.peer() as peer:
            verb, told = self.answers(peer, [(node.SCHEMA_PULL, b'', {})])[0]
            assert verb == 88, verb
            told = Schema(told, 'hostile')
            for name, says, payload in told.nonsense(self.recorded[0][2]):
                with self.case(f'a schema with {name}', says):
                    peer.say(message(next(self.numbers), node.SCHEMA_PUSH, payload))
                    assert self.echoes(peer)
            whole = told.all
            step = 1 if self.every else max(1, len(whole) // 60)
            for length in range(0, len(whole), step):
                self.cases += 1
                peer.say(message(next(self.numbers), node.SCHEMA_PUSH, whole[:length]))
            with self.case('beginnings of a schema'):
                assert self.echoes(peer)
            for seed in range(self.seeds):
                draw, data = random.Random(seed), bytearray(whole)
                for _ in range(draw.randrange(1, 4)):
                    # not of its rows' values, which would be changes that make sense
                    data[draw.randrange(24)] = draw.randrange(256)
                with self.case(f'a schema with noise {seed}'):
                    peer.say(message(next(self.numbers), node.SCHEMA_PUSH, bytes(data)))
                    assert self.echoes(peer)
            with self.case('the same schema 20 times'):
                peer.say(*(message(next(self.numbers), node.SCHEMA_PUSH, whole) for _ in range(20)))
                assert self.echoes(peer)
        self.unchanged('schemas')

    # who is in the ring

    def membership(self):
        now = int(time.time())
        known = self.before['gossip'][0]
        (first, first_says), (second, second_says) = ((each.ip, known[each.ip]) for each in self.nodes)
        stranger = '127.0.0.77'

        def normal(tokens, host, generation=now, status='NORMAL,1'):
            values = [(RELEASE, '5.0.9'), (DC, 'datacenter1'), (RACK, 'rack1'), (NET_VERSION, '12'), (STATUS_WITH_PORT, status),
                      (TOKENS, node.tokens(tokens))]
            return node.state(generation, 9, values + ([(HOST_ID, host)] if host is not None else []))
        left = [(STATUS_WITH_PORT, f'LEFT,1,{(now + 86_400 * 365) * 1000}'), (HOST_ID, str(uuid.uuid4()))]
        taken = [node.owned(says[1][TOKENS]) for says in (first_says, second_says)]
        hosts = [says[1][HOST_ID] for says in (first_says, second_says)]
        syns = [
            ('another cluster', node.syn('another', digests=[(stranger, now, 5)]), 'its cluster is "another", this node\'s is "peer"'),
            ('a cluster without name', node.syn(''), 'its cluster is "", this node\'s is "peer"'),
            ('a cluster of a long name', node.syn('x' * 60_000), f'its cluster is "{"x" * 48}", this node'),
            ('another partitioner', node.syn(CLUSTER, 'org.apache.cassandra.dht.RandomPartitioner'), 'its partitioner is "org.apache.cassandra.dht.Ran'),
            ('2^31 digests', node.syn(CLUSTER)[:-4] + integer(0x7FFFFFFF), 'malformed GOSSIP_DIGEST_SYN from'),
            ('-1 digests', node.syn(CLUSTER)[:-4] + integer(-1), 'malformed GOSSIP_DIGEST_SYN from'),
        ]
        told = [
            ('a node that starts in a year', [('127.0.0.101', node.state(now + 400 * 86_400, 5, left[1:]))], 'it gives /127.0.0.101:7000 the generation'),
            ('a node of the ring that starts in a year', [(second, node.state(now + 400 * 86_400, 5, left))], f'it gives /{second}:7000 the generation'),
            ('a node of the ring that left before its start', [(second, node.state(second_says[0] - 1000, 99_999, left))], None),
            ('a node of the ring as it was at the beginning of time', [(second, node.state(-0x80000000, 0x7FFFFFFF, left))], None),
            ('what the node says itself', [(first, node.state(first_says[0] + 100, 5, left))], None),
            ('tokens of this node', [('127.0.0.102', normal(taken[0], str(uuid.uuid4()), 2))], 'tokens of this node: this node keeps'),
            ('tokens of the other', [('127.0.0.103', normal(taken[1], str(uuid.uuid4()), 3))], 'both claim 16 tokens'),
            ('the host id of this node', [('127.0.0.104', normal([1, 2], hosts[0], 4))], 'it has the host ID of this node'),
            ('the host id of the other', [('127.0.0.105', normal([1, 2], hosts[1], -0x80000000))], 'has the same host ID'),
            ('no host id', [('127.0.0.106', normal([1, 2], None, 5))], None),
            ('a host id that is none', [('127.0.0.107', normal([1, 2], 'me', 6))], None),
            ('no tokens', [('127.0.0.108', normal([], str(uuid.uuid4()), 7))], None),
            ('tokens that are none', [('127.0.0.109', node.state(8, 9, [(STATUS_WITH_PORT, 'NORMAL,1'), (HOST_ID, str(uuid.uuid4())), (TOKENS, 'x' * 60_000)]))], None),
            ('1,000 nodes that say much', [(f'10.1.{n >> 8}.{n & 255}', node.state(9, 9, [(k, 'x' * 4000) for k in (3, 4, 5)])) for n in range(1000)], None),
        ]
        if self.every:
            # a ring that has heard of so many is slow for seconds
            told.append(('20,000 nodes', [(f'10.0.{n >> 8}.{n & 255}', node.state(9, 9, [(RACK, 'r')])) for n in range(20_000)], 'gossip would exceed its limit of memory'))
        raw = [
            ('states of 2^31 nodes', node.ACK2, integer(0x7FFFFFFF), 'malformed GOSSIP_DIGEST_ACK2 from'),
            ('a state of 2^31 values', node.ACK2, node.ack2([(stranger, struct.pack('>iii', 1, 1, 0x7FFFFFFF))]), 'malformed GOSSIP_DIGEST_ACK2 from'),
            ('a value of no kind', node.ACK2, node.ack2([(stranger, node.state(1, 1, [(99, 'x')]))]), 'malformed GOSSIP_DIGEST_ACK2 from'),
            ('a value that is no text', node.ACK2, node.ack2([(stranger, node.state(1, 1, [(3, b'\xff\xfe\xc3')]))]), 'malformed GOSSIP_DIGEST_ACK2 from'),
            ('an ACK that is cut', node.ACK, integer(1) + node.address(stranger), 'malformed GOSSIP_DIGEST_ACK from'),
            ('100 MB', node.ACK2, bytes(100_000_000), 'its 1000000'),
            ('a SYN of one node a million times', node.SYN, node.syn(CLUSTER, digests=[(second, 1, 1)]).replace(integer(1), integer(1_000_000), 1)[:-15]
             + (node.address(second) + struct.pack('>ii', 1, 1)) * 1_000_000, 'impossible length 1000000'),
        ]
        with self.peer(kind=URGENT) as peer:
            for name, payload, says in syns:
                with self.case(f'gossip of {name}', says):
                    self.ear.forget()
                    peer.say(message(next(self.numbers), node.SYN, payload, flags=0))
                    assert self.echoes(peer)
                    assert not any(verb == node.ACK for _, verb in self.ear.heard), 'it is answered'
            self.unchanged('gossip of others')
            for name, nodes, says in told:
                with self.case(f'gossip of {name}', says):
                    peer.say(message(next(self.numbers), node.ACK2, node.ack2(nodes), flags=0),
                             message(next(self.numbers), node.ACK, integer(0) + node.ack2(nodes), flags=0))
                    assert self.echoes(peer)
            with self.case('a shutdown from before the start'):
                with self.peer(kind=URGENT, called=second) as other:
                    other.say(message(1, node.SHUTDOWN, flags=0, created=second_says[0] - 60))
                    peer.say(message(1, node.SHUTDOWN, flags=0))
                    assert self.echoes(peer)
        self.unchanged('gossip')
        for name, verb, payload, says in raw:
            with self.case(f'gossip of {name}', says), self.peer(kind=LARGE if len(payload) > FRAME_MAX else URGENT) as peer:
                peer.say(message(next(self.numbers), verb, payload, flags=0))
                assert self.echoes(peer)
        for seed in range(self.seeds):
            with self.case(f'gossip, noise {seed}'), self.peer(kind=URGENT) as peer:
                draw = random.Random(seed)
                peer.say(*(message(n, verb, draw.randbytes(draw.randrange(80)), flags=0) for n in range(20) for verb in (node.SYN, node.ACK, node.ACK2)))
                assert self.echoes(peer)
        self.unchanged('malformed gossip')

    # a replica that answers whatever it likes

    def replica(self):
        """It comes last: a ring does not forget a member."""
        for text in ("CREATE KEYSPACE liars WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}",
                     'CREATE TABLE liars.t (k int, c int, v text, PRIMARY KEY (k, c))', 'CREATE TABLE liars.n (k int PRIMARY KEY, n counter)'):
            opcode, body = self.first.query(text)
            assert opcode == 8, (text, body)
        assert until(lambda: len({n.value('SELECT schema_version FROM system.local') for n in self.nodes}) == 1), 'two schemas'
        # on both, as one that had no such table yet may be the one that is asked
        for k, c in itertools.product(range(3), repeat=2):
            opcode, body = self.first.query(f"INSERT INTO liars.t (k, c, v) VALUES ({k}, {c}, 'right')", TWO)
            assert opcode == 8, body
        right = self.first.rows('SELECT * FROM liars.t')
        liar = Liar(self)
        assert until(liar.is_member, 30), 'it is no member'
        statements = {
            'a read': 'SELECT * FROM liars.t WHERE k = 1',
            'a read of all': 'SELECT * FROM liars.t',
            'a write': "INSERT INTO liars.t (k, c, v) VALUES (1, 1, 'right')",
            'a condition': "INSERT INTO liars.t (k, c, v) VALUES (1, 1, 'right') IF NOT EXISTS",
            'an addition': 'UPDATE liars.n SET n = n + 1 WHERE k = 1',
            'a batch': "BEGIN BATCH INSERT INTO liars.t (k, c, v) VALUES (2, 2, 'right') INSERT INTO liars.t (k, c, v) VALUES (0, 0, 'right') APPLY BATCH",
        }
        said = {}
        with self.case('a replica that answers as a replica does'):
            for what, text in statements.items():
                opcode, said[what] = self.first.query(text, ALL)
                assert opcode == 8, f'{what}: {said[what]}'
        draw = random.Random(1)
        for name, lie in liar.lies(draw, self.seeds, self.every):
            liar.lie = lie
            for what, text in statements.items():
                with self.case(f'a replica that answers {what} by {name}'):
                    opcode, body = self.first.query(text, ALL)
                    code = struct.unpack('>I', body[:4])[0] if opcode == 0 else None
                    assert opcode == 8 or code in LACKS, f'{code:04x}: {body}'
                    assert opcode != 8 or 'read' not in what or body == said[what], f'other rows: {body}'
        liar.lie = None
        with self.case('the replicas that do not lie'):
            for each in self.nodes:
                rows = each.rows('SELECT * FROM liars.t')
                assert rows == right, f'{each.ip} has other rows: {rows}, and had {right}'
        for each in self.nodes:
            if each.resident() > self.resident[each.ip] + MEMORY_MAX:
                self.fail(f'lies: {each.ip} had {self.resident[each.ip]} MiB and has {each.resident()}')

    def all(self, only):
        parts = (self.handshakes, self.slow, self.frames, self.never_ending, self.messages, self.replays, self.of_strangers, self.schemas,
                 self.membership, self.replica)
        for part in (part for part in parts if only in (None, part.__name__)):
            started = time.monotonic()
            part()
            print(f'{part.__name__}: {time.monotonic() - started:.1f} s; {", ".join(str(each.resident()) for each in self.nodes)} MiB', flush=True)


class Liar:
    """A member of the ring that relays what it is asked to a real one, and answers what `lie` makes of the answer."""

    def __init__(self, run):
        self.run, self.lie, self.version = run, None, 10
        self.generation, self.host = int(time.time()), str(uuid.uuid4())
        self.peers = {each.ip: Peer(each.ip, HERE, kind=SMALL) for each in run.nodes}
        self.large = {each.ip: Peer(each.ip, HERE, kind=LARGE) for each in run.nodes}
        self.relay = Ear(RELAY)
        self.relayed = Peer(run.first.ip, RELAY, kind=SMALL)
        self.lock = threading.Lock()
        # gossip says versions as text
        self.schema = str(uuid.UUID(bytes=run.first.value('SELECT schema_version FROM system.local')))
        run.ear.hook = self.hear
        threading.Thread(target=self.live, daemon=True).start()

    def live(self):
        while True:
            self.version += 1
            owned = [-9_000_000_000_000_000_000 + n * 1_000_000_007 for n in range(4)]
            values = [(RELEASE, '5.0.9'), (DC, 'datacenter1'), (RACK, 'rack1'), (NET_VERSION, '12'), (STATUS_WITH_PORT, f'NORMAL,{owned[0]}'),
                      (TOKENS, node.tokens(owned)), (HOST_ID, self.host), (SCHEMA, self.schema)]
            told = node.ack2([(HERE, node.state(self.generation, self.version, values))])
            for ip in self.peers:
                self.tell(ip, message(next(self.run.numbers), node.ACK2, told, flags=0))
            time.sleep(0.5)

    def tell(self, ip, *messages):
        with self.lock:
            long = any(len(one) > FRAME_MAX for one in messages)
            try:
                (self.large if long else self.peers)[ip].say(*messages)
            except OSError:
                # whoever hears too much of it may hang up
                (self.large if long else self.peers)[ip] = Peer(ip, HERE, kind=LARGE if long else SMALL)

    def is_member(self):
        """Is it written to?"""
        self.run.ear.forget()
        self.run.first.query("INSERT INTO liars.t (k, c, v) VALUES (0, 0, 'right')")
        return self.run.ear.wait(lambda heard: next((True for _, verb in heard if verb == node.MUTATION), None), 0.5)

    def hear(self, who, number, verb, payload):
        if verb == ECHO:
            return self.tell(who, message(number, node.ECHO_RSP, flags=0))
        if verb not in node.ANSWERS or who not in self.peers:
            return None
        n = next(self.run.numbers)
        # what asks changes nothing; what would change something is answered as if it had
        relayed = verb in (node.READ, node.RANGE, node.PREPARE, node.PROPOSE)
        answer = b''
        if relayed:
            self.relayed.say(message(n, verb, payload))
            answer = self.relay.wait(lambda heard: next((p[-1] for (m, _), p in heard.items() if m == n), None), 2) or b''
        right = message(number, node.ANSWERS[verb], answer, flags=0)
        return self.tell(who, *(self.lie(number, verb, answer) if self.lie else [right]))

    @staticmethod
    def lies(draw, seeds, every):
        """(name, what is said instead of an answer)"""
        def says(payload):
            return lambda number, verb, _: [message(number, node.ANSWERS[verb], payload, flags=0)]
        yield 'nothing', says(b'')
        for name, payload in (('ones', b'\xff' * 50), ('zeros', bytes(50)), ('a length of 2^31 - 1', b'\x00' * 3 + integer(0x7FFFFFFF) * 4),
                              ('a count of 2^64 - 1', b'\x01' + uvint((1 << 64) - 1) * 8), ('a megabyte', b'\x00\x01' * (1 << 19))):
            yield name, says(payload)
        for name, payload in (('a failure of no reason', b''), ('a failure of reason 2^64 - 1', uvint((1 << 64) - 1)), ('a failure with much behind', bytes(1000))):
            yield name, lambda number, verb, _, p=payload: [message(number, FAILURE, p, flags=0)]
        yield 'the answer to something else', lambda number, verb, _: [message(number, node.ECHO_RSP if verb != ECHO else node.READ_RSP, flags=0)]
        yield 'the same 200 times', lambda number, verb, answer: [message(number, node.ANSWERS[verb], answer, flags=0)] * 200
        yield 'a request', lambda number, verb, answer: [message(number, verb, answer)]
        parts = 40 if every else 8
        for part in range(parts):
            def cut(number, verb, answer, part=part):
                return [message(number, node.ANSWERS[verb], answer[:len(answer) * part // parts], flags=0)]
            yield f'{part} of {parts} parts of its answer', cut
        for _ in range(seeds):
            yield 'noise', says(draw.randbytes(draw.randrange(1, 200)))


class Schema:
    """What SCHEMA_PULL answers, taken apart: updates of one keyspace by the table of system_schema that they are of."""

    def __init__(self, told, keyspace):
        self.all, self.keyspace = told, keyspace.encode()
        ids = {}
        # an update begins with its table's id and the keyspace's name
        for found in re.finditer(b'(.{16})' + bytes([len(self.keyspace)]) + self.keyspace, told, re.DOTALL):
            ids[found.start()] = found[1]
        self.at = sorted(ids)
        ends = [*self.at[1:], None]
        self.updates = {ids[begin]: told[begin:end] for begin, end in zip(self.at, ends)}
        self.end()

    def end(self):
        """The last update of the keyspace ends where the mutation of the next keyspace begins, or everything."""
        last = list(self.updates)[-1]
        update = self.updates[last]
        following = re.search(rb'[\x01-\x0a](?:' + b'|'.join(re.escape(table) for table in self.updates) + rb').\w', update[1:], re.DOTALL)
        if following:
            self.updates[last] = update[:following.start() + 1]

    @staticmethod
    def push(*updates):
        return integer(1) + uvint(len(updates)) + b''.join(updates)

    def newer(self, update):
        """The same, written a thousand seconds later: its rows win over those that there are."""
        at = 16 + 1 + len(self.keyspace) + 1
        cursor = node.Cursor(update[at:])
        least = cursor.uvint()
        return update[:at] + uvint(least + 1_000_000_000) + update[at + cursor.at:]

    def having(self, text):
        return next(update for update in self.updates.values() if text in update)

    def nonsense(self, mutation):
        """(name, what is said of it, payload)"""
        columns = self.having(b'partition_key')
        strategy = b'org.apache.cassandra.locator.SimpleStrategy'
        keyspaces = self.having(strategy)
        yield 'no bytes', f'schema change from /{HERE}:{node.PORT}; compare schema versions with nodetool describecluster: 4 more bytes expected, 0 left', b''
        yield '2^31 mutations', f'schema change from /{HERE}:{node.PORT}; compare schema versions with nodetool describecluster: impossible length 2147483647', integer(0x7FFFFFFF)
        yield 'a mutation of a table that it does not describe', 'describes no schema', integer(1) + mutation
        renamed = [update.replace(bytes([len(self.keyspace)]) + self.keyspace, b'\x07../../x', 1) for update in self.updates.values()]
        yield 'a keyspace that is a path', 'characters only (got "../../x")', self.push(*renamed)
        for text in (b'system', b'system_schema'):
            own = [update.replace(bytes([len(self.keyspace)]) + self.keyspace, bytes([len(text)]) + text, 1) for update in (keyspaces,)]
            yield f'keyspace {text.decode()}', 'is local to each node', self.push(*own)
        everything = [self.newer(update) for update in self.updates.values()]
        paths = [update.replace(b'\x00\x05large', b'\x00\x05l/../') for update in everything]
        yield 'a table that is a path', 'names no table', self.push(*paths)
        deep = b'tuple<' * NESTED + b'int' + b'>' * NESTED
        yield 'a type that is nested 20,000 deep', 'nested more than 64 deep', self.push(self.newer(columns.replace(b'\x08smallint', uvint(len(deep)) + deep)))
        yield 'a type that there is not', 'Unknown type smallest', self.push(self.newer(columns.replace(b'\x08smallint', b'\x08smallest')))
        yield 'a table without a key', 'column kind of system_schema.columns is missing or malformed', self.push(self.newer(columns.replace(b'\x0dpartition_key', b'\x0dpartitionxkey')))
        yield 'a key of another kind', 'Clustering columns of different length', self.push(self.newer(columns.replace(b'\x0aclustering', b'\x07regular')))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('nodes', nargs=4)
    parser.add_argument('--seeds', type=int, default=8)
    parser.add_argument('--only')
    parser.add_argument('--all', action='store_true')
    args = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, IDLE + 1000), hard))
    ips, pids = args.nodes[::2], [int(pid) for pid in args.nodes[1::2]]
    run = Run([Node(ip, pid) for ip, pid in zip(ips, pids)], args.all, args.seeds)
    before = dict(run.resident)
    run.all(args.only)
    after = {each.ip: each.resident() for each in run.nodes}
    memory = '; '.join(f'{ip} {before[ip]} MiB before, {after[ip]} MiB after' for ip in ips)
    print(f'{run.cases} cases of peers, {len(run.wrong)} wrong; resident {memory}')
    return 1 if run.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
