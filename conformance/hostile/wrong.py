"""Just enough of the native protocol to get every part of it wrong."""

import os
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

from wire import ERROR, READY, STARTUP, crc24, crc32, string  # noqa: E402

SECONDS = 10
COMPRESSED = 1
QUERY_TAIL = b'\x00\x01\x00'
QUERY_TAIL_V5 = b'\x00\x01\x00\x00\x00\x00'


def short(n):
    return struct.pack('>H', n)


def integer(n):
    return struct.pack('>i', n)


def frame(version, opcode, body=b'', flags=0, length=None, stream=1):
    return struct.pack('>BBhBI', version, flags, stream, opcode, len(body) if length is None else length) + body


def segment(payload, self_contained=True, uncompressed=None, length=None, header_crc=None, payload_crc=None):
    """A v5 segment; `uncompressed` makes it one of a connection with LZ4."""
    length = len(payload) if length is None else length
    if uncompressed is None:
        prefix = (length | self_contained << 17).to_bytes(3, 'little')
    else:
        prefix = (length | uncompressed << 17 | self_contained << 34).to_bytes(5, 'little')
    checksum = crc24(prefix) if header_crc is None else header_crc
    trailer = crc32(payload) if payload_crc is None else payload_crc
    return prefix + checksum.to_bytes(3, 'little') + payload + trailer.to_bytes(4, 'little')


def lz4_bomb(size):
    """A block of `size` equal bytes, a 255th as long."""
    rest = size - 1 - 5 - 4 - 15
    block = b'\x1fa\x01\x00' + b'\xff' * (rest // 255) + bytes([rest % 255])
    return block + b'\x50aaaaa'


def snappy_bomb(size):
    out, n = bytearray(), size
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out += bytes([n, 0, ord('a')])
    for _ in range((size - 1) // 64):
        out += b'\xfe\x01\x00'
    return bytes(out)


def startup_body(**options):
    options = {'CQL_VERSION': '3.0.0', **options}
    return short(len(options)) + b''.join(string(k) + string(v) for k, v in options.items())


def lz4_block(data):
    out, at = bytearray(), 0

    def extended(n):
        nonlocal at
        if n == 15:
            while True:
                at += 1
                n += data[at - 1]
                if data[at - 1] != 255:
                    break
        return n
    while at < len(data):
        token = data[at]
        at += 1
        literals = extended(token >> 4)
        out += data[at:at + literals]
        at += literals
        if at < len(data):
            offset = int.from_bytes(data[at:at + 2], 'little')
            at += 2
            for _ in range(extended(token & 15) + 4):
                out.append(out[-offset])
    return bytes(out)


def snappy_literals(data):
    """The text of an answer this short is one literal."""
    at = next(n for n, byte in enumerate(data) if byte < 128) + 1
    return data[at + 1 + max(0, (data[at] >> 2) - 59):]


class Connection:
    def __init__(self, host, port, version=4, compression=None, ready=True):
        self.version, self.segmented, self.buffer, self.compression = version, False, b'', None
        self.socket = socket.create_connection((host, port), SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if ready:
            options = {'COMPRESSION': compression} if compression else {}
            self.send(frame(version, STARTUP, startup_body(**options)))
            opcode, body = self.answer()
            if opcode != READY:
                raise AssertionError(f'STARTUP is answered by opcode {opcode}: {body!r}')
            self.segmented = version >= 5
            self.compression = compression

    def send(self, data):
        self.socket.sendall(data)

    def send_message(self, opcode, body, flags=0):
        message = frame(self.version, opcode, body, flags)
        if not self.segmented:
            return self.send(message)
        self.send(segment(message, uncompressed=0 if self.compression else None))

    def _take(self, count):
        while len(self.buffer) < count:
            got = self.socket.recv(1 << 16)
            if not got:
                raise EOFError
            self.buffer += got
        taken, self.buffer = self.buffer[:count], self.buffer[count:]
        return taken

    def answer(self):
        """The next message: (opcode, body)."""
        if self.segmented:
            head = self._take(8 if self.compression else 6)
            lengths = int.from_bytes(head[:5], 'little')
            payload = self._take((lengths & 0x1FFFF) + 4)[:-4]
            if self.compression and lengths >> 17 & 0x1FFFF:
                payload = lz4_block(payload)
            return payload[4], payload[9:]
        head = self._take(8)
        if head[0] & 0x7F in (1, 2):
            # one byte of stream
            return head[3], self._take(struct.unpack('>I', head[4:])[0])
        head += self._take(1)
        body = self._take(struct.unpack('>I', head[5:])[0])
        if head[1] & COMPRESSED and body:
            body = lz4_block(body[4:]) if self.compression == 'lz4' else snappy_literals(body)
        return head[4], body

    def end(self):
        """How the server takes what was sent: the error's code, `answer N` or `closed`."""
        try:
            opcode, body = self.answer()
        except (EOFError, ConnectionError):
            return 'closed'
        except TimeoutError:
            return 'nothing'
        return f'error {struct.unpack(">i", body[:4])[0]:04x}' if opcode == ERROR else f'answer {opcode}'

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
