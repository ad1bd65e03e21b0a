"""Tables WITH COMPACT STORAGE of the family: their shapes, what is written to them, and what may be altered."""

from schema import KEYSPACE, WIDE_EVERY, Schema  # first: it says where the generator lies
from tables import Column
from values import KEYABLE, SCALARS, Type, random_type
from writes import NARROW_WRITES, counter_round, delete, insert, literal, update, wide_round

# From this table on every so many are of them: what is recorded of a small family stays as it is.
FIRST, EVERY = 12, 5
SHAPES = ['static', 'dense', 'composite', 'dense without value', 'composite without value', 'static of one column']


def schema(r, n, release):
    """Table number `n` of a family."""
    is_compact = release.only_compact or (n >= FIRST and n % EVERY == 3)
    return (CompactSchema if is_compact else Schema)(r, n, release)


class CompactSchema(Schema):
    compact = True

    def _columns(self):
        r, n = self.r, self.number
        self.wide = self.wide and not self.counter
        self.shape = 'composite' if self.wide else SHAPES[n // EVERY % 2 if self.counter else r.randrange(len(SHAPES))]
        self.tag('compact ' + self.shape)
        key = [Column('k1', Type(KEYABLE[n % len(KEYABLE)]), 'key')]
        if r.random() < 0.4:
            key.append(Column('k2', self.type(lambda: random_type(r, [], 1, True)), 'key'))
        draw = lambda: self.type(lambda: random_type(r, self.udts)).freeze()
        if self.wide:
            second = Type(KEYABLE[n // WIDE_EVERY % len(KEYABLE)])
            return key + [Column('c1', Type('int'), 'clustering'), Column('c2', second, 'clustering'), Column('filler', Type('text'), 'regular')]
        if self.shape.startswith('static'):
            if self.counter:
                return key + [Column(c, Type('counter'), 'regular') for c in ('n1', 'n2')]
            names = ('each',) if 'one' in self.shape else ('each', 'v1', '"V2"', 'v3')
            types = [Type(SCALARS[n % len(SCALARS)])] + [draw() for _ in names[1:]]
            return key + [Column(c, t, 'regular') for c, t in zip(names, types)]
        names = ('c1',) if self.shape.startswith('dense') else ('c1', 'c2', 'c3')[:r.choice([2, 3])]
        clustering = [Column(c, self.type(lambda: random_type(r, self.udts, 1, True)), 'clustering') for c in names]
        clustering[0].type = Type(KEYABLE[(n * 7 + 3) % len(KEYABLE)])
        if self.counter:
            return key + clustering + [Column('n1', Type('counter'), 'regular')]
        if 'without' in self.shape:
            return key + clustering
        each = Type(SCALARS[n % len(SCALARS)]) if n % 2 else draw()
        return key + clustering + [Column('each', each, 'regular')]

    def _row(self):
        while True:
            row = super()._row()
            if len(row) != 1 or row[0].raw:  # alone it may not be empty
                return row

    def create(self):
        for statement in super().create():
            of_table = statement.startswith('CREATE TABLE')
            yield statement.replace(' WITH ', ' WITH COMPACT STORAGE AND ', 1) if of_table else statement

    def alter(self, at):
        """Columns without clustering ones beside them may go, and do not come back."""
        droppable = [c for c in self.values() if c.name != 'each']
        if self.counter or not self.shape.startswith('static') or not droppable or self.r.random() < 0.5:
            return
        c = self.r.choice(droppable)
        self.columns.remove(c)
        self.tag('dropped column')
        yield f'ALTER TABLE {KEYSPACE}.{self.name} DROP {c.name} USING TIMESTAMP {at}'


def row_of(s):
    """A row, or the first values of one: the others are null."""
    row = s.r.choice(s.rows)
    if len(row) > 1 and s.r.random() < 0.3:
        s.tag('null clustering')
        return row[:s.r.randint(1, len(row) - 1)]
    return row


def compact_insert(s, n):
    """With a value: there is no row without."""
    needed = s.values() and s.r.choice(s.values())
    fixed = {needed.name: literal(s, needed.type, 0.1)} if needed else {}
    return insert(s, n, s.r.choice(s.keys), row_of(s), fixed)


def compact_update(s, n):
    if not s.values():
        return compact_insert(s, n)
    rows, s.rows = s.rows, [row_of(s)]
    try:
        return update(s, n)
    finally:
        s.rows = rows


def compact_batch(s, n):
    s.tag('batch')
    many = [s.r.choice([compact_insert, compact_update, delete])(s, n) for _ in range(s.r.randint(2, 4))]
    return f"BEGIN UNLOGGED BATCH {' '.join(one + ';' for one in many)} APPLY BATCH"


def compact_writes(s, n):
    """Round `n` of writes."""
    if s.counter:
        yield from counter_round(s, n)
        return
    if s.wide:
        yield from wide_round(s, n)
    kinds = [compact_insert] * 3 + [compact_update] * 4 + [delete] * 2 + [compact_batch]
    for _ in range(NARROW_WRITES):
        yield s.r.choice(kinds)(s, n)
