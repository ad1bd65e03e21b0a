"""A partition that is far larger than the memory of the node that has it: wide.py HOST ROWS write|check.

Rows of 200 bytes of noise, each different from all others; a range in the middle is deleted. They are written in four passes over the
whole partition, so that what is flushed early overlaps with what is flushed late. Every byte of every page is compared.
"""

import os
import struct
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import wire  # noqa: E402

VALUE_BYTES = 192
PASSES = 4
BATCH_ROWS = 100
# Batches that wait for their answer, and pages that are asked for at a time.
IN_FLIGHT = 16
TIMEOUT_SECONDS = 300
# Values are pieces of this, which repeats itself nowhere.
NOISE = __import__('random').Random(1).randbytes((1 << 20) + VALUE_BYTES)
ROW = struct.Struct(f'>iqi{VALUE_BYTES}s')
SELECT = 'SELECT c, v FROM wide.t WHERE k = 1'


def row(c):
    """The cells of a row, as they are bound and as they are answered."""
    at = c * 7919 % (1 << 20)
    return ROW.pack(8, c, VALUE_BYTES, NOISE[at:at + VALUE_BYTES])


class Connection(wire.Connection):
    """One that keeps several requests in flight, and does not take rows apart."""

    def __init__(self, host):
        super().__init__(host, version=4, timeout=TIMEOUT_SECONDS)

    def post(self, opcode, body):
        self._send(struct.pack('>BBhBi', self.version, 0, 1, opcode, len(body)) + body)

    def taken(self):
        """The next answer: (opcode, body)."""
        head = self.socket.recv(9, wire.socket.MSG_WAITALL)
        _, flags, _, opcode, length = struct.unpack('>BBhBi', head)
        body = bytearray(length)
        view = memoryview(body)
        while view:
            count = self.socket.recv_into(view)
            if not count:
                raise wire.Closed('the server closed the connection')
            view = view[count:]
        if opcode == wire.ERROR:
            raise AssertionError(f'an error: {bytes(body[:200])!r}')
        if flags & 8:  # warnings, of batches that are large
            reader = wire.Reader(bytes(body))
            reader.strings()
            body = body[reader.at:]
        return opcode, body


def deleted(rows):
    """The range in the middle that is deleted, a hundredth of all."""
    return rows // 2, rows // 2 + rows // 100


def write(connection, rows):
    for text in ("CREATE KEYSPACE wide WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                 'CREATE TABLE wide.t (k int, c bigint, v blob, PRIMARY KEY (k, c))'):
        answer = connection.query(text)
        assert answer['kind'] == 'schema_change', answer
    prepared = connection.prepare('INSERT INTO wide.t (k, c, v) VALUES (1, ?, ?)')
    start = b'\x01' + struct.pack('>H', len(prepared['id'])) + prepared['id'] + struct.pack('>H', 2)
    tail = wire.Options().encode_for_batch(connection.version)
    waiting = 0
    for rest in range(PASSES):
        numbers = range(rest, rows, PASSES)
        for at in range(0, len(numbers), BATCH_ROWS):
            part = numbers[at:at + BATCH_ROWS]
            body = b''.join([start + row(c) for c in part])
            if waiting == IN_FLIGHT:
                connection.taken()
                waiting -= 1
            connection.post(wire.BATCH, struct.pack('>BH', 1, len(part)) + body + tail)
            waiting += 1
    for _ in range(waiting):
        connection.taken()
    answer = connection.query('DELETE FROM wide.t WHERE k = 1 AND c >= %d AND c < %d' % deleted(rows))
    assert answer['kind'] == 'void', answer


def pages(connection, text, size):
    """(number of rows, their cells) of each page."""
    prepared = connection.prepare(text)
    head = struct.pack('>H', len(prepared['id'])) + prepared['id']
    state = None
    while True:
        options = wire.Options(values=[], page_size=size, paging_state=state, skip_metadata=True)
        connection.post(wire.EXECUTE, head + options.encode(connection.version))
        opcode, body = connection.taken()
        reader = wire.Reader(bytes(body))
        assert (opcode, reader.i32()) == (wire.RESULT, wire.ROWS)
        state = connection._metadata(reader).get('paging_state')
        count = reader.i32()
        yield count, memoryview(body)[reader.at:]
        if state is None:
            return


def compare(connection, rest, size, expected):
    """A slice must have exactly these rows; gives how many there were."""
    text, at = SELECT + rest, 0
    for count, cells in pages(connection, text, size):
        part = expected[at:at + count]
        assert len(part) == count, f'{text}: more than {len(expected)} rows'
        assert count <= size, f'{text}: a page of {count} rows'
        assert cells == b''.join(map(row, part)), f'{text}: other rows than {part[0]} to {part[-1]}'
        at += count
    assert at == len(expected), f'{text}: {at} of {len(expected)} rows'
    return at


class Joined:
    """Ranges one after the other, as one sequence."""

    def __init__(self, *parts):
        self.parts = parts

    def __len__(self):
        return sum(map(len, self.parts))

    def __getitem__(self, wanted):
        out, start = [], wanted.start
        for part in self.parts:
            if start < len(part) and len(out) < wanted.stop - wanted.start:
                out += part[start:start + wanted.stop - wanted.start - len(out)]
            start = max(0, start - len(part))
        return out


def check(connection, rows):
    gone, back = deleted(rows)
    all_rows = Joined(range(gone), range(back, rows))
    backwards = Joined(range(rows - 1, back - 1, -1), range(gone - 1, -1, -1))
    down = ' ORDER BY c DESC'
    read, quarter, hundredth = 0, rows // 4, rows // 100
    for rest, size, expected in (
        ('', 5000, all_rows),
        (down, 5000, backwards),
        (f' AND c >= {quarter} AND c < {quarter + hundredth}', 100, range(quarter, quarter + hundredth)),
        (f' AND c >= {quarter} AND c < {quarter + hundredth}' + down, 100, range(quarter + hundredth - 1, quarter - 1, -1)),
        (f' AND c >= {gone - 20} AND c < {back + 20}', 7, Joined(range(gone - 20, gone), range(back, back + 20))),
        (f' AND c > {gone - 21} AND c <= {back + 19}' + down, 7, Joined(range(back + 19, back - 1, -1), range(gone - 1, gone - 21, -1))),
        (f' AND c > {rows - 10}', 3, range(rows - 9, rows)),
        (' AND c < 10' + down, 3, range(9, -1, -1)),
        (f' AND c = {quarter}', 10, range(quarter, quarter + 1)),
        (f' AND c = {gone}', 10, range(0)),
        (' LIMIT 10' , 5000, range(10)),
        (down + ' LIMIT 10', 5000, range(rows - 1, rows - 11, -1)),
    ):
        read += compare(connection, rest, size, expected)
    # all of them take longer than `read_request_timeout`
    answer = connection.query(f'SELECT count(*) FROM wide.t WHERE k = 1 AND c >= {gone - hundredth} AND c < {back + hundredth}')
    assert answer['rows'] == [[struct.pack('>q', 2 * hundredth)]], answer
    return read


def main():
    host, rows, what = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    connection = Connection(host)
    started = time.monotonic()
    if what == 'write':
        write(connection, rows)
        print(f'{rows} rows written in {time.monotonic() - started:.1f} s')
    else:
        read = check(connection, rows)
        print(f'{read} rows read, all right, in {time.monotonic() - started:.1f} s')


main()
