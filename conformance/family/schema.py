"""One table of the family: its columns, its options, and what it is there to show."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'generator'))

from tables import Column, clustering_value  # noqa: E402
from values import KEYABLE, POOLS, SCALARS, Type, random_type, value  # noqa: E402

KEYSPACE = 'family'
COMPRESSORS = ['LZ4Compressor', 'SnappyCompressor', 'DeflateCompressor', 'ZstdCompressor', 'NoopCompressor', None]
CHUNK_KB = [4, 8, 16, 32, 64]
COMPRESS_RATIOS = [None, None, '1.1', '2', '64']
FALSE_POSITIVES = [None, None, '0.1', '0.0005', '1.0']
GC_GRACES = [None, 0, 315_360_000]
STRATEGIES = ['SizeTieredCompactionStrategy', 'LeveledCompactionStrategy', 'TimeWindowCompactionStrategy', 'UnifiedCompactionStrategy']
KEYS, ROWS = 5, 9
WIDE_KEYS = 2
# every so many schemas one of these kinds
COUNTERS_EVERY, WIDE_EVERY = 11, 6
# two of five schemas have names beyond ASCII
NAMED_EVERY, NAMED = 5, (1, 3)
NAME_LENGTH = 20
ASCII, LETTERS = 'aAzZ', ('aAzZ', 'àéÎñßŠ', 'αΩςΣλ', '列数据库表中的名字', '😀🎉🦀', 'ﬁａ')
# as long as 32 bits of seconds allow, from the time of the campaign on
DEFAULT_TTL = 310_000_000


class Release:
    """What the release whose files are compared can do."""

    def __init__(self, name):
        self.vectors = self.unified = not name.startswith('4.1')
        self.only_compact = name.endswith('-compact')


class Schema:
    """Table number `n`; what the number divides into makes sure that everything comes about in a family of some size."""

    compact = False

    def __init__(self, r, n, release):
        self.r, self.number, self.release = r, n, release
        self.name, self.udts, self.tags = f't{n:03}', [], set()
        self.counter = n % COUNTERS_EVERY == 5
        self.wide = not self.counter and n % WIDE_EVERY == 4
        self.compacted = n % 3 != 0
        self.default_ttl = 0
        self.named = n % NAMED_EVERY in NAMED
        if not self.counter and r.random() < 0.45:
            names = ('"列a"', '"é"', '"😀Z"') if self.named else ('fa', 'fb', 'fc')
            fields = [(f, self.type(lambda: random_type(r, [], 1).freeze())) for f in names[:r.randint(1, 3)]]
            self.udts.append(Type('udt', udt=f'"ü{n:03}"' if self.named else f'u{n:03}', fields=fields))
        self.columns = self._columns()
        if self.named:
            self.tag('names beyond ASCII')
            for c in self.columns:
                if c.name not in self.kept():
                    c.name = self._name(c)
        self.gone = []  # dropped: (name, type, role)
        self.orders = ['DESC' if (n // (i + 1)) % 2 else 'ASC' for i, _ in enumerate(self.of('clustering'))]
        self.keys = self._distinct(WIDE_KEYS if self.wide else KEYS, self._key)
        self.rows = self._distinct(ROWS, self._row)
        self.tag('wide' if self.wide else 'counter' if self.counter else 'narrow')
        self.tag('compacted' if self.compacted else 'several sstables')
        for c in self.columns:
            self.tag_type(c)
        if 'DESC' in self.orders:
            self.tag('reversed clustering')

    def type(self, draw):
        """One that the release knows."""
        while True:
            kind = draw()
            if self.release.vectors or 'vector' not in str(kind):
                return kind

    def kept(self):
        """Names of columns that statements of the family speak of."""
        return ('each', 'filler', 'c1') if self.wide else ('each',)

    def _name(self, column):
        """One that no other column has. Of columns of several cells it begins in ASCII: where it does not, Cassandra writes no
        deletion of what they had, and fails to merge rows without another such column."""
        r, taken = self.r, {c.name.lower() for c in self.columns}
        within = column.type.multi_cell()
        while True:
            length = r.choice([1, 2, 3, 6, 7, 8, 9, NAME_LENGTH])
            name = r.choice(ASCII) if within else ''
            name += ''.join(r.choice(r.choice(LETTERS)) for _ in range(length - len(name)))
            if f'"{name}"'.lower() not in taken:
                return f'"{name}"'

    def _columns(self):
        r, n = self.r, self.number
        key = [Column(c, self.type(lambda: random_type(r, [], 1, True)), 'key') for c in ('k1', 'k2', 'k3')[:r.choice([1, 1, 1, 2, 3])]]
        key[0].type = Type(KEYABLE[n % len(KEYABLE)])
        if self.wide:
            clustering = [Column('c1', Type('int'), 'clustering'), Column('c2', Type(KEYABLE[n // WIDE_EVERY % len(KEYABLE)]), 'clustering')]
        else:
            names = ('c1', 'c2', 'c3')[:r.choice([0, 1, 1, 2, 2, 3])]
            clustering = [Column(c, self.type(lambda: random_type(r, self.udts, 1, True)), 'clustering') for c in names]
            if clustering:
                clustering[0].type = Type(KEYABLE[(n * 7 + 3) % len(KEYABLE)])
        if self.counter:
            rest = [Column('n1', Type('counter'), 'regular'), Column('n2', Type('counter'), 'regular')]
            return key + clustering + rest + ([Column('sn', Type('counter'), 'static')] if clustering and r.random() < 0.6 else [])
        draw = lambda: self.type(lambda: random_type(r, self.udts))
        rest = []
        if clustering and r.random() < 0.6:
            rest += [Column(c, draw(), 'static') for c in ('s1', '"S2"')[:r.choice([1, 1, 2])]]
        rest += [Column(c, draw(), 'regular') for c in ('v1', 'v2', '"V3"', 'v4', 'v5')[:r.choice([0, 1, 2, 3, 4, 5])]]
        rest.append(Column('each', Type(SCALARS[n % len(SCALARS)]), 'regular'))
        if n % 4 == 0:
            rest.append(Column('many', self.type(lambda: self._collection(n // 4)), 'regular'))
        if self.wide:
            rest.append(Column('filler', Type('text'), 'regular'))
        if n % 13 == 12 and not self.wide:  # nothing but a primary key
            rest = [c for c in rest if c.role == 'static']
        return key + clustering + rest

    def _collection(self, n):
        """Not frozen, each kind in turn."""
        r = self.r
        inner = random_type(r, [], 1).freeze()
        kinds = [Type('list', [inner]), Type('set', [random_type(r, [], 1, True).freeze()]), Type('map', [Type('text'), inner])]
        kinds += [self.udts[0]] if self.udts else []
        return kinds[n % len(kinds)]

    def of(self, *roles):
        return [c for c in self.columns if c.role in roles]

    def values(self):
        return self.of('static', 'regular')

    def tag(self, what):
        self.tags.add(what)

    def tag_type(self, column):
        kind, text = column.type, str(column.type)
        if column.role == 'static':
            self.tag('static column')
        for scalar in list(POOLS) + ['counter']:
            if scalar in text.replace('<', ' ').replace('>', ' ').replace(',', ' ').split():
                self.tag('type ' + scalar)
        if kind.name in ('list', 'set', 'map', 'udt'):
            self.tag(f"{kind.name}{'' if kind.multi_cell() else ' frozen'}")
        for word in ('tuple', 'vector'):
            if word in text:
                self.tag(word)

    def _distinct(self, count, draw):
        found = {}
        for _ in range(count * 3):
            drawn = draw()
            found.setdefault(tuple(v.raw for v in drawn), drawn)
        return list(found.values())[:count]

    def _key(self):
        while True:
            key = [value(self.r, c.type, alike=True) for c in self.of('key')]
            if len(key) > 1 or key[0].raw:  # alone it may not be empty
                return key

    def _row(self):
        return [clustering_value(self.r, c.type, o) for c, o in zip(self.of('clustering'), self.orders)]

    def create(self):
        r, n = self.r, self.number
        for u in self.udts:
            yield f"CREATE TYPE {KEYSPACE}.{u.udt} ({', '.join(f'{f} {t}' for f, t in u.fields)})"
        body = ', '.join(f'{c.name} {c.type}' + (' static' if c.role == 'static' else '') for c in self.columns)
        primary = ', '.join([f"({', '.join(c.name for c in self.of('key'))})"] + [c.name for c in self.of('clustering')])
        options = []
        if self.orders:
            options.append('CLUSTERING ORDER BY (' + ', '.join(f'{c.name} {o}' for c, o in zip(self.of('clustering'), self.orders)) + ')')
        options.append('compression = ' + self._compression())
        strategy = STRATEGIES[n % len(STRATEGIES)]
        if strategy.startswith('Unified') and not self.release.unified:
            strategy = STRATEGIES[0]
        self.tag(strategy)
        options.append(f"compaction = {{'class': '{strategy}', 'enabled': 'false'}}")
        bloom = FALSE_POSITIVES[n % len(FALSE_POSITIVES)]
        if bloom:
            options.append(f'bloom_filter_fp_chance = {bloom}')
            self.tag(f'bloom_filter_fp_chance {bloom}')
        grace = GC_GRACES[n % len(GC_GRACES)]
        if grace is not None:
            options.append(f'gc_grace_seconds = {grace}')
            self.tag(f'gc_grace_seconds {grace}')
        if n % 9 == 2:
            options.append('min_index_interval = 2 AND max_index_interval = 4')
            self.tag('min_index_interval')
        if not self.counter and r.random() < 0.1:
            self.default_ttl = DEFAULT_TTL
            options.append(f'default_time_to_live = {DEFAULT_TTL}')
            self.tag('default_time_to_live')
        yield f"CREATE TABLE {KEYSPACE}.{self.name} ({body}, PRIMARY KEY ({primary})) WITH {' AND '.join(options)}"

    def _compression(self):
        n = self.number
        name = COMPRESSORS[n % len(COMPRESSORS)]
        self.tag(name or 'not compressed')
        if not name:
            return "{'enabled': false}"
        chunk, ratio = CHUNK_KB[n // 2 % len(CHUNK_KB)], COMPRESS_RATIOS[n // 3 % len(COMPRESS_RATIOS)]
        self.tag(f'chunks of {chunk} KiB')
        parts = [f"'class': '{name}'", f"'chunk_length_in_kb': '{chunk}'"]
        if ratio:
            parts.append(f"'min_compress_ratio': '{ratio}'")
            self.tag(f'min_compress_ratio {ratio}')
        return '{' + ', '.join(parts) + '}'

    def _may_go(self, column):
        """Cassandra refuses to drop a user type that is not frozen; without the last collection that is not frozen, of the
        static columns or of the others, it fails to compact what holds cells of it (the reducer of rows has no builder for them)."""
        if not column.type.multi_cell():
            return True
        return column.type.udt is None and any(c is not column and c.role == column.role and c.type.multi_cell() for c in self.columns)

    def alter(self, at):
        """Statements between two rounds: something dropped, something new, something dropped that comes back."""
        r = self.r
        if self.counter:
            return
        droppable = [c for c in self.values() if c.name not in self.kept() and self._may_go(c)]
        if self.gone and r.random() < 0.6:
            name, kind, role = self.gone.pop()
            self.columns.append(Column(name, kind, role))
            self.tag('dropped column back')
            yield f"ALTER TABLE {KEYSPACE}.{self.name} ADD {name} {kind}{' static' if role == 'static' else ''}"
        elif droppable and r.random() < 0.45:
            c = r.choice(droppable)
            self.columns.remove(c)
            if not any(u.udt in str(c.type) for u in self.udts):  # Cassandra keeps it as a tuple, and refuses the user type then
                self.gone.append((c.name, c.type, c.role))
            self.tag('dropped column')
            yield f'ALTER TABLE {KEYSPACE}.{self.name} DROP {c.name} USING TIMESTAMP {at}'
        if r.random() < 0.2:
            role = 'static' if self.of('clustering') and r.random() < 0.3 else 'regular'
            name = f'a{len(self.columns)}{len(self.gone)}'
            c = Column(name, self.type(lambda: random_type(r, self.udts)), role)
            if self.named:
                c.name = name = self._name(c)
            if all(c.name != other.name for other in self.columns):
                self.columns.append(c)
                self.tag('added column')
                self.tag_type(c)
                yield f"ALTER TABLE {KEYSPACE}.{self.name} ADD {name} {c.type}{' static' if role == 'static' else ''}"
        if self.udts and r.random() < 0.25:
            udt = self.udts[0]
            field = f'g{len(udt.fields)}'
            udt.fields.append((field, Type('int')))
            for c in self.columns:
                for kind in [c.type] + c.type.args:
                    if kind.udt == udt.udt:
                        kind.fields = udt.fields
            self.tag('added field')
            yield f'ALTER TYPE {KEYSPACE}.{udt.udt} ADD {field} int'
