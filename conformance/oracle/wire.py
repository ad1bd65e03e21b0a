"""A small client of the native protocol (v3, v4, v5) that keeps every byte it is given.

Ordinary drivers interpret, retry and hide; this one sends exactly what it is told and returns what came back: raw cells,
metadata, warnings, error codes with their extra fields. Nothing but the standard library.
"""

import socket
import struct
import zlib

VOID, ROWS, SET_KEYSPACE, PREPARED, SCHEMA_CHANGE = 1, 2, 3, 4, 5
ERROR, STARTUP, READY, AUTHENTICATE, OPTIONS, SUPPORTED, QUERY, RESULT, PREPARE, EXECUTE, REGISTER, EVENT, BATCH = (
    0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13)
AUTH_RESPONSE, AUTH_SUCCESS = 15, 16

CONSISTENCY = dict(ANY=0, ONE=1, TWO=2, THREE=3, QUORUM=4, ALL=5, LOCAL_QUORUM=6, EACH_QUORUM=7, SERIAL=8,
                   LOCAL_SERIAL=9, LOCAL_ONE=10, NODE_LOCAL=11)
SIMPLE_TYPES = {1: 'ascii', 2: 'bigint', 3: 'blob', 4: 'boolean', 5: 'counter', 6: 'decimal', 7: 'double', 8: 'float',
                9: 'int', 0xA: 'text', 0xB: 'timestamp', 0xC: 'uuid', 0xD: 'varchar', 0xE: 'varint', 0xF: 'timeuuid',
                0x10: 'inet', 0x11: 'date', 0x12: 'time', 0x13: 'smallint', 0x14: 'tinyint', 0x15: 'duration'}

UNSET = object()  # a bound value that is "not set" (length -2), as opposed to None (null, length -1)
MAX_SELF_CONTAINED = 128 * 1024 - 1


class Closed(Exception):
    """The server closed the connection."""


def _crc24_table():
    table = []
    for byte in range(256):
        crc = byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
        table.append(crc & 0xFFFFFF)
    return table


_CRC24 = _crc24_table()


def crc24(data):
    """CRC-24 of a frame's header, as protocol v5 (and internode messaging) defines it."""
    crc = 0x875060
    for byte in data:
        crc = ((crc << 8) & 0xFFFFFF) ^ _CRC24[((crc >> 16) ^ byte) & 0xFF]
    return crc


def crc32(data):
    """CRC-32 primed with the four bytes that v5 asks for."""
    return zlib.crc32(data, zlib.crc32(b'\xfa\x2d\x55\xca')) & 0xFFFFFFFF


def string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack('>H', len(raw)) + raw


def long_string(text):
    raw = text if isinstance(text, bytes) else text.encode()
    return struct.pack('>i', len(raw)) + raw


def value(v):
    if v is None:
        return b'\xff\xff\xff\xff'
    if v is UNSET:
        return b'\xff\xff\xff\xfe'
    return struct.pack('>i', len(v)) + v


class Reader:
    """Cursor over a message body."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, n):
        if n < 0 or self.at + n > len(self.data):
            raise ValueError(f'a body of {len(self.data)} bytes ends at {self.at} within a field of {n}')
        piece = self.data[self.at:self.at + n]
        self.at += n
        return piece

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack('>H', self.take(2))[0]

    def i32(self):
        return struct.unpack('>i', self.take(4))[0]

    def string(self):
        return self.take(self.u16()).decode()

    def narrow_string(self):
        """A name as Cassandra can say it in a change of the schema: a byte a UTF-16 unit, `?` for what does not fit into one.
        What comes as the protocol wants it, in UTF-8, is brought to that."""
        found = self.take(self.u16())
        try:
            units = found.decode().encode('utf-16-be')
        except UnicodeDecodeError:
            return found.decode('latin-1')
        return ''.join(chr(low) if high == 0 else '?' for high, low in zip(units[::2], units[1::2]))

    def strings(self):
        return [self.string() for _ in range(self.u16())]

    def short_bytes(self):
        return self.take(self.u16())

    def bytes(self):
        n = self.i32()
        return None if n < 0 else self.take(n)

    def inet(self):
        size = self.u8()
        raw = self.take(size)
        return socket.inet_ntop(socket.AF_INET if size == 4 else socket.AF_INET6, raw)

    def type(self):
        kind = self.u16()
        if kind == 0:
            return "'" + self.string() + "'"
        if kind in (0x20, 0x22):
            return ('list<' if kind == 0x20 else 'set<') + self.type() + '>'
        if kind == 0x21:
            key = self.type()
            return f'map<{key}, {self.type()}>'
        if kind == 0x30:
            name = self.string() + '.' + self.string()
            fields = []
            for _ in range(self.u16()):
                field = self.string()
                fields.append(f'{field} {self.type()}')
            return f'udt {name}<' + ', '.join(fields) + '>'
        if kind == 0x31:
            return 'tuple<' + ', '.join(self.type() for _ in range(self.u16())) + '>'
        return SIMPLE_TYPES.get(kind, f'type#{kind}')


class Options:
    """Everything that may accompany a QUERY, an EXECUTE or a BATCH."""

    def __init__(self, consistency='ONE', values=None, names=None, page_size=None, paging_state=None, serial=None,
                 timestamp=None, keyspace=None, now=None, skip_metadata=False):
        self.consistency, self.values, self.names = consistency, values, names
        self.page_size, self.paging_state, self.serial = page_size, paging_state, serial
        self.timestamp, self.keyspace, self.now, self.skip_metadata = timestamp, keyspace, now, skip_metadata

    def encode(self, version):
        flags, out = 0, b''
        if self.values is not None:
            flags |= 0x01
            out += struct.pack('>H', len(self.values))
            for i, v in enumerate(self.values):
                if self.names is not None:
                    out += string(self.names[i])
                out += value(v)
        if self.skip_metadata:
            flags |= 0x02
        if self.page_size is not None:
            flags |= 0x04
            out += struct.pack('>i', self.page_size)
        if self.paging_state is not None:
            flags |= 0x08
            out += value(self.paging_state)
        more, tail = self._tail(version)
        if self.names is not None:
            flags |= 0x40
        return self._head(version, flags | more) + out + tail

    def encode_for_batch(self, version):
        flags, tail = self._tail(version)
        return self._head(version, flags) + tail

    def _head(self, version, flags):
        return struct.pack('>HI' if version >= 5 else '>HB', CONSISTENCY[self.consistency], flags)

    def _tail(self, version):
        flags, out = 0, b''
        if self.serial is not None:
            flags |= 0x10
            out += struct.pack('>H', CONSISTENCY[self.serial])
        if self.timestamp is not None:
            flags |= 0x20
            out += struct.pack('>q', self.timestamp)
        if version >= 5 and self.keyspace is not None:
            flags |= 0x80
            out += string(self.keyspace)
        if version >= 5 and self.now is not None:
            flags |= 0x100
            out += struct.pack('>i', self.now)
        return flags, out


class Connection:
    """One connection; one request at a time, except that events may arrive between answers."""

    planter = None  # falsifies answers on purpose (planted.py)
    patience = 30   # seconds to wait for an answer

    def __init__(self, host, port=9042, version=5, timeout=None, user=None, password=None, tls=None):
        """`user` and `password` log in; without, whoever asks for them gets no answer yet. `tls` is an ssl.SSLContext."""
        self.version, self.framed, self.events = version, False, []
        self.buffer = b''   # bytes of envelopes, out of their frames
        self.timeout = timeout or self.patience
        self.socket = socket.create_connection((host, port), timeout=self.timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        answer = self.request(STARTUP, struct.pack('>H', 1) + string('CQL_VERSION') + string('3.0.0'))
        if answer['kind'] not in ('ready', 'authenticate'):
            raise Closed(f'STARTUP was answered by {answer}')
        self.framed, self.started = version >= 5, answer
        if answer['kind'] == 'authenticate' and user is not None:
            answer = self.log_in(b'\0' + user.encode() + b'\0' + password.encode())
            if answer['kind'] != 'auth_success':
                raise Closed(f'AUTH_RESPONSE was answered by {answer}')

    def log_in(self, token):
        """The answer to a token of SASL."""
        return self.request(AUTH_RESPONSE, value(token))

    def close(self):
        self.socket.close()

    # Bytes

    def _recv(self, n):
        out = b''
        while len(out) < n:
            piece = self.socket.recv(n - len(out))
            if not piece:
                raise Closed('the server closed the connection')
            out += piece
        return out

    def _recv_frame(self):
        head = self._recv(6)
        header = int.from_bytes(head[:3], 'little')
        if crc24(head[:3]) != int.from_bytes(head[3:], 'little'):
            raise Closed('a frame header fails its CRC-24')
        payload = self._recv(header & 0x1FFFF)
        if crc32(payload) != int.from_bytes(self._recv(4), 'little'):
            raise Closed('a frame payload fails its CRC-32')
        return payload

    def _need(self, n):
        while len(self.buffer) < n:
            self.buffer += self._recv_frame() if self.framed else self._recv(n - len(self.buffer))

    def _send(self, envelope):
        if not self.framed:
            self.socket.sendall(envelope)
            return
        whole = len(envelope) <= MAX_SELF_CONTAINED
        out = b''
        for at in range(0, len(envelope), MAX_SELF_CONTAINED):
            payload = envelope[at:at + MAX_SELF_CONTAINED]
            head = (len(payload) | (1 << 17 if whole else 0)).to_bytes(3, 'little')
            out += head + crc24(head).to_bytes(3, 'little') + payload + crc32(payload).to_bytes(4, 'little')
        self.socket.sendall(out)

    def receive(self):
        """The next envelope: (opcode, flags, body)."""
        self._need(9)
        version, flags, stream, opcode, length = struct.unpack('>BBhBi', self.buffer[:9])
        if not version & 0x80:
            raise Closed(f'an answer that is not marked as one: {self.buffer[:9].hex()}')
        self._need(9 + length)
        body, self.buffer = self.buffer[9:9 + length], self.buffer[9 + length:]
        if self.planter:
            opcode, flags, body = self.planter.answered(self.version, opcode, flags, body)
        return opcode, flags, stream, body

    def request(self, opcode, body, stream=1):
        if self.planter:
            self.planter.asked(opcode, body)
        self._send(struct.pack('>BBhBi', self.version, 0, stream, opcode, len(body)) + body)
        while True:
            opcode, flags, got, answer = self.receive()
            if opcode == EVENT:
                self.events.append(self._event(answer))
                continue
            if got != stream and opcode != ERROR:
                raise Closed(f'answer on stream {got}, asked on {stream}')
            return self._decode(opcode, flags, answer)

    # Requests

    def options(self):
        return self.request(OPTIONS, b'')

    def register(self, *kinds):
        return self.request(REGISTER, struct.pack('>H', len(kinds)) + b''.join(string(k) for k in kinds))

    def query(self, cql, options=None):
        return self.request(QUERY, long_string(cql) + (options or Options()).encode(self.version))

    def prepare(self, cql, keyspace=None):
        tail = b''
        if self.version >= 5:
            tail = struct.pack('>I', 1 if keyspace else 0) + (string(keyspace) if keyspace else b'')
        return self.request(PREPARE, long_string(cql) + tail)

    def execute(self, prepared, options):
        body = struct.pack('>H', len(prepared['id'])) + prepared['id']
        if self.version >= 5:
            body += struct.pack('>H', len(prepared['metadata_id'])) + prepared['metadata_id']
        return self.request(EXECUTE, body + options.encode(self.version))

    def batch(self, kind, statements, options=None):
        """`statements`: (cql, values) or (prepared answer, values)."""
        body = struct.pack('>BH', kind, len(statements))
        for what, values in statements:
            if isinstance(what, dict):
                body += b'\x01' + struct.pack('>H', len(what['id'])) + what['id']
            else:
                body += b'\x00' + long_string(what)
            body += struct.pack('>H', len(values)) + b''.join(value(v) for v in values)
        return self.request(BATCH, body + (options or Options()).encode_for_batch(self.version))

    def wait_event(self, timeout):
        """The next event, or None when none comes within `timeout` seconds."""
        if self.events:
            return self.events.pop(0)
        self.socket.settimeout(timeout)
        try:
            opcode, _, _, body = self.receive()
            return self._event(body) if opcode == EVENT else None
        except (socket.timeout, TimeoutError):
            return None
        finally:
            self.socket.settimeout(self.timeout)

    # Answers

    def _decode(self, opcode, flags, body):
        r = Reader(body)
        if flags & 0x02:
            r.take(16)  # tracing id
        answer = {}
        warnings = r.strings() if flags & 0x08 else []
        if flags & 0x04:
            answer['payload'] = {r.string(): r.bytes() for _ in range(r.u16())}
        if opcode == ERROR:
            answer.update(self._error(r))
        elif opcode == RESULT:
            answer.update(self._result(r))
        elif opcode == READY:
            answer.update(kind='ready')
        elif opcode == AUTHENTICATE:
            answer.update(kind='authenticate', authenticator=r.string())
        elif opcode == AUTH_SUCCESS:
            answer.update(kind='auth_success', token=r.bytes())
        elif opcode == SUPPORTED:
            answer.update(kind='supported', options={r.string(): r.strings() for _ in range(r.u16())})
        else:
            answer.update(kind=f'opcode#{opcode}', body=body)
        if warnings:
            answer['warnings'] = warnings
        if r.at != len(body) and opcode in (ERROR, RESULT, SUPPORTED):
            answer['trailing'] = body[r.at:]
        return answer

    def _error(self, r):
        code = r.i32()
        answer = dict(kind='error', code=code, message=r.string())
        if code == 0x1000:
            answer['detail'] = [r.u16(), r.i32(), r.i32()]
        elif code == 0x1100:
            answer['detail'] = [r.u16(), r.i32(), r.i32(), r.string()]
            if self.version >= 5 and answer['detail'][3] == 'CAS':
                answer['detail'].append(r.u16())
        elif code == 0x1200:
            answer['detail'] = [r.u16(), r.i32(), r.i32(), r.u8()]
        elif code in (0x1300, 0x1500):
            head = [r.u16(), r.i32(), r.i32()]
            failures = r.i32()
            reasons = [[r.inet(), r.u16()] for _ in range(failures)] if self.version >= 5 else failures
            answer['detail'] = head + [reasons, r.u8() if code == 0x1300 else r.string()]
        elif code == 0x1400:
            answer['detail'] = [r.string(), r.string(), r.strings()]
        elif code == 0x1700:
            answer['detail'] = [r.u16(), r.i32(), r.i32()]
        elif code == 0x2400:
            answer['detail'] = [r.string(), r.string()]
        elif code == 0x2500:
            answer['detail'] = [r.short_bytes().hex()]
        return answer

    def _result(self, r):
        kind = r.i32()
        if kind == VOID:
            return dict(kind='void')
        if kind == SET_KEYSPACE:
            return dict(kind='set_keyspace', keyspace=r.string())
        if kind == SCHEMA_CHANGE:
            return dict(kind='schema_change', change=self._change(r))
        if kind == PREPARED:
            answer = dict(kind='prepared', id=r.short_bytes(), metadata_id=b'')
            if self.version >= 5:
                answer['metadata_id'] = r.short_bytes()
            answer['bind'] = self._metadata(r, prepared=True)
            answer['result'] = self._metadata(r)
            return answer
        if kind == ROWS:
            metadata = self._metadata(r)
            count = r.i32()
            width = metadata['count']
            return dict(kind='rows', metadata=metadata, rows=[[r.bytes() for _ in range(width)] for _ in range(count)])
        raise ValueError(f'result of kind {kind}')

    def _metadata(self, r, prepared=False):
        flags, count = r.i32(), r.i32()
        m = dict(flags=flags, count=count)
        if prepared and self.version >= 4:
            m['pk'] = [r.u16() for _ in range(r.i32())]
        if flags & 2:
            m['paging_state'] = r.bytes()
        if flags & 8:
            m['new_id'] = r.short_bytes()
        if flags & 4:
            return m
        spec = (r.string(), r.string()) if flags & 1 else None
        m['columns'] = []
        for _ in range(count):
            keyspace, table = spec or (r.string(), r.string())
            name = r.string()
            m['columns'].append([keyspace, table, name, r.type()])
        return m

    @staticmethod
    def _change(r):
        change = [r.string(), r.string(), r.string()]
        if change[1] != 'KEYSPACE':
            change.append(r.narrow_string())
        if change[1] in ('FUNCTION', 'AGGREGATE'):
            change.append(r.strings())
        return change

    def _event(self, body):
        r = Reader(body)
        kind = r.string()
        if kind == 'SCHEMA_CHANGE':
            return [kind] + self._change(r)
        return [kind, r.string(), r.inet(), r.i32()]
