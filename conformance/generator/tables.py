"""A random table with the user types it uses, and the statements that make and change it."""

from values import NUMBERS, Type, random_type, value


def clustering_value(r, kind, order):
    """Of a set or map in descending order one of one element: Cassandra takes such a column for something other than a
    collection, fails at `{}` by mistake and keeps bound elements in the order in which they come.

    Equal ones look alike: `1.5` and `1.50` are one row, and which of them it shows after writes with both depends on which
    of memtables and SSTables is asked first.
    """
    while True:
        v = value(r, kind, alike=True)
        if order == 'ASC' or kind.name not in ('set', 'map') or v.raw[:4] == bytes((0, 0, 0, 1)):
            return v


class Column:
    def __init__(self, name, kind, role):
        self.name, self.type, self.role = name, kind, role  # role: key, clustering, static, regular


class Table:
    """Its name is its own, so that a statement says which table it concerns."""

    def __init__(self, r, number, counter=False):
        self.name, self.udts, self.counter = f't{number}', [], counter
        if not counter and r.random() < 0.5:
            fields = [(f, random_type(r, [], 1).freeze()) for f in ('fa', 'fb', 'fc')[:r.randint(1, 3)]]
            self.udts.append(Type('udt', udt=f'u{number}', fields=fields))
        columns = [Column(n, random_type(r, [], 1, True), 'key') for n in ('k1', 'k2')[:r.choice([1, 1, 1, 2])]]
        clusterings = r.choice([0, 1, 1, 2, 2, 3])
        columns += [Column(f'c{i + 1}', random_type(r, [], 1, True), 'clustering') for i in range(clusterings)]
        if counter:
            columns += [Column('n1', Type('counter'), 'regular'), Column('n2', Type('counter'), 'regular')]
            if clusterings and r.random() < 0.5:
                columns.append(Column('sn', Type('counter'), 'static'))
        else:
            if clusterings and r.random() < 0.6:
                columns.append(Column('s1', random_type(r, self.udts), 'static'))
                if r.random() < 0.3:
                    columns.append(Column('s2', random_type(r, self.udts), 'static'))
            columns += [Column(n, random_type(r, self.udts), 'regular') for n in ('v1', 'v2', '"V3"', 'v4')[:r.randint(1, 4)]]
            if r.random() < 0.7:
                columns.append(Column('num', Type(r.choice(NUMBERS)), 'regular'))
        self.columns = columns
        self.orders = [r.choice(['ASC', 'ASC', 'DESC']) for _ in range(clusterings)]
        # Few keys and few clusterings: statements shall meet.
        self.keys = [[value(r, c.type) for c in self.of('key')] for _ in range(3)]
        self.rows = [[clustering_value(r, c.type, o) for c, o in zip(self.of('clustering'), self.orders)] for _ in range(4)]

    def of(self, *roles):
        return [c for c in self.columns if c.role in roles]

    def values(self):
        """Columns outside of the primary key."""
        return self.of('static', 'regular')

    def create(self, r, times):
        """`times`: may anything expire?"""
        lines = []
        for u in self.udts:
            lines.append(f"CREATE TYPE {u.udt} ({', '.join(f'{f} {t}' for f, t in u.fields)});")
        body = ', '.join(f'{c.name} {c.type}' + (' static' if c.role == 'static' else '') for c in self.columns)
        keys = ', '.join(c.name for c in self.of('key'))
        primary = ', '.join([f'({keys})'] + [c.name for c in self.of('clustering')])
        options = []
        if 'DESC' in self.orders:
            options.append('CLUSTERING ORDER BY (' + ', '.join(f'{c.name} {o}' for c, o in zip(self.of('clustering'), self.orders)) + ')')
        if times and not self.counter and r.random() < 0.12:
            options.append('default_time_to_live = 1000')
        with_ = ' WITH ' + ' AND '.join(options) if options else ''
        return lines + [f'CREATE TABLE {self.name} ({body}, PRIMARY KEY ({primary})){with_};']

    def alter(self, r):
        """One change of the definition, followed by nothing: what is then read shows it."""
        regular = [c for c in self.of('regular')]
        what = r.random()
        if what < 0.35 and not self.counter:
            name = f'a{r.randint(0, 2)}'
            if all(c.name != name for c in self.columns):
                self.columns.append(Column(name, random_type(r, self.udts), 'static' if self.of('clustering') and r.random() < 0.3 else 'regular'))
            added = next(c for c in self.columns if c.name == name)
            return f"ALTER TABLE {self.name} ADD {name} {added.type}{' static' if added.role == 'static' else ''};"
        if what < 0.6 and len(regular) > 1:
            gone = r.choice(regular)
            self.columns.remove(gone)
            return f"ALTER TABLE {self.name} DROP {gone.name}{r.choice(['', ' USING TIMESTAMP 99999'])};"
        if what < 0.75:
            column = r.choice(self.of('key', 'clustering'))
            old, column.name = column.name, column.name + 'x' if len(column.name) < 4 else column.name[:2]
            return f'ALTER TABLE {self.name} RENAME {old} TO {column.name};'
        if what < 0.85 and self.udts:
            udt = self.udts[0]
            field = f'f{len(udt.fields)}'
            udt.fields.append((field, Type('int')))
            for c in self.columns:
                if c.type.udt == udt.udt:
                    c.type.fields = udt.fields
            return f'ALTER TYPE {udt.udt} ADD {field} int;'
        return r.choice([f'ALTER TABLE {self.name} ALTER num TYPE blob;', f'ALTER TABLE {self.name} DROP k1;', f'ALTER TABLE {self.name} ADD k1 int;',
                         f"ALTER TABLE {self.name} WITH comment = 'x';", f'ALTER TABLE {self.name} WITH default_time_to_live = 0;', f'ALTER TABLE {self.name} DROP nosuch;'])
