"""Ways in which replicas come to differ: tables, what all replicas have of them, and what one replica misses.

A way is written into keys of its own, one for each replica that misses it. `base` is what all replicas have of such a
key, `missed` what the others get while that replica is away.
"""

import collections

WIDE_ROWS = 3000
WIDE_BATCH = 100

Table = collections.namedtuple('Table', 'name definition names')
Way = collections.namedtuple('Way', 'name base missed')

# names of columns: key, clustering, static, text, map, list, set, user type, blob
PLAIN_NAMES = dict(k='k', c='c', s='s', v='v', m='m', l='l', e='e', u='u')
# of collections and user types a Cassandra loses deletions if the name's first byte is 0x80 or more (BTreeRow.hasComplexDeletion
# begins at an empty name, which sorts behind those)
OTHER_NAMES = dict(k='"ключ"', c='"порядок"', s='"Общий столбец"', v='"значение"', m='"Karte ä"', l='"x список"', e='"menge ß"', u='"u タイプ"')
COLUMNS = ('({k} text, {c} int, {s} text static, {v} text, {m} map<text, text>, {l} list<text>, {e} set<text>, {u} pair, '
           'PRIMARY KEY ({k}, {c}))')
STILL = "read_repair = 'NONE' AND speculative_retry = 'NEVER' AND compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"


def tables(release):
    still = STILL
    return [
        Table('lz4', COLUMNS.format(**PLAIN_NAMES) + " WITH compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 4} AND " + still, PLAIN_NAMES),
        Table('plain', COLUMNS.format(**OTHER_NAMES) + " WITH compression = {'enabled': 'false'} AND " + still, OTHER_NAMES),
        Table('counted', '(k text, c int, n counter, PRIMARY KEY (k, c)) WITH ' + still, PLAIN_NAMES),
        Table('wide', '(k text, c int, v text, w blob, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC) AND ' + still, PLAIN_NAMES),
        Table('graceless', '(k text, c int, v text, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 0 AND ' + still, PLAIN_NAMES),
    ]


def rows(count, more=()):
    """A partition with a static row, rows of all kinds of columns, and what else there is."""
    made = ["UPDATE {t} SET {s} = 'alle: ä' WHERE {k} = {key}"]
    for c in range(count):
        made.append(f"INSERT INTO {{t}} ({{k}}, {{c}}, {{v}}, {{m}}, {{l}}, {{e}}, {{u}}) VALUES ({{key}}, {c}, 'значение {c}', "
                    f"{{{{'a': 'x{c}', 'ü': '\U0001f600'}}}}, ['eins', 'zwei'], {{{{'α', 'β'}}}}, {{{{a: {c}, b: 'é'}}}})")
    return made + list(more)


AT_1 = ' WHERE {k} = {key} AND {c} = 1'

# each but the first two has six rows
WAYS = [
    Way('partition', [], rows(3)),
    Way('only static', [], ["UPDATE {t} SET {s} = 'одна' WHERE {k} = {key}"]),
    Way('row', rows(6), ["INSERT INTO {t} ({k}, {c}, {v}) VALUES ({key}, 9, 'später')"]),
    Way('key of a row', rows(6), ['INSERT INTO {t} ({k}, {c}) VALUES ({key}, 9)']),
    Way('cell', rows(6), ["UPDATE {t} SET {v} = 'новое'" + AT_1]),
    Way('static', rows(6), ["UPDATE {t} SET {s} = 'neu: ß' WHERE {k} = {key}"]),
    Way('tombstone of a cell', rows(6), ['DELETE {v} FROM {t}' + AT_1]),
    Way('tombstone of a static', rows(6), ['DELETE {s} FROM {t} WHERE {k} = {key}']),
    Way('tombstone of a row', rows(6), ['DELETE FROM {t}' + AT_1]),
    Way('tombstone of a range', rows(6), ['DELETE FROM {t} WHERE {k} = {key} AND {c} > 1 AND {c} <= 3']),
    Way('tombstone of an open range', rows(6), ['DELETE FROM {t} WHERE {k} = {key} AND {c} >= 4']),
    Way('tombstone of a partition', rows(6), ['DELETE FROM {t} WHERE {k} = {key}']),
    Way('element of a map', rows(6), ["UPDATE {t} SET {m} = {m} + {{'ключ': 'нов'}}" + AT_1]),
    Way('element of a list', rows(6), ["UPDATE {t} SET {l} = {l} + ['drei']" + AT_1]),
    Way('tombstone of an element', rows(6), ["DELETE {m}['ü'] FROM {t}" + AT_1]),
    Way('tombstone of a collection', rows(6), ["UPDATE {t} SET {e} = {{'γ'}}" + AT_1]),
    Way('field of a user type', rows(6), ["UPDATE {t} SET {u}.b = 'è'" + AT_1]),
    Way('expired cell', rows(6), ["UPDATE {t} USING TTL 1 SET {v} = 'kurz'" + AT_1]),
    Way('expired row', rows(6), ["INSERT INTO {t} ({k}, {c}, {v}) VALUES ({key}, 9, 'kurz') USING TTL 1"]),
    Way('expiring cell', rows(6), ["UPDATE {t} USING TTL 864000 SET {v} = 'lang'" + AT_1]),
]

COUNTS = [f'UPDATE {{t}} SET n = n + {c + 1} WHERE k = {{key}} AND c = {c}' for c in range(3)]
COUNTER_WAYS = [
    Way('counter', [], COUNTS),
    Way('increment', COUNTS, ['UPDATE {t} SET n = n + 40 WHERE k = {key} AND c = 1', 'UPDATE {t} SET n = n - 7 WHERE k = {key} AND c = 1']),
    Way('tombstone of a counter', COUNTS, ['DELETE n FROM {t} WHERE k = {key} AND c = 2']),
]


def wide(first, count):
    return [f"INSERT INTO {{t}} (k, c, v, w) VALUES ({{key}}, {c}, 'ряд {c}', 0x{c % 251:02x}{'5a' * 150})" for c in range(first, first + count)]


WIDE_WAYS = [
    Way('row of a wide partition', wide(0, WIDE_ROWS), ["UPDATE {t} SET v = 'другой' WHERE k = {key} AND c = 1777"]),
    Way('range of a wide partition', wide(0, WIDE_ROWS), ['DELETE FROM {t} WHERE k = {key} AND c > 500 AND c < 700']),
]

# what is purged already is no difference
PURGED_WAYS = [
    Way('purged tombstone', ["INSERT INTO {t} (k, c, v) VALUES ({key}, 1, 'bleibt')"], ['DELETE FROM {t} WHERE k = {key} AND c = 2']),
    Way('purged expired row', ["INSERT INTO {t} (k, c, v) VALUES ({key}, 1, 'bleibt')"],
        ["INSERT INTO {t} (k, c, v) VALUES ({key}, 2, 'weg') USING TTL 1"]),
]
OF_TABLE = {'lz4': WAYS, 'plain': WAYS, 'counted': COUNTER_WAYS, 'wide': WIDE_WAYS, 'graceless': PURGED_WAYS}
NO_DIFFERENCE = {'graceless'}


def key(way, victim):
    return f'{way.name} \u2116{victim}'


def planned(victims):
    """(table, bytes of a key): who misses something of it."""
    return {(table, key(way, victim).encode().hex()): victim for table, ways in OF_TABLE.items() if table not in NO_DIFFERENCE
            for way in ways for victim in victims}


def filled(table, statements, name):
    values = dict(table.names, t=table.name, key=f"'{name}'")
    return [text.format(**values) for text in statements]


def bases(table, victims):
    """Statements for all replicas, gathered into batches."""
    for way in OF_TABLE[table.name]:
        for victim in victims:
            statements = filled(table, way.base, key(way, victim))
            kind = 'COUNTER' if table.name == 'counted' else 'UNLOGGED'
            for at in range(0, len(statements), WIDE_BATCH):
                yield f'BEGIN {kind} BATCH {"; ".join(statements[at:at + WIDE_BATCH])}; APPLY BATCH'


def missed(table, victim):
    """Statements for all replicas but one."""
    for way in OF_TABLE[table.name]:
        yield from filled(table, way.missed, key(way, victim))
