#!/usr/bin/env python3
"""Asks a Cassandra 5.0.9 what it makes of modify_statements.txt, and writes modify.txt.

    modify.py ADDRESS DATA_DIRECTORY > modify.txt

The node must have no keyspace `ks`; it is left behind. Each line of the result: statement, values of the markers,
verdict of preparing (metadata of the markers, or an error), verdict of running (`OK`, warnings behind it, or an
error), and the mutations that came of it, taken from the commit log, in hexadecimal. The protocol is v5, because
its requests carry their own time: timestamp TS and now NOW.
"""
import glob, os, re, socket, struct, sys, time, zlib

TS, NOW = 1_700_000_000_000_000, 1_800_000_000
HERE = os.path.dirname(os.path.abspath(__file__))


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc


def crc32(data):
    return zlib.crc32(data, zlib.crc32(bytes([0xFA, 0x2D, 0x55, 0xCA]))) & 0xFFFFFFFF


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        return self.data[self.at - count:self.at]

    def u16(self):
        return struct.unpack('>H', self.take(2))[0]

    def i32(self):
        return struct.unpack('>i', self.take(4))[0]

    def string(self):
        return self.take(self.u16()).decode()

    def kind(self):
        names = {1: 'ascii', 2: 'bigint', 3: 'blob', 4: 'boolean', 5: 'counter', 6: 'decimal', 7: 'double', 8: 'float',
                 9: 'int', 11: 'timestamp', 12: 'uuid', 13: 'text', 14: 'varint', 15: 'timeuuid', 16: 'inet',
                 17: 'date', 18: 'time', 19: 'smallint', 20: 'tinyint', 21: 'duration'}
        option = self.u16()
        if option == 0:
            return "'%s'" % self.string()
        if option == 0x20:
            return 'list<%s>' % self.kind()
        if option == 0x22:
            return 'set<%s>' % self.kind()
        if option == 0x21:
            return 'map<%s, %s>' % (self.kind(), self.kind())
        if option == 0x30:
            self.string()
            name = self.string()
            for _ in range(self.u16()):
                self.string(), self.kind()
            return name
        if option == 0x31:
            return 'tuple<%s>' % ', '.join(self.kind() for _ in range(self.u16()))
        return names[option]


class Connection:
    def __init__(self, host):
        self.socket = socket.create_connection((host, 9042))
        self.framed, self.buffer = False, b''
        body = struct.pack('>H', 1) + self.string('CQL_VERSION') + self.string('3.0.0')
        assert self.request(1, body)[0] == 2
        self.framed = True

    def string(self, text):
        text = text.encode()
        return struct.pack('>H', len(text)) + text

    def exactly(self, count):
        out = b''
        while len(out) < count:
            more = self.socket.recv(count - len(out))
            assert more
            out += more
        return out

    def envelope_bytes(self, count):
        if not self.framed:
            return self.exactly(count)
        while len(self.buffer) < count:
            header = self.exactly(6)
            self.buffer += self.exactly(int.from_bytes(header[:3], 'little') & 0x1FFFF)
            self.exactly(4)
        out, self.buffer = self.buffer[:count], self.buffer[count:]
        return out

    def request(self, opcode, body):
        envelope = struct.pack('>BBhBi', 5, 0, 1, opcode, len(body)) + body
        if not self.framed:
            self.socket.sendall(envelope)
        else:
            parts = [envelope[at:at + 0x1FFFF] for at in range(0, len(envelope), 0x1FFFF)]
            for part in parts:
                header = (len(part) | (len(parts) == 1) << 17).to_bytes(3, 'little')
                header += crc24(header).to_bytes(3, 'little')
                self.socket.sendall(header + part + struct.pack('<I', crc32(part)))
        _, flags, _, opcode, length = struct.unpack('>BBhBi', self.envelope_bytes(9))
        reader = Reader(self.envelope_bytes(length))
        warnings = [reader.string() for _ in range(reader.u16())] if flags & 8 else []
        return opcode, reader, warnings

    def options(self, values):
        out = struct.pack('>Hi', 1, 0x20 | 0x100 | (1 if values else 0))
        if values:
            out += struct.pack('>H', len(values)) + b''.join(values)
        return out + struct.pack('>qi', TS, NOW)

    def verdict(self, answer):
        opcode, reader, warnings = answer
        if opcode == 0:
            code = reader.i32()
            return 'ERR %04x %s' % (code, reader.string().replace('\n', '\\n'))
        return ' | '.join(['OK'] + warnings)

    def prepare(self, statement):
        text = statement.encode()
        answer = self.request(9, struct.pack('>i', len(text)) + text + struct.pack('>i', 0))
        if answer[0] == 0:
            return None, self.verdict(answer)
        reader = answer[1]
        assert reader.i32() == 4
        ids = reader.take(reader.u16()), reader.take(reader.u16())
        flags, count, keys = reader.i32(), reader.i32(), reader.i32()
        keys = [reader.u16() for _ in range(keys)]
        table = reader.string() + '.' + reader.string() if flags & 1 else ''
        columns = []
        for _ in range(count):
            place = table if flags & 1 else reader.string() + '.' + reader.string()
            columns.append('%s.%s: %s' % (place, reader.string(), reader.kind()))
        return ids, '%s [%s]' % ('; '.join(columns), ', '.join(map(str, keys)))

    def execute(self, ids, values):
        body = b''.join(struct.pack('>H', len(i)) + i for i in ids)
        return self.verdict(self.request(10, body + self.options(values)))

    def query(self, statement):
        text = statement.encode()
        return self.verdict(self.request(7, struct.pack('>i', len(text)) + text + self.options([])))


def value(text):
    if text in ('null', 'unset'):
        return struct.pack('>i', -1 if text == 'null' else -2)
    digits, _, times = text.partition('*')
    data = bytes.fromhex(digits) * int(times or 1)
    return struct.pack('>i', len(data)) + data


def log_entries(directory):
    """The mutations in the segments of a commit log, in order."""
    def number(path):
        return int(re.search(r'-(\d+)\.log', path).group(1))
    for path in sorted(glob.glob(directory + '/commitlog/CommitLog-*.log'), key=number):
        data = open(path, 'rb').read()
        (parameters,) = struct.unpack_from('>H', data, 12)
        at = 12 + 2 + parameters + 4
        while at + 8 <= len(data):
            (end,) = struct.unpack_from('>i', data, at)
            if end <= at:
                break
            at += 8
            while at + 8 <= end:
                (size,) = struct.unpack_from('>i', data, at)
                if size <= 0:
                    break
                yield data[at + 8:at + 8 + size]
                at += 8 + size + 4
            at = end


def main():
    host, directory = sys.argv[1:]
    node = Connection(host)
    node.query("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    for line in open(HERE + '/modify_schema.cql'):
        if line.strip():
            assert node.query(line.strip().rstrip(';')) == 'OK', line
    assert node.query('CREATE TABLE ks.sentinel (k text PRIMARY KEY)') == 'OK'
    results = []
    for line in open(HERE + '/modify_statements.txt'):
        line = line.rstrip('\n')
        if not line or line.startswith('#'):
            continue
        written, _, given = line.partition('\t')
        statement = re.sub(r'<(.)\*(\d+)>', lambda m: m.group(1) * int(m.group(2)), written)
        if '\t' in line:
            ids, prepared = node.prepare(statement)
            ran = node.execute(ids, [value(v) for v in given.split(',')]) if ids else '-'
        else:
            prepared, ran = '-', node.query(statement)
        results.append([written, given if '\t' in line else '-', prepared, ran])
        assert node.query("INSERT INTO ks.sentinel (k) VALUES ('<%d>')" % len(results)) == 'OK'
    time.sleep(12)
    mutations, pending = {}, []
    started = False
    for entry in log_entries(directory):
        found = re.search(rb'<(\d+)>', entry) if len(entry) < 100 else None
        if found:
            mutations[int(found.group(1))] = pending if started or int(found.group(1)) > 1 else pending
            pending, started = [], True
        else:
            pending.append(entry)
    for number, result in enumerate(results, 1):
        entries = mutations[number] if result[3].startswith('OK') else []
        if number == 1:
            entries = entries[-1:]
        print('\t'.join(result + [' '.join(entry.hex() for entry in entries)]))


main()
