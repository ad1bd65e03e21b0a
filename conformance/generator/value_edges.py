"""Values at the edges of each type, bound, within each kind of collection, as keys and as conditions; and what functions make of them."""

import struct

from keyspace import keyspace
from literals import T, U
from values import encode_value

KEYSPACE = 'cf_edge'
NULL, UNSET = 'null', 'unset'
# type -> the values of interest: words of `corpus.encode_value` or bytes
EDGES = {
    'ascii': [b'', b'a', b'\x7f', b'\x80', b'\0', 'text:\u00e9'],
    'bigint': [b'', 'bigint:0', 'bigint:-9223372036854775808', 'bigint:9223372036854775807', bytes(7), bytes(9), bytes(4)],
    'blob': [b'', b'\0', b'\xff' * 3],
    'boolean': [b'', b'\0', b'\1', b'\2', b'\xff', b'\0\0'],
    'date': [b'', 'date:0', 'date:4294967295', 'date:2147483648', bytes(3), bytes(5)],
    'decimal': [b'', bytes(3), bytes(5), 'decimal:1,15', 'decimal:2,150', b'\0\0\0\1\0\0\x0f', 'decimal:-3,7'],
    'double': [b'', 'double:0', 'double:-0.0', 'double:nan', b'\x7f\xf0\0\0\0\0\0\1', 'double:-inf', bytes(7), bytes(9), bytes(4)],
    'duration': [b'', b'\0\0', b'\0\0\0', b'\0\0\0\0', b'\2\1\0', b'\1\1\1', b'\xf0\xff\xff\xff\xff\0\0', b'\0\0\x80', b'\0\0\x80\0'],
    'float': [b'', 'float:0', 'float:-0.0', 'float:nan', b'\x7f\x80\0\1', 'float:inf', bytes(3), bytes(5), bytes(8)],
    'inet': [b'', 'inet:1.2.3.4', 'inet:::1', 'inet:::ffff:1.2.3.4', bytes(3), bytes(5), bytes(17)],
    'int': [b'', 'int:0', 'int:-2147483648', 'int:2147483647', bytes(3), bytes(5), bytes(8)],
    'smallint': [b'', 'smallint:0', 'smallint:-32768', bytes(1), bytes(3)],
    'text': [b'', b'a', 'text:\u00e9\u4e2d', b'\xff', b'\xc0\x80', b'\xed\xa0\x80', b'\xe4\xb8', b'\0'],
    'time': [b'', 'time:0', 'time:86399999999999', 'time:86400000000000', 'time:-1', bytes(7), bytes(9)],
    'timestamp': [b'', 'timestamp:0', 'timestamp:-9223372036854775808', 'timestamp:9223372036854775807', bytes(7), bytes(9)],
    'timeuuid': [b'', f'uuid:{T}', f'uuid:{U}', bytes(16), bytes(15), bytes(17)],
    'tinyint': [b'', 'tinyint:0', 'tinyint:-128', bytes(2)],
    'uuid': [b'', f'uuid:{T}', f'uuid:{U}', bytes(16), bytes(15), bytes(17)],
    'varint': [b'', b'\0', b'\0\0', b'\0\1', b'\xff\xff', b'\xff\x7f', b'\0\x80', b'\1'],
}
# Values that the type takes for certain: what stands beside the edge.
GOOD = {kind: next(v for v in values if v != b'' and kind != 'time' or v == 'time:0') for kind, values in EDGES.items()} | {
    'decimal': 'decimal:1,15', 'duration': b'\0\0\0', 'varint': b'\1'}
NO_KEYS = {'duration'}
# Texts that Cassandra takes for one alone and cannot read in a collection.
UNREADABLE = {'text': [b'\xc0\x80', b'\xed\xa0\x80']}
# Of what a table has then Cassandra makes no JSON, by mistake: nulls in a list, tuples that end early, booleans and times that are none.
NO_JSON = {'fl': set(EDGES) - {'decimal'}, 't': EDGES, 'fmv': {'boolean'}, 'fu': {'boolean'}, 'll': {'boolean'}}


def raw(value):
    """The bytes of a value; None for null."""
    return value if isinstance(value, bytes) else encode_value(value)


def word(value):
    """A value as a directive has it."""
    return value if value in (NULL, UNSET) else '0x' + raw(value).hex()


def part(value):
    if value == UNSET:
        return struct.pack('>i', -2)
    value = raw(value)
    return struct.pack('>i', -1) if value is None else struct.pack('>i', len(value)) + value


def collection(*items, count=None):
    return struct.pack('>i', len(items) if count is None else count) + b''.join(map(part, items))


def pairs(*items):
    return collection(*items, count=len(items) // 2)


def tuple_of(*items):
    return b''.join(map(part, items))


def unsigned_vint(n):
    assert n < 0x80
    return bytes([n])


def vector(kind, *items):
    fixed = {'bigint': 8, 'boolean': 1, 'double': 8, 'float': 4, 'int': 4, 'timestamp': 8, 'timeuuid': 16, 'uuid': 16}
    items = [raw(i) or b'' for i in items]
    return b''.join(i if kind in fixed else unsigned_vint(len(i)) + i for i in items)


def columns(kind):
    """column -> (its type, its value with an edge in it)"""
    good = GOOD[kind]
    found = {
        'v': (kind, lambda e: raw(e)),
        'l': (f'list<{kind}>', lambda e: collection(good, e)),
        'fl': (f'frozen<list<{kind}>>', lambda e: collection(e, good)),
        'mv': (f'map<int, {kind}>', lambda e: pairs('int:2', good, 'int:1', e)),
        'fmv': (f'frozen<map<int, {kind}>>', lambda e: pairs('int:2', e, 'int:1', good)),
        't': (f'frozen<tuple<{kind}, int, {kind}>>', lambda e: tuple_of(e, 'int:1', good)),
        'u': (f'u_{kind}', lambda e: tuple_of(good, e)),
        'fu': (f'frozen<u_{kind}>', lambda e: tuple_of(e, good)),
        'vec': (f'vector<{kind}, 2>', lambda e: vector(kind, good, e)),
        'll': (f'frozen<list<frozen<list<{kind}>>>>', lambda e: collection(collection(e), collection())),
        'lt': (f'list<frozen<tuple<int, {kind}>>>', lambda e: collection(tuple_of('int:1', e))),
        'tl': (f'tuple<frozen<list<{kind}>>>', lambda e: tuple_of(collection(good, e))),
        'vl': (f'vector<frozen<list<{kind}>>, 1>', lambda e: unsigned_vint(len(collection(e))) + collection(e)),
        'ul': (f'frozen<ul_{kind}>', lambda e: tuple_of(collection(e, good))),
        'mul': (f'ul_{kind}', lambda e: tuple_of(collection(e, good))),
    }
    if kind not in NO_KEYS:
        found |= {
            's': (f'set<{kind}>', lambda e: collection(good, e)),
            'fs': (f'frozen<set<{kind}>>', lambda e: collection(e, good, e)),
            'mk': (f'map<{kind}, int>', lambda e: pairs(good, 'int:1', e, 'int:2')),
            'fmk': (f'frozen<map<{kind}, int>>', lambda e: pairs(e, 'int:1', good, 'int:2')),
            'ls': (f'list<frozen<set<{kind}>>>', lambda e: collection(collection(e, good))),
            'lm': (f'frozen<list<frozen<map<{kind}, {kind}>>>>', lambda e: collection(pairs(e, good, good, e))),
        }
    return found


def frames(name, kind):
    """Values of a column whose frame is wrong, or empty, whatever is in it."""
    good = GOOD[kind]
    if name in ('l', 'fl', 's', 'fs'):
        items = collection(good, good)
        return [collection(), items + b'\0', items[:-1], items[:4], collection(good, count=-1), collection(count=2 ** 31 - 1), bytes(3), b'']
    if name in ('mv', 'fmv', 'mk', 'fmk'):
        pair = ('int:1', good) if name in ('mv', 'fmv') else (good, 'int:1')
        items = pairs(*pair)
        return [collection(), items + b'\0', items[:-1], pairs(*pair, pair[0]), collection(count=-1), collection(count=2 ** 31 - 1), b'']
    if name in ('t', 'u', 'fu'):
        items = tuple_of(good, 'int:1', good) if name == 't' else tuple_of(good, good)
        return [b'', items + b'\0', items[:-1], tuple_of(good), items[:2], struct.pack('>i', 100) + b'a', struct.pack('>i', -5), items + part(good)]
    if name == 'vec':
        return [b'', vector(kind, good), vector(kind, good, good, good), vector(kind, good, good) + b'\0', vector(kind, good, good)[:-1]]
    return []


def bound(statement, values, form='bind'):
    return [f'-- {form} {value}' for value in values] + [statement + ';']


def scalar(kind):
    """Tables of one type, and all its edges written to each column, prepared and not."""
    yield f'CREATE TYPE u_{kind} (a {kind}, b {kind});'
    yield f'CREATE TYPE ul_{kind} (a frozen<list<{kind}>>);'
    found = columns(kind)
    yield f'CREATE TABLE e_{kind} (k int PRIMARY KEY, ' + ', '.join(f'{n} {t}' for n, (t, _) in found.items()) + ');'
    at = 0
    for name, (_, make) in found.items():
        edges = EDGES[kind] + ([NULL, UNSET] if name not in ('v', 'vec') else [])
        values = [word(make(e)) for e in edges] + [word(f) for f in frames(name, kind)]
        if name == 'v':
            values += [NULL, UNSET]
        yield from bound(f'INSERT INTO e_{kind} (k, {name}) VALUES (?, ?)', [f'int:{at + i} {v}' for i, v in enumerate(values)])
        at += len(values)
    for name in found:
        yield f'SELECT k, {name} FROM e_{kind};'
    # unprepared, and in the other versions of the protocol
    for version in (3, 4, 5):
        yield f'-- protocol {version}'
        for name in ('v', 'fl', 't'):
            edges = EDGES[kind] + [NULL] + ([UNSET] if version > 3 or name != 'v' else [])
            values = [word(e if name == 'v' and e in (NULL, UNSET) else found[name][1](e)) for e in edges]
            yield from bound(f'INSERT INTO e_{kind} (k, {name}) VALUES (?, ?)', [f'int:{10000 * version + i} {v}' for i, v in enumerate(values)], 'values')
        yield f'SELECT k, v, fl, t FROM e_{kind};'
    yield '-- protocol 5'


def keys(kind):
    if kind in NO_KEYS:
        return
    edges = [word(e) for e in EDGES[kind] + [NULL, UNSET]]
    yield f'CREATE TABLE k_{kind} (p {kind}, c {kind}, s {kind} STATIC, v {kind}, PRIMARY KEY (p, c));'
    yield f'CREATE TABLE kk_{kind} (a {kind}, b {kind}, c {kind}, d {kind}, PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC);'
    good = word(GOOD[kind])
    yield from bound(f'INSERT INTO k_{kind} (p, c) VALUES (?, ?)', [f'{e} {good}' for e in edges] + [f'{good} {e}' for e in edges])
    yield from bound(f'INSERT INTO k_{kind} (p, s) VALUES (?, ?)', [f'{good} {e}' for e in edges])
    yield from bound(f'INSERT INTO kk_{kind} (a, b, c, d) VALUES (?, ?, ?, ?)', [f'{good} {e} {e} {good}' for e in edges] + [f'{good} {good} {good} {e}' for e in edges] + [f'{good} {good} {e} {good}' for e in edges])
    yield f'SELECT * FROM k_{kind};'
    yield f'SELECT * FROM kk_{kind};'
    for relation in ('c = ?', 'c > ?', 'c <= ?', 'c IN (?)'):
        yield from bound(f'SELECT * FROM k_{kind} WHERE p = {literal(kind)} AND {relation}', edges)
    lists = [word(collection(GOOD[kind], e)) for e in EDGES[kind] + [NULL, UNSET]]
    yield from bound(f'SELECT * FROM k_{kind} WHERE p = ? AND c IN ?', [f'{good} {e}' for e in lists])
    yield from bound(f'SELECT * FROM k_{kind} WHERE p IN ?', lists)
    yield from bound(f'SELECT * FROM k_{kind} WHERE p = ?', edges)
    yield from bound(f'SELECT * FROM kk_{kind} WHERE a = ? AND b = ? AND (c, d) > ?', [f'{good} {good} {word(tuple_of(GOOD[kind], e))}' for e in (GOOD[kind], NULL, UNSET)])
    yield from bound(f'SELECT * FROM kk_{kind} WHERE a = ? AND b = ? AND (c, d) IN ?', [f'{good} {good} {word(collection(tuple_of(e, GOOD[kind])))}' for e in EDGES[kind] + [NULL, UNSET]])
    yield from bound(f'SELECT token(p) FROM k_{kind} WHERE token(p) > token(?)', edges)
    yield from bound(f'SELECT * FROM k_{kind} WHERE v = ? ALLOW FILTERING', edges)


def literal(kind):
    """A hexadecimal literal of the good value: taken for every type."""
    return '0x' + raw(GOOD[kind]).hex()


def parts(kind):
    """Elements, entries and fields set one by one; conditions; filters of elements."""
    edges = [word(e) for e in EDGES[kind] + [NULL, UNSET]]
    readable = [word(e) for e in EDGES[kind] + [NULL, UNSET] if e not in UNREADABLE.get(kind, [])]
    table = f'e_{kind}'
    yield f'DELETE FROM {table} WHERE k = 0;'
    yield from bound(f'UPDATE {table} SET l = l + ? WHERE k = 0', [word(collection(e)) for e in EDGES[kind] + [NULL, UNSET]] + [NULL, '0x'])
    yield from bound(f'UPDATE {table} SET l = ? + l WHERE k = 0', [word(collection(e)) for e in EDGES[kind]])
    yield f'SELECT l FROM {table} WHERE k = 0;'
    yield from bound(f'UPDATE {table} SET l[0] = ? WHERE k = 0', edges)
    yield f'SELECT l FROM {table} WHERE k = 0;'
    yield from bound(f'UPDATE {table} SET l = l - ? WHERE k = 0', [word(collection(e)) for e in EDGES[kind] + [NULL, UNSET]])
    yield f'SELECT l FROM {table} WHERE k = 0;'
    for i, e in enumerate(edges):
        yield from bound(f'UPDATE {table} SET mv[{i}] = ?, u.a = ? WHERE k = 0', [f'{e} {e}'])
    yield f'SELECT mv, u FROM {table} WHERE k = 0;'
    if kind not in NO_KEYS:
        yield from bound(f'UPDATE {table} SET mk[?] = 1 WHERE k = 0', edges)
        yield from bound(f'UPDATE {table} SET s = s + ? WHERE k = 0', [word(collection(e)) for e in EDGES[kind] + [NULL, UNSET]])
        yield f'SELECT mk, s FROM {table} WHERE k = 0;'
        yield from bound(f'SELECT mk[?], s[?] FROM {table} WHERE k = 0', [f'{e} {e}' for e in edges])
        yield from bound(f'DELETE mk[?], s[?] FROM {table} WHERE k = 0', [f'{e} {e}' for e in edges])
        yield f'SELECT mk, s FROM {table} WHERE k = 0;'
        yield from bound(f'SELECT k FROM {table} WHERE fs CONTAINS ? ALLOW FILTERING', readable)
        yield from bound(f'SELECT k FROM {table} WHERE fmk CONTAINS KEY ? ALLOW FILTERING', readable)
    yield from bound(f'SELECT k FROM {table} WHERE fl CONTAINS ? ALLOW FILTERING', readable)
    yield from bound(f'SELECT k FROM {table} WHERE v = ? ALLOW FILTERING', edges)
    yield f'INSERT INTO {table} (k, v, l, fl) VALUES (1, {literal(kind)}, [{literal(kind)}], [{literal(kind)}]);'
    for condition in ('v = ?', 'v != ?', 'v IN (?)', 'l[0] = ?') + (('v > ?',) if kind not in NO_KEYS else ()):
        yield from bound(f'UPDATE {table} SET v = {literal(kind)} WHERE k = 1 IF {condition}', edges)
    for condition, more in (('fl = ?', []), ('l = ?', []), ('v IN ?', [NULL, UNSET])):
        yield from bound(f'UPDATE {table} SET v = {literal(kind)} WHERE k = 1 IF {condition}', [word(collection(e)) for e in EDGES[kind] + more])
    # functions of a bound value, and of what is stored
    yield f'SELECT k, {kind}_as_blob(v) FROM {table};'
    for column in ('v', 'l', 'fl', 'fmv', 't', 'fu', 'vec', 'll') if kind != 'time' else ():
        if kind in NO_JSON.get(column, ()):
            yield '-- cassandra fails'
        yield f'SELECT k, to_json({column}) FROM {table};'
    yield f'SELECT min(v), max(v), count(v) FROM {table};'
    yield from bound(f'UPDATE {table} SET v = {kind}_as_blob(?) WHERE k = 2', edges[:3]) if kind == 'blob' else bound(f'UPDATE {table} SET v = blob_as_{kind}(?) WHERE k = 2', edges)
    yield f'SELECT v FROM {table} WHERE k = 2;'


def value_edges():
    yield '-- clock 1000'
    yield from keyspace(KEYSPACE)
    for kind in sorted(EDGES):
        yield from scalar(kind)
        yield from parts(kind)
        yield from keys(kind)
