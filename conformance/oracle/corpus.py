"""The corpus: text files of CQL statements with directives in `-- ` comments before them.

A file is statements ended by `;` (a batch by `APPLY BATCH;`). Comment lines that begin with one of these words are
directives; all other comments are prose. `sticky` ones hold to the end of the file, the others for the next statement.

    protocol N          sticky: protocol version of the connection (5)
    now N               sticky: now_in_seconds of every request; `now off` ends it
    clock N             sticky: the protocol's timestamp option of the requests: N, N+1, ... in microseconds; `clock off` ends it
    states on           sticky: also compare the paging states, byte for byte
    events on           sticky: also compare the schema events that a registered connection gets
    page N [N...]       read all pages of N rows; with several sizes, one after the other
    prepare             only prepare, compare the metadata
    bind V...           prepare, then execute with these values; several lines: several executions
    values V...         one request with values, unprepared;   names a=V b=V   the same by name
    batch KIND          a BATCH message (logged, unlogged, counter) of the following statements up to `-- end`;
                        statements in it may carry `bind` (prepared) or `values`
    consistency CL, serial CL, timestamp N, keyspace K      request options
    skip_metadata       of an execution
    ignore C...         cells of these columns are not compared (ids, versions, times); `ignore rows` compares metadata only
    unordered           rows are compared as a bag
    cassandra fails     Cassandra answers by mistake with an exception that nobody meant: whatever is answered instead will do
    settle              repeat until the answer is not an error or empty, for up to 20 s (index builds, views)
    line                the next line is the statement as it stands, no `;` looked for
    json "..."          the statement is this JSON string
    needs WORD          the file exercises WORD (a feature); runs may leave it out with --without WORD

Values: null, unset, 0x.. (raw bytes), int:5, bigint:5, smallint:5, tinyint:5, text:abc, text:"with spaces", boolean:true,
float:1.5, double:1.5, varint:5, uuid:..., timestamp:ms, date:days, time:nanos, inet:1.2.3.4, decimal:scale,unscaled,
duration:m,d,n, list:[V,V], tuple:[V,V], map:[V,V,...].
"""

import json
import re
import shlex
import socket
import struct
import uuid

from wire import UNSET, value

STICKY = {'protocol', 'now', 'clock', 'states', 'events', 'needs'}
ONCE = {'page', 'prepare', 'bind', 'values', 'names', 'consistency', 'serial', 'timestamp', 'keyspace', 'skip_metadata',
        'ignore', 'unordered', 'settle', 'cassandra'}
BATCH_KINDS = {'logged': 0, 'unlogged': 1, 'counter': 2}


class Step:
    """One statement, or one BATCH message of several, with what was said about it."""

    def __init__(self, line, cql, directives, sticky, batch=None):
        self.line, self.cql, self.directives, self.sticky, self.batch = line, cql, directives, sticky, batch

    def get(self, name, default=None):
        """The last value of a directive that is meant once."""
        found = self.directives.get(name)
        return found[-1] if found else default

    def title(self):
        return self.cql if self.batch is None else 'BATCH: ' + ' | '.join(s.cql for s in self.batch)


def encode_vint(n):
    """Unsigned vint."""
    if n < 0x80:
        return bytes([n])
    size = (639 - 9 * (64 - n.bit_length())) >> 6
    extra = size - 1
    raw = n.to_bytes(8, 'big')[8 - extra if size < 9 else 0:] if size == 9 else n.to_bytes(size, 'big')
    if size == 9:
        return b'\xff' + n.to_bytes(8, 'big')
    first = raw[0] | (0xFF << (8 - extra)) & 0xFF
    return bytes([first]) + raw[1:]


def encode_varint(n):
    return n.to_bytes((n if n >= 0 else ~n).bit_length() // 8 + 1, 'big', signed=True)


def split_items(text):
    """`a,b,[c,d]` at its outer commas."""
    items, depth, item = [], 0, ''
    for c in text:
        if c == ',' and depth == 0:
            items.append(item)
            item = ''
            continue
        depth += (c == '[') - (c == ']')
        item += c
    return items + [item] if item or items else []


def encode_value(word):
    if word == 'null':
        return None
    if word == 'unset':
        return UNSET
    if word.startswith('0x'):
        return bytes.fromhex(word[2:])
    kind, _, text = word.partition(':')
    fixed = {'int': '>i', 'bigint': '>q', 'smallint': '>h', 'tinyint': '>b', 'timestamp': '>q', 'time': '>q', 'date': '>I'}
    if kind in fixed:
        return struct.pack(fixed[kind], int(text))
    if kind in ('float', 'double'):
        return struct.pack('>f' if kind == 'float' else '>d', float(text))
    if kind == 'text':
        return text.encode()
    if kind == 'boolean':
        return b'\x01' if text == 'true' else b'\x00'
    if kind == 'varint':
        return encode_varint(int(text))
    if kind == 'uuid':
        return uuid.UUID(text).bytes
    if kind == 'inet':
        return socket.inet_pton(socket.AF_INET6 if ':' in text else socket.AF_INET, text)
    if kind == 'decimal':
        scale, unscaled = text.split(',')
        return struct.pack('>i', int(scale)) + encode_varint(int(unscaled))
    if kind == 'duration':
        zigzag = lambda n: (n << 1) ^ (n >> 63)
        return b''.join(encode_vint(zigzag(int(n)) & (2 ** 64 - 1)) for n in text.split(','))
    if kind in ('list', 'set', 'map', 'tuple'):
        items = [encode_value(i) for i in split_items(text[1:-1])]
        count = b'' if kind == 'tuple' else struct.pack('>i', len(items) // (2 if kind == 'map' else 1))
        return count + b''.join(value(i) for i in items)
    raise ValueError(f'unknown value {word!r}')


def words(text):
    return shlex.split(text)


def _statement(lines, at):
    """The statement that starts in line `at`: (text, next line). Understands quotes, $$ bodies and comments."""
    text, quote, i = '', None, at
    while i < len(lines):
        line = lines[i] + '\n'
        j = 0
        while j < len(line):
            two, c = line[j:j + 2], line[j]
            if quote == '*/':
                if two == '*/':
                    quote = None
                    text += two
                    j += 2
                    continue
            elif quote:
                if line.startswith(quote, j):
                    text += quote
                    j += len(quote)
                    quote = None
                    continue
            elif two == '$$' or c in '\'"':
                quote = two if two == '$$' else c
                text += quote
                j += len(quote)
                continue
            elif two == '/*':
                quote = '*/'
                text += two
                j += 2
                continue
            elif two in ('--', '//'):
                text += line[j:]
                break
            elif c == ';':
                is_batch = re.match(r'\s*BEGIN\b', text, re.I)
                if not is_batch or re.search(r'\bAPPLY\s+BATCH\s*$', text, re.I):
                    if line[j + 1:].strip():
                        raise ValueError(f'line {i + 1}: one statement a line; {line[j + 1:].strip()!r} would be lost')
                    return text.strip(), i + 1
            text += c
            j += 1
        i += 1
    if text.strip():
        raise ValueError(f'the statement in line {at + 1} has no end')
    return '', i


def parse(path):
    """The steps of a corpus file."""
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    steps, directives, sticky, batch, at = [], {}, {'protocol': 5}, None, 0
    batch_head = None

    def add(line, cql):
        nonlocal directives
        if sticky.get('clock') is not None:
            directives.setdefault('timestamp', [str(sticky['clock'])])
            sticky['clock'] += 1
        step = Step(line + 1, cql, directives, dict(sticky))
        directives = {}
        (steps if batch is None else batch).append(step)

    while at < len(lines):
        line = lines[at].strip()
        if not line:
            at += 1
            continue
        if line.startswith('--'):
            word, _, rest = line[2:].strip().partition(' ')
            rest = rest.strip()
            if word in STICKY:
                if word in ('protocol', 'now', 'clock'):
                    sticky[word] = None if rest == 'off' else int(rest)
                elif word in ('events', 'states'):
                    sticky[word] = rest == 'on'
                else:
                    sticky.setdefault('needs', set()).add(rest)
            elif word in ONCE:
                directives.setdefault(word, []).append(rest)
            elif word == 'batch' and rest in BATCH_KINDS:
                batch, batch_head = [], (at, rest, directives)
                if sticky.get('clock') is not None:
                    directives.setdefault('timestamp', [str(sticky['clock'])])
                directives = {}
            elif word == 'end' and batch is not None:
                line_no, kind, head = batch_head
                head.setdefault('kind', []).append(kind)
                steps.append(Step(line_no + 1, '', head, dict(sticky), batch))
                batch, directives = None, {}
            elif word == 'line' and not rest:
                add(at + 1, lines[at + 1])
                at += 1
            elif word == 'json' and rest.startswith('"'):
                add(at, json.loads(rest))
            at += 1
            continue
        cql, following = _statement(lines, at)
        if cql:
            add(at, cql)
        at = following
    return steps
