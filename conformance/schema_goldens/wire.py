"""A CQL client (protocol v4) and an internode SCHEMA_PULL, both as small as they can be."""
import queue, socket, struct, threading, time, uuid, zlib

INIT = bytes([0xFA, 0x2D, 0x55, 0xCA])


def crc32(b):
    return zlib.crc32(b, zlib.crc32(INIT)) & 0xFFFFFFFF


def crc24(data):
    crc = 0x875060
    for b in data:
        crc ^= b << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc


def uvint(v):
    n = max(1, (v.bit_length() + 6) // 7)
    if n == 1:
        return bytes([v])
    b = bytearray(v.to_bytes(n, 'big'))
    b[0] |= (0xFF00 >> (n - 1)) & 0xFF
    return bytes(b)


def recvn(s, n):
    b = b''
    while len(b) < n:
        c = s.recv(n - len(b))
        if not c:
            raise EOFError(len(b))
        b += c
    return b


class R:
    """A reader over bytes."""

    def __init__(self, b):
        self.b, self.p = b, 0

    def take(self, n):
        r = self.b[self.p:self.p + n]
        assert len(r) == n, (n, len(r))
        self.p += n
        return r

    def u8(self): return self.take(1)[0]
    def u16(self): return struct.unpack('>H', self.take(2))[0]
    def i32(self): return struct.unpack('>i', self.take(4))[0]
    def string(self): return self.take(self.u16()).decode(errors='replace')  # names of types in changes are not UTF-8
    def strings(self): return [self.string() for _ in range(self.u16())]

    def bytes(self):
        n = self.i32()
        return None if n < 0 else self.take(n)

    def uv(self):
        f = self.u8()
        n = 0
        while n < 8 and f & (0x80 >> n):
            n += 1
        v = f & (0xFF >> n)
        for x in self.take(n):
            v = v << 8 | x
        return v

    def vb(self): return self.take(self.uv())


class Cql:
    def __init__(self, host):
        self.s = socket.create_connection((host, 9042))
        self.s.settimeout(60)
        self.request(1, struct.pack('>H', 1) + self.text('CQL_VERSION') + self.text('3.4.7'))

    @staticmethod
    def text(x):
        b = x.encode()
        return struct.pack('>H', len(b)) + b

    def request(self, op, body):
        self.s.sendall(struct.pack('>BBhBi', 4, 0, 1, op, len(body)) + body)
        _, flags, _, op, n = struct.unpack('>BBhBi', recvn(self.s, 9))
        return flags, op, R(recvn(self.s, n))

    def query(self, cql):
        """A dict: err | void | event | rows (bytes) with columns; and warnings."""
        b = cql.encode()
        flags, op, r = self.request(7, struct.pack('>i', len(b)) + b + struct.pack('>HB', 1, 0))
        out = {}
        if flags & 8:
            out['warn'] = r.strings()
        if op == 0:
            out['err'] = [r.i32(), r.string()]
            return out
        kind = r.i32()
        if kind == 1:
            out['void'] = True
        elif kind == 5:
            change, target, ks = r.string(), r.string(), r.string()
            out['event'] = [change, target, ks] + ([] if target == 'KEYSPACE' else [r.string()])
        elif kind == 2:
            flags, n = r.i32(), r.i32()
            if flags & 2:
                r.bytes()
            if flags & 1:
                r.string(), r.string()
            names = []
            for _ in range(n):
                if not flags & 1:
                    r.string(), r.string()
                names.append(r.string())
                self.option(r)
            out['columns'] = names
            out['rows'] = [[r.bytes() for _ in range(n)] for _ in range(r.i32())]
        return out

    def option(self, r):
        k = r.u16()
        if k == 0:
            r.string()
        elif k in (0x20, 0x22):
            self.option(r)
        elif k == 0x21:
            self.option(r), self.option(r)
        elif k == 0x30:
            r.string(), r.string()
            for _ in range(r.u16()):
                r.string(), self.option(r)
        elif k == 0x31:
            for _ in range(r.u16()):
                self.option(r)


class Internode:
    """Pulls the schema from a node without being a member."""

    def __init__(self, me, peer):
        self.me, self.peer, self.q, self.id = (me, 7000), (peer, 7000), queue.Queue(), 1
        lst = socket.socket()
        lst.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        lst.bind(self.me)
        lst.listen(8)
        threading.Thread(target=self.accept, args=(lst,), daemon=True).start()
        self.s = socket.socket()
        self.s.settimeout(20)
        self.s.bind((me, 0))
        self.s.connect(self.peer)
        flags = 2 | 16 | 12 << 8 | 12 << 16 | 12 << 24
        b = struct.pack('>II', 0xCA552DFA, flags) + bytes([6]) + socket.inet_aton(me) + struct.pack('>H', 7000)
        self.s.sendall(b + struct.pack('>I', crc32(b)))
        recvn(self.s, 12)

    def accept(self, lst):
        while True:
            c, _ = lst.accept()
            threading.Thread(target=self.serve, args=(c,), daemon=True).start()

    def serve(self, c):
        try:
            recvn(c, 8)
            recvn(c, recvn(c, 1)[0] + 4)
            b = struct.pack('>II', 12, 12)
            c.sendall(b + struct.pack('>I', crc32(b)))
            big = None
            while True:
                h = recvn(c, 6)
                v = int.from_bytes(h[:3], 'little')
                p = recvn(c, v & 0x1FFFF)
                recvn(c, 4)
                if v >> 17 & 1:
                    r = R(p)
                    while r.p < len(p):
                        verb, n = self.header(r)
                        self.q.put((verb, r.take(n)))
                else:
                    if big is None:
                        r = R(p)
                        verb, n = self.header(r)
                        big = p[r.p:]
                    else:
                        big += p
                    if len(big) >= n:
                        self.q.put((verb, big))
                        big = None
        except (EOFError, OSError):
            pass

    @staticmethod
    def header(r):
        r.uv(), r.i32(), r.uv()
        verb = r.uv()
        r.uv()
        for _ in range(r.uv()):
            r.uv(), r.vb()
        return verb, r.uv()

    def call(self, verb):
        self.id += 1
        m = uvint(self.id) + struct.pack('>I', int(time.time() * 1000) & 0xFFFFFFFF) + uvint(10000)
        m += uvint(verb) + uvint(0) + b'\0' + uvint(0)
        h = (len(m) | 1 << 17).to_bytes(3, 'little')
        self.s.sendall(h + crc24(h).to_bytes(3, 'little') + m + struct.pack('<I', crc32(m)))
        while True:
            got, p = self.q.get(timeout=15)
            if got == verb + 60:
                return p

    def pull(self): return self.call(28)
    def version(self): return str(uuid.UUID(bytes=self.call(20)))
