"""Types and their values, each value as a literal, as bytes to bind and as JSON text: one small pool a type, so that values meet."""

import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))

from corpus import encode_value  # noqa: E402

UUIDS = ['6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47', '00000000-0000-4000-8000-000000000000', 'ffffffff-ffff-4fff-bfff-ffffffffffff']
TIMEUUIDS = ['de3e12ba-e5f0-11f1-a71b-15da588fdeae', '00000000-0000-1000-8080-808080808080', 'a4a70900-24e1-11df-8924-001ff3591711']


def _numbers(kind, values):
    return [(str(v), f'{kind}:{v}', str(v)) for v in values]


def _texts(kind, values):
    return [("'" + v.replace("'", "''") + "'", v.encode(), json.dumps(v)) for v in values]


# type -> (literal, bytes or a word of `corpus.encode_value`, JSON)
POOLS = {
    'int': _numbers('int', [0, 1, 2, 3, -1, 2147483647, -2147483648]),
    'bigint': _numbers('bigint', [0, 1, 2, -1, 9223372036854775807]),
    'smallint': _numbers('smallint', [0, 1, 2, -1, 32767]),
    'tinyint': _numbers('tinyint', [0, 1, 2, -1, -128]),
    'varint': _numbers('varint', [0, 1, 2, -1, 123456789012345678901234567890]),
    'float': _numbers('float', [0.0, 1.5, -2.25, 0.1]),
    'double': _numbers('double', [0.0, 1.5, -2.25, 0.1, 1e300]),
    'decimal': [('0', 'decimal:0,0', '0'), ('1.5', 'decimal:1,15', '1.5'), ('1.50', 'decimal:2,150', '1.50'), ('-7', 'decimal:0,-7', '-7')],
    'boolean': [('true', 'boolean:true', 'true'), ('false', 'boolean:false', 'false')],
    'text': _texts('text', ['a', 'b', 'ab', '', 'it\'s "q"', 'z\u00e9\u4e2d']),
    'ascii': _texts('ascii', ['a', 'b', 'ab', '', '~']),
    'blob': [('0x', b'', '"0x"'), ('0x00', b'\0', '"0x00"'), ('0xff', b'\xff', '"0xff"'), ('0x0001', b'\0\1', '"0x0001"')],
    'uuid': [(u, 'uuid:' + u, f'"{u}"') for u in UUIDS + TIMEUUIDS[:1]],
    'timeuuid': [(u, 'uuid:' + u, f'"{u}"') for u in TIMEUUIDS],
    'timestamp': [('0', 'timestamp:0', '0'), ("'2020-01-01 00:00:00.000Z'", 'timestamp:1577836800000', '"2020-01-01 00:00:00.000Z"'),
                  ('-1', 'timestamp:-1', '-1'), ('1700000000123', 'timestamp:1700000000123', '1700000000123')],
    'date': [("'1970-01-01'", 'date:2147483648', '"1970-01-01"'), ("'2020-02-29'", 'date:2147501969', '"2020-02-29"'),
             ("'1969-12-31'", 'date:2147483647', '"1969-12-31"')],
    'time': [("'00:00:00'", 'time:0', '"00:00:00"'), ("'12:34:56.789'", 'time:45296789000000', '"12:34:56.789"'),
             ("'23:59:59.999999999'", 'time:86399999999999', '"23:59:59.999999999"')],
    'duration': [('1d', 'duration:0,1,0', '"1d"'), ('1mo2d3h', 'duration:1,2,10800000000000', '"1mo2d3h"'), ('-1ns', 'duration:0,0,-1', '"-1ns"')],
    'inet': [("'127.0.0.1'", 'inet:127.0.0.1', '"127.0.0.1"'), ("'::1'", 'inet:::1', '"::1"'), ("'10.0.0.1'", 'inet:10.0.0.1', '"10.0.0.1"')],
}
# Of values that are equal and do not look alike: the one for all.
ONE_FOR_ALL = {('decimal', '1.50'): POOLS['decimal'][1]}
SCALARS = sorted(POOLS)
KEYABLE = [t for t in SCALARS if t != 'duration']
NUMBERS = ['int', 'bigint', 'smallint', 'tinyint', 'varint', 'float', 'double', 'decimal']
FIXED = {'int': 4, 'bigint': 8, 'float': 4, 'double': 8, 'boolean': 1, 'uuid': 16, 'timestamp': 8}


class Type:
    """A CQL type: `name` is scalar, list, set, map, tuple, vector or udt; `args` the types within; a vector has a size, a udt fields."""

    def __init__(self, name, args=(), frozen=False, size=0, udt=None, fields=()):
        self.name, self.args, self.frozen, self.size, self.udt, self.fields = name, list(args), frozen, size, udt, list(fields)

    def __str__(self):
        if self.name in ('list', 'set', 'map'):
            text = f"{self.name}<{', '.join(map(str, self.args))}>"
        elif self.name == 'tuple':
            return f"tuple<{', '.join(map(str, self.args))}>"
        elif self.name == 'vector':
            return f'vector<{self.args[0]}, {self.size}>'
        elif self.name == 'udt':
            text = self.udt
        else:
            return self.name
        return f'frozen<{text}>' if self.frozen else text

    def multi_cell(self):
        return self.name in ('list', 'set', 'map', 'udt') and not self.frozen

    def collection(self):
        return self.name in ('list', 'set', 'map')

    def scalar(self):
        return self.name in POOLS

    def numeric(self):
        return self.name in NUMBERS

    def freeze(self):
        return Type(self.name, self.args, self.name in ('list', 'set', 'map', 'udt'), self.size, self.udt, self.fields)


def random_type(r, udts, depth=2, key=False):
    """Of a column (`key`: of one that is part of the primary key, which may not hold a duration)."""
    scalars = KEYABLE if key else SCALARS
    if depth == 0 or r.random() < (0.75 if key else 0.45):
        return Type(r.choice(scalars) if r.random() < 0.6 else r.choice(['int', 'text']))
    inner = lambda: random_type(r, udts, depth - 1, key).freeze()
    frozen = key or depth < 2 or r.random() < 0.3
    kind = r.choice(['list', 'set', 'map', 'tuple', 'udt', 'vector'] if udts and not key else ['list', 'set', 'map', 'tuple', 'vector'])
    if kind == 'list':
        return Type('list', [inner()], frozen)
    if kind == 'set':
        return Type('set', [random_type(r, [], depth - 1, True).freeze()], frozen)
    if kind == 'map':
        return Type('map', [Type(r.choice(['int', 'text', 'uuid'])), inner()], frozen)
    if kind == 'tuple':
        return Type('tuple', [inner() for _ in range(r.randint(1, 3))])
    if kind == 'vector':
        return Type('vector', [Type(r.choice(['float', 'float', 'int', 'text']))], size=r.randint(1, 3))
    chosen = r.choice(udts)
    return Type('udt', [], frozen, udt=chosen.udt, fields=chosen.fields)


class Value:
    """One value in its three forms; `raw` is None for null."""

    def __init__(self, literal, raw, text):
        self.literal, self.raw, self.json = literal, raw, text

    def word(self):
        """As directives of the corpus write it."""
        return 'null' if self.raw is None else '0x' + self.raw.hex()


NULL = Value('null', None, 'null')


def _sized(raw):
    return struct.pack('>i', -1 if raw is None else len(raw)) + (raw or b'')


def _vint(n):
    """Of a length below 128: what elements of vectors of texts have before them."""
    return bytes([n])


def value(r, kind, alike=False):
    """A random value of a type, not null at the top; `alike`: equal ones shall look alike."""
    if kind.scalar():
        literal, raw, text = r.choice(POOLS[kind.name])
        if alike:
            literal, raw, text = ONE_FOR_ALL.get((kind.name, literal), (literal, raw, text))
        return Value(literal, raw if isinstance(raw, bytes) else encode_value(raw), text)
    many = lambda t: [value(r, t, alike) for _ in range(r.choice([0, 1, 1, 2, 3]))]
    maybe = lambda t: NULL if r.random() < 0.12 else value(r, t, alike)
    if kind.name in ('list', 'set'):
        items = many(kind.args[0])
        if kind.name == 'set':
            items = list({i.raw: i for i in items}.values())
        brackets = '[]' if kind.name == 'list' else '{}'
        return Value(brackets[0] + ', '.join(i.literal for i in items) + brackets[1],
                     struct.pack('>i', len(items)) + b''.join(_sized(i.raw) for i in items), '[' + ', '.join(i.json for i in items) + ']')
    if kind.name == 'map':
        keys = list({k.raw: k for k in many(kind.args[0])}.values())
        pairs = [(k, value(r, kind.args[1], alike)) for k in keys]
        name = lambda k: k.json if k.json.startswith('"') else f'"{k.json}"'
        return Value('{' + ', '.join(f'{k.literal}: {v.literal}' for k, v in pairs) + '}',
                     struct.pack('>i', len(pairs)) + b''.join(_sized(k.raw) + _sized(v.raw) for k, v in pairs),
                     '{' + ', '.join(f'{name(k)}: {v.json}' for k, v in pairs) + '}')
    if kind.name == 'tuple':
        items = [maybe(t) for t in kind.args]
        return Value('(' + ', '.join(i.literal for i in items) + ')', b''.join(_sized(i.raw) for i in items), '[' + ', '.join(i.json for i in items) + ']')
    if kind.name == 'vector':
        items = [value(r, kind.args[0], alike) for _ in range(kind.size)]
        lead = (lambda raw: _vint(len(raw)) + raw) if kind.args[0].name == 'text' else (lambda raw: raw)
        return Value('[' + ', '.join(i.literal for i in items) + ']', b''.join(lead(i.raw) for i in items), '[' + ', '.join(i.json for i in items) + ']')
    fields = [(f, maybe(t)) for f, t in kind.fields]
    given = [(f, v) for f, v in fields if v is not NULL or r.random() < 0.5]
    return Value('{' + ', '.join(f'{f}: {v.literal}' for f, v in given) + '}', b''.join(_sized(v.raw) for _, v in fields),
                 '{' + ', '.join(f'"{f}": {v.json}' for f, v in given) + '}')
