"""Just enough of what nodes say to each other (messaging 12) to get every part of it wrong.

A connection begins with `initiate`, which is answered by 12 bytes; then messages go one way, in the frames of the native protocol's
version 5. Answers come over a connection that the other side opens: `Ear` listens for them.
"""

import os
import socket
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

from wire import Reader, crc24, crc32  # noqa: E402
from wrong import SECONDS, integer, segment  # noqa: E402

PORT = 7000
MAGIC = 0xCA552DFA
URGENT, SMALL, LARGE = 1, 2, 3
STREAMING = 8
UNPROTECTED, LZ4, CRC = 0, 1, 2
FRAMINGS = {'unprotected': UNPROTECTED, 'lz4': LZ4, 'crc': CRC}
ACCEPT_BYTES = 12
FRAME_MAX = (1 << 17) - 1
CALL_BACK_ON_FAILURE = 1

MUTATION, HINT, READ_REPAIR, READ, BATCH_STORE, BATCH_REMOVE, RANGE = 0, 1, 2, 3, 5, 6, 9
SYN, ACK, ACK2, SCHEMA_PUSH, TRUNCATE, SCHEMA_VERSION, COUNTER = 14, 15, 16, 18, 19, 20, 24
SCHEMA_PULL, SHUTDOWN, ECHO, PREPARE, PROPOSE, COMMIT, PING = 28, 29, 31, 33, 34, 35, 37
MUTATION_RSP, READ_RSP, ECHO_RSP, FAILURE = 60, 63, 91, 99
# What answers a request.
ANSWERS = {MUTATION: 60, HINT: 61, READ_REPAIR: 62, READ: 63, BATCH_STORE: 65, BATCH_REMOVE: 66, RANGE: 69, TRUNCATE: 79, COUNTER: 84, ECHO: 91,
           PREPARE: 93, PROPOSE: 94, COMMIT: 95}
FORWARD_TO, RESPOND_TO, TRACE_TYPE = 0, 1, 6


def uvint(n):
    """An unsigned number: as many ones as bytes follow, a zero, the number."""
    more = max(0, (n.bit_length() - 1) // 7)
    if more >= 8:
        return b'\xff' + struct.pack('>Q', n)
    data = bytearray(n.to_bytes(more + 1, 'big'))
    data[0] |= 0xFF00 >> more & 0xFF
    return bytes(data)


def utf(text):
    """Java's modified UTF-8 behind a length; characters are bytes where they come from latin-1."""
    data = text.encode().replace(b'\0', b'\xc0\x80') if isinstance(text, str) else text
    return struct.pack('>H', len(data)) + data


def address(ip, port=PORT):
    return b'\x06' + socket.inet_aton(ip) + struct.pack('>H', port)


def initiate(ip, kind=SMALL, framing=CRC, low=12, high=12, legacy=None, magic=MAGIC, crc=None, at=None, flags=0):
    legacy = low if legacy is None else legacy
    flags |= kind | (framing & 1) << 2 | (framing >> 1) << 4 | legacy << 8 | low << 16 | high << 24
    head = struct.pack('>II', magic, flags) + (address(ip) if at is None else at)
    return head + struct.pack('>I', crc32(head) if crc is None else crc)


def frame(framing, payload, whole=True, uncompressed=0, **wrong):
    """A frame: of whole messages, or of a part of a large one."""
    if framing == LZ4:
        return segment(payload, whole, uncompressed=uncompressed, **wrong)
    data = segment(payload, whole, **wrong)
    return data if framing == CRC else data[:-4]


def message(number, verb, payload=b'', flags=CALL_BACK_ON_FAILURE, expires=10_000, created=None, params=(), length=None):
    created = time.time() if created is None else created
    head = uvint(number) + struct.pack('>I', int(created * 1000) & 0xFFFFFFFF) + uvint(expires) + uvint(verb) + uvint(flags)
    head += uvint(len(params)) + b''.join(uvint(kind) + uvint(len(value)) + value for kind, value in params)
    return head + uvint(len(payload) if length is None else length) + payload


class Cursor(Reader):
    def take(self, n):
        taken = self.data[self.at:self.at + n]
        if len(taken) < n:
            raise EOFError
        self.at += n
        return taken

    def number(self, form):
        return struct.unpack('>' + form, self.take(struct.calcsize(form)))[0]

    def uvint(self):
        first = self.take(1)[0]
        more = next((n for n in range(8) if not first & 0x80 >> n), 8)
        value = first & 0xFF >> more + 1 if more < 8 else 0
        return int.from_bytes(bytes([value]) + self.take(more), 'big')

    def vbytes(self):
        return self.take(self.uvint())

    def utf(self):
        return self.take(self.number('H')).replace(b'\xc0\x80', b'\0').decode()

    def address(self):
        data = self.take(self.take(1)[0])
        return socket.inet_ntop(socket.AF_INET if len(data) == 6 else socket.AF_INET6, data[:-2])

    def message(self):
        """(id, verb, payload)"""
        number, _, _, verb, _ = self.uvint(), self.take(4), self.uvint(), self.uvint(), self.uvint()
        for _ in range(self.uvint()):
            self.uvint()
            self.vbytes()
        return number, verb, self.vbytes()


def receive(connection, count):
    data = b''
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class Peer:
    """A connection to a node's storage port, from an address and in the name of one."""

    def __init__(self, host, ip, kind=SMALL, framing=CRC, ready=True, called=None):
        self.framing = framing
        self.socket = socket.create_connection((host, PORT), SECONDS, source_address=(ip, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ready:
            self.socket.sendall(initiate(called or ip, kind, framing))
            receive(self.socket, ACCEPT_BYTES)

    def send(self, data):
        self.socket.sendall(data)

    def say(self, *messages):
        """Messages, in as many frames as they need; a large one in parts."""
        held = b''
        for one in messages:
            if held and len(held) + len(one) > FRAME_MAX:
                self.send(frame(self.framing, held))
                held = b''
            if len(one) > FRAME_MAX:
                for at in range(0, len(one), FRAME_MAX):
                    self.send(frame(self.framing, one[at:at + FRAME_MAX], whole=False))
            else:
                held += one
        if held:
            self.send(frame(self.framing, held))

    def is_closed(self, seconds=SECONDS):
        """Does the other side end it? What it says before is passed over."""
        deadline = time.monotonic() + seconds
        try:
            while True:
                self.socket.settimeout(max(0.001, deadline - time.monotonic()))
                if not self.socket.recv(4096):
                    return True
        except TimeoutError:
            return False
        except ConnectionError:
            return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Ear:
    """Listens where a node may be, says what a node says, and keeps what it is told by id."""

    def __init__(self, ip):
        self.heard, self.news = {}, threading.Condition()
        # What else is done with a message: called with who sent it, its number, verb and payload.
        self.hook = None
        self.socket = socket.create_server((ip, PORT), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection):
        try:
            head = receive(connection, 9)
            who = socket.inet_ntoa(receive(connection, head[8] + 4)[:4])
            answer = struct.pack('>II', 12, 12)
            connection.sendall(answer + struct.pack('>I', crc32(answer)))
            part = b''
            while True:
                prefix = receive(connection, 6)
                assert crc24(prefix[:3]) == int.from_bytes(prefix[3:], 'little'), prefix
                lengths = int.from_bytes(prefix[:3], 'little')
                payload = receive(connection, lengths & FRAME_MAX)
                receive(connection, 4)
                if lengths >> 17 & 1:
                    self._take(who, payload)
                else:
                    part += payload
                    part = b'' if self._take(who, part) else part
        except (EOFError, ConnectionError):
            connection.close()

    def _take(self, who, data):
        cursor = Cursor(data)
        try:
            while cursor.at < len(data):
                number, verb, payload = cursor.message()
                with self.news:
                    self.heard.setdefault((number, verb), []).append(payload)
                    self.news.notify_all()
                if self.hook:
                    self.hook(who, number, verb, payload)
        except EOFError:
            return False
        return True

    def forget(self):
        with self.news:
            self.heard.clear()

    def wait(self, found, seconds=SECONDS):
        """What `found` makes of what was heard, as soon as that is something; None after so long."""
        with self.news:
            self.news.wait_for(lambda: found(self.heard) is not None, seconds)
            return found(self.heard)


def states(payload):
    """What an ACK says of nodes: address -> (generation, {kind: value})."""
    cursor = Cursor(payload)
    for _ in range(cursor.number('i')):
        cursor.address()
        cursor.take(8)
    known = {}
    for _ in range(cursor.number('i')):
        node, generation, _ = cursor.address(), cursor.number('i'), cursor.number('i')
        values = {}
        for _ in range(cursor.number('i')):
            kind = cursor.number('i')
            values[kind] = cursor.utf()
            cursor.number('i')
        known[node] = (generation, values)
    return known


def syn(cluster, partitioner='org.apache.cassandra.dht.Murmur3Partitioner', digests=()):
    listed = b''.join(address(node) + struct.pack('>ii', generation, version) for node, generation, version in digests)
    return utf(cluster) + utf(partitioner) + integer(len(digests)) + listed


def state(generation, version, values):
    data = struct.pack('>iii', generation, version, len(values))
    return data + b''.join(integer(kind) + utf(value) + integer(version) for kind, value in values)


def ack2(nodes):
    return integer(len(nodes)) + b''.join(address(node) + told for node, told in nodes)


def tokens(owned):
    """TOKENS: bytes that are characters."""
    data = b''.join(struct.pack('>iq', 8, token) for token in owned) + integer(0)
    return data.decode('latin-1')


def owned(text):
    data = text.encode('latin-1')
    return [struct.unpack('>q', data[at + 4:at + 12])[0] for at in range(0, len(data) - 4, 12)]
