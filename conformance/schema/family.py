"""A family of statements that change a schema, drawn from a seed: each fits what those before it left behind.

All that rows of `system_schema` can say is there: keyspaces, tables of all kinds, user types in each other, columns that
come, go, come back and change their name, options, indexes, views, functions, aggregates, masks - and, by INSERT into
`system_schema` itself, what no statement makes on a node without the class: triggers, custom indexes, cells that expire.
"""

import copy
import random

SCALARS = ['ascii', 'bigint', 'blob', 'boolean', 'date', 'decimal', 'double', 'duration', 'float', 'inet', 'int', 'smallint',
           'text', 'time', 'timestamp', 'timeuuid', 'tinyint', 'uuid', 'varint']
KEYS = [t for t in SCALARS if t != 'duration']
OPTIONS = [
    "comment = 'it''s one'", 'gc_grace_seconds = 0', 'gc_grace_seconds = 7777', 'default_time_to_live = 86400',
    'bloom_filter_fp_chance = 0.1', 'crc_check_chance = 0.5', "speculative_retry = '50ms'",
    "speculative_retry = 'MIN(99p,50ms)'", "additional_write_policy = 'NEVER'", "read_repair = 'NONE'",
    "caching = {'keys': 'NONE', 'rows_per_partition': '10'}", "compression = {'enabled': 'false'}",
    "compression = {'class': 'ZstdCompressor', 'chunk_length_in_kb': '64', 'compression_level': '5'}",
    "compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '40'}",
    "compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '3'}",
    'memtable_flush_period_in_ms = 60000', 'min_index_interval = 64 AND max_index_interval = 512',
    "extensions = {'a': 0x00ff, 'b': 0x}", 'cdc = true', "memtable = 'default'",
    'allow_auto_snapshot = false', 'incremental_backups = false',
]
NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'zeta', 'Mixed', 'with space', 'quo"te', 'z_9']
ODD = '%s %d"X'
# names whose orders differ: by bytes, by bytes with a sign, by units of UTF-16, and that of columns
BEYOND = ['a', 'az', 'aé', 'é', 'É', 'Ñandú', 'ω', 'Ωmega', '列', '数据库', '表中的列名字很长很长很长很长很长很长吗', '😀', '🎉party', 'ﬁ', 'Mixed', 'z']
BEYOND_ODD = '列%s %dé'


def ident(name):
    plain = name.isascii() and name.islower() and name.replace('_', 'a').isalnum()
    return name if plain else '"%s"' % name.replace('"', '""')


class Table:
    def __init__(self, name):
        self.name, self.columns, self.gone, self.counter, self.views = name, {}, {}, False, set()
        self.indexes, self.uses = [], set()

    def of(self, kind):
        return [c for c, (k, _) in self.columns.items() if k == kind]


class Keyspace:
    def __init__(self, name):
        self.name, self.types, self.tables, self.functions = name, {}, {}, []
        self.aggregates = []


class Family:
    def __init__(self, seed, beyond=False):
        """`beyond`: columns, fields and types have names beyond ASCII."""
        self.r, self.n, self.keyspaces = random.Random(seed), 0, {}
        self.names, self.odd, self.odd_type = (BEYOND, BEYOND_ODD, 'ü%s%d') if beyond else (NAMES, ODD, '%s%d')

    def fresh(self, prefix, odd='%s%d'):
        """A new name; one in seven is no plain identifier: by `odd`, since only names of columns, fields and types may have any
        character."""
        self.n += 1
        return '%s%d' % (prefix, self.n) if self.r.random() < 0.85 else odd % (prefix.upper(), self.n)

    def type(self, ks, depth=2, frozen=False):
        r = self.r
        pick = r.random()
        if depth == 0 or pick < 0.45:
            return r.choice(SCALARS)
        inner = lambda: self.type(ks, depth - 1, True)
        if pick < 0.75:
            made = {0: lambda: 'list<%s>' % inner(), 1: lambda: 'set<%s>' % r.choice(KEYS),
                    2: lambda: 'map<%s, %s>' % (r.choice(KEYS), inner())}[r.randrange(3)]()
        elif pick < 0.85:
            return 'frozen<tuple<%s, %s>>' % (inner(), inner())
        elif pick < 0.88:
            return 'vector<float, %d>' % r.randint(1, 4)
        elif ks.types:
            made = ident(r.choice(sorted(ks.types)))
            if not frozen and any('<' in t and 'frozen' not in t for t in ks.types.get(made, {}).values()):
                frozen = True
        else:
            return r.choice(SCALARS)
        return 'frozen<%s>' % made if frozen or r.random() < 0.4 else made

    def create_keyspace(self):
        name = self.fresh('k')
        self.keyspaces[name] = Keyspace(name)
        return 'CREATE KEYSPACE %s WITH replication = %s%s' % (ident(name), self.replication(), self.r.choice(['', ' AND durable_writes = false']))

    def replication(self):
        return self.r.choice(["{'class': 'SimpleStrategy', 'replication_factor': '1'}",
                              "{'class': 'NetworkTopologyStrategy', 'datacenter1': '1'}", "{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}"])

    def alter_keyspace(self, ks):
        return 'ALTER KEYSPACE %s WITH replication = %s AND durable_writes = %s' % (ident(ks.name), self.replication(), self.r.choice(['true', 'false']))

    def drop_keyspace(self, ks):
        if len(self.keyspaces) < 3:
            return None
        del self.keyspaces[ks.name]
        return 'DROP KEYSPACE ' + ident(ks.name)

    def create_type(self, ks):
        name = self.fresh('u', self.odd_type)
        fields = {f: self.type(ks, 1, True) for f in self.r.sample(self.names, self.r.randint(1, 4))}
        ks.types[name] = fields
        return 'CREATE TYPE %s.%s (%s)' % (ident(ks.name), ident(name), ', '.join('%s %s' % (ident(f), t) for f, t in fields.items()))

    def alter_type(self, ks):
        if not ks.types:
            return None
        name = self.r.choice(sorted(ks.types))
        fields = ks.types[name]
        head = 'ALTER TYPE %s.%s ' % (ident(ks.name), ident(name))
        if self.r.random() < 0.5:
            old, new = self.r.choice(sorted(fields)), self.fresh('r', self.odd)
            fields[new] = fields.pop(old)
            return head + 'RENAME %s TO %s' % (ident(old), ident(new))
        new = self.fresh('n', self.odd)
        fields[new] = self.r.choice(SCALARS)
        return head + 'ADD %s %s' % (ident(new), fields[new])

    def drop_type(self, ks):
        used = ' '.join(t for table in ks.tables.values() for _, t in table.columns.values())
        used += ' '.join(t for fields in ks.types.values() for t in fields.values())
        free = [name for name in ks.types if ident(name) not in used]
        if not free:
            return None
        name = self.r.choice(free)
        del ks.types[name]
        return 'DROP TYPE %s.%s' % (ident(ks.name), ident(name))

    def create_table(self, ks):
        r, table = self.r, Table(self.fresh('t'))
        names = r.sample(self.names, len(self.names))
        keys = [names.pop() for _ in range(r.choice([1, 1, 2, 3]))]
        clustering = [names.pop() for _ in range(r.choice([0, 1, 1, 2]))]
        table.counter = r.random() < 0.12
        for c in keys:
            table.columns[c] = ('key', r.choice(KEYS))
        for c in clustering:
            table.columns[c] = ('clustering', r.choice(KEYS + ['frozen<list<int>>', 'frozen<tuple<int, text>>']))
        for c in names[:r.randint(1, 4)]:
            kind = 'static' if clustering and r.random() < 0.25 else 'regular'
            table.columns[c] = (kind, 'counter' if table.counter else self.type(ks))
        compact = len(clustering) == 1 and len(table.of('regular')) == 1 and not table.of('static') and r.random() < 0.3
        if compact:
            c = table.of('regular')[0]
            table.columns[c] = ('regular', 'counter' if table.counter else 'text')
        columns = ', '.join('%s %s%s' % (ident(c), t, ' static' if k == 'static' else '') for c, (k, t) in table.columns.items())
        key = ', '.join(['(%s)' % ', '.join(map(ident, keys))] + list(map(ident, clustering)))
        options = [] if table.counter else r.sample(OPTIONS, r.choice([0, 0, 1, 3]))
        options = [o for n, o in enumerate(options) if o.split(' ')[0] not in {p.split(' ')[0] for p in options[:n]}]
        if compact:
            options.append('COMPACT STORAGE')
        if clustering and r.random() < 0.6:
            options.append('CLUSTERING ORDER BY (%s)' % ', '.join('%s %s' % (ident(c), r.choice(['ASC', 'DESC'])) for c in clustering))
        ks.tables[table.name] = table
        return 'CREATE TABLE %s.%s (%s, PRIMARY KEY (%s))%s' % (
            ident(ks.name), ident(table.name), columns, key, ' WITH ' + ' AND '.join(options) if options else '')

    def table(self, ks):
        return self.r.choice([ks.tables[t] for t in sorted(ks.tables)]) if ks.tables else None

    def alter_table(self, ks):
        r, table = self.r, self.table(ks)
        if table is None:
            return None
        head = 'ALTER TABLE %s.%s ' % (ident(ks.name), ident(table.name))
        what = r.choice(['add', 'add', 'drop', 'drop', 'back', 'rename', 'with', 'with', 'mask'])
        loose = [c for c in table.of('regular') + table.of('static') if not any(c in i for i in table.indexes)]
        if what == 'add':
            new = [self.fresh('n', self.odd) for _ in range(r.choice([1, 1, 2]))]
            for c in new:
                table.columns[c] = ('regular', 'counter' if table.counter else self.type(ks))
            return head + 'ADD (%s)' % ', '.join('%s %s' % (ident(c), table.columns[c][1]) for c in new)
        if what == 'drop' and len(loose) > 1 and not table.views:
            c = r.choice(loose)
            table.gone[c] = table.columns.pop(c)
            return head + 'DROP %s%s' % (ident(c), r.choice(['', '', ' USING TIMESTAMP %d' % r.randint(1, 10**12)]))
        if what == 'back' and table.gone and not table.counter:
            c = r.choice(sorted(table.gone))
            kind, kept = table.gone.pop(c)
            table.columns[c] = (kind, kept)
            return head + 'ADD %s %s%s' % (ident(c), kept, ' static' if kind == 'static' else '')
        if what == 'rename' and not table.views:
            old, new = r.choice(table.of('key') + table.of('clustering')), self.fresh('m', self.odd)
            table.columns = {new if c == old else c: v for c, v in table.columns.items()}
            return head + 'RENAME %s TO %s' % (ident(old), ident(new))
        if what == 'with':
            return head + 'WITH ' + r.choice(OPTIONS)
        if what == 'mask' and not table.counter:
            c = r.choice(sorted(table.columns))
            return head + 'ALTER %s %s' % (ident(c), r.choice(['MASKED WITH DEFAULT', 'MASKED WITH mask_null()', 'DROP MASKED']))
        return None

    def drop_table(self, ks):
        table = self.table(ks)
        if table is None or table.views:
            return None
        del ks.tables[table.name]
        return 'DROP TABLE %s.%s' % (ident(ks.name), ident(table.name))

    def index(self, ks):
        r, table = self.r, self.table(ks)
        if table is None or table.counter:
            return None
        if table.indexes and r.random() < 0.4:
            name, _ = table.indexes.pop()
            return 'DROP INDEX %s.%s' % (ident(ks.name), ident(name))
        plain = [c for c in table.of('regular') if table.columns[c][1] in KEYS]
        if not plain:
            return None
        name, c = self.fresh('i'), r.choice(plain)
        table.indexes.append((name, c))
        return 'CREATE INDEX %s ON %s.%s (%s)%s' % (ident(name), ident(ks.name), ident(table.name), ident(c), r.choice(['', '', " USING 'sai'"]))

    def view(self, ks):
        r, table = self.r, self.table(ks)
        if table is None or table.counter or table.gone:
            return None
        if table.views and r.random() < 0.4:
            name = table.views.pop()
            return 'DROP MATERIALIZED VIEW %s.%s' % (ident(ks.name), ident(name))
        if table.of('static'):
            return None
        keys, name = table.of('key') + table.of('clustering'), self.fresh('v')
        table.views.add(name)
        where = ' AND '.join('%s IS NOT NULL' % ident(c) for c in keys)
        r.shuffle(keys)
        return 'CREATE MATERIALIZED VIEW %s.%s AS SELECT %s FROM %s.%s WHERE %s PRIMARY KEY (%s)%s' % (
            ident(ks.name), ident(name), r.choice(['*', ', '.join(map(ident, keys))]), ident(ks.name), ident(table.name),
            where, ', '.join(map(ident, keys)), r.choice(['', " WITH comment = 'seen'"]))

    def function(self, ks):
        r = self.r
        if ks.functions and r.random() < 0.3:
            name, argument = ks.functions[-1]
            if r.random() < 0.5:
                ks.functions.pop()
                return 'DROP FUNCTION %s.%s (%s, int)' % (ident(ks.name), ident(name), argument)
            made = self.fresh('g')
            ks.aggregates.append(made)
            return 'CREATE AGGREGATE %s.%s (int) SFUNC %s STYPE %s%s' % (ident(ks.name), ident(made), ident(name), argument, r.choice(['', ' INITCOND 7' if argument == 'int' else '']))
        if ks.aggregates and r.random() < 0.3:
            return 'DROP AGGREGATE %s.%s (int)' % (ident(ks.name), ident(ks.aggregates.pop()))
        name, argument = (r.choice(ks.functions)[0] if ks.functions and r.random() < 0.5 else self.fresh('f')), r.choice(['int', 'bigint', 'text', 'list<int>'])
        ks.functions.append((name, argument))
        return 'CREATE OR REPLACE FUNCTION %s.%s (state %s, more int) %s RETURNS %s LANGUAGE java AS $$ return state; $$' % (
            ident(ks.name), ident(name), argument, r.choice(['CALLED ON NULL INPUT', 'RETURNS NULL ON NULL INPUT']), argument)

    def own_row(self, ks):
        """A row of `system_schema` itself; it shows in the version once a statement follows."""
        r, table = self.r, self.table(ks)
        if table is None:
            return None
        at = "'%s', '%s'" % (ks.name, table.name.replace("'", "''"))
        return r.choice([
            "INSERT INTO system_schema.triggers (keyspace_name, table_name, trigger_name, options) VALUES (%s, 'tr%d', {'class': 'org.example.Audit'})" % (at, r.randint(0, 3)),
            "DELETE FROM system_schema.triggers WHERE keyspace_name = '%s' AND table_name = '%s'" % (ks.name, table.name.replace("'", "''")),
            "INSERT INTO system_schema.dropped_columns (keyspace_name, table_name, column_name, dropped_time, kind, type) VALUES (%s, 'of old', 12345, 'regular', 'int') USING TTL %d" % (at, r.choice([1, 300_000_000])),
            "UPDATE system_schema.tables USING TTL 300000000 SET comment = 'for a while' WHERE keyspace_name = '%s' AND table_name = '%s'" % (ks.name, table.name.replace("'", "''")),
            "DELETE read_repair_chance FROM system_schema.tables WHERE keyspace_name = '%s' AND table_name = '%s'" % (ks.name, table.name.replace("'", "''")),
        ])

    def statement(self):
        r = self.r
        if len(self.keyspaces) < 2 or r.random() < 0.03:
            return self.create_keyspace()
        ks = self.keyspaces[r.choice(sorted(self.keyspaces))]
        kinds = [(self.alter_keyspace, 3), (self.drop_keyspace, 2), (self.create_type, 8), (self.alter_type, 6), (self.drop_type, 4),
                 (self.create_table, 22), (self.alter_table, 34), (self.drop_table, 7), (self.index, 9), (self.view, 7),
                 (self.function, 8), (self.own_row, 5)]
        kind = r.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        return kind(ks)

    def statements(self, count):
        """To be sent whether the last one was refused, after which all is as it was before it."""
        while count:
            before = copy.deepcopy(self.keyspaces)
            statement = self.statement()
            if statement:
                count -= 1
                if (yield statement):
                    self.keyspaces = before
