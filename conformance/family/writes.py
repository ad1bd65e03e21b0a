"""Writes to a table of the family, all of them with their times, and the questions that are asked of it."""

from schema import DEFAULT_TTL, KEYSPACE
from values import NULL, Type, value

# the clock of all statements: seconds, and microseconds of the same
NOW = 1_700_000_000
EPOCH = NOW * 1_000_000
# what is between two rounds
STEP = 1000
TTLS = [60, 100_000, DEFAULT_TTL]
# questions are asked at this time: what lives long is still there; and soon after the writes
LATER, SOON = 2_000_000_000, NOW + 30
ROUNDS = 3
NARROW_WRITES, WIDE_ROWS = 14, 60
FILLER = 'the quick brown fox jumps over the lazy dog 0123456789 ' * 8
PAGE = 3


def stamp(s, n):
    """Of round `n`: mostly later than the rounds before, and often the same as another's; never later than the round."""
    r = s.r
    return EPOCH + r.choice([n, n, n, r.randint(0, n)]) * STEP + r.choice([0, 1, 2, 2, 5, r.randint(0, STEP - 1)])


def before(n):
    """Later than all rounds before: columns are dropped then. Cassandra cannot read newer cells of a dropped column; it
    keeps this time in milliseconds."""
    return EPOCH + STEP * n


def using(s, at, ttl=0):
    if ttl:
        s.tag('ttl')
    return f' USING TIMESTAMP {at}' + (f' AND TTL {ttl}' if ttl else '')


def literal(s, kind, null=0.0):
    if s.r.random() < null:
        s.tag('null written')
        return NULL.literal
    while True:
        text = value(s.r, kind, alike=True).literal
        if '{}' not in text or not any(u.udt in str(kind) for u in s.udts):  # no fields at all: taken for an empty set, and refused
            return text


def pairs(columns, values):
    return [f'{c.name} = {v.literal}' for c, v in zip(columns, values)]


def insert(s, n, key=None, row=None, fixed=()):
    r = s.r
    key, row = key or r.choice(s.keys), row or r.choice(s.rows)
    given = dict(fixed)
    for c in s.values():
        if c.name not in given and r.random() < 0.6:
            given[c.name] = literal(s, c.type, 0.1)
    if r.random() < 0.1 and s.of('static') and not fixed:  # the static row alone
        row, statics = [], [c.name for c in s.of('static')]
        given = {name: v for name, v in given.items() if name in statics}
        if not given:
            given = {statics[0]: literal(s, s.of('static')[0].type)}
    columns = s.of('key') + s.of('clustering')[:len(row)]
    names = [c.name for c in columns] + list(given)
    values = [v.literal for v in key + row] + list(given.values())
    ttl = r.choice(TTLS) if r.random() < 0.2 else 0
    # A row's marker that expires is older than all cells: Cassandra passes over cells that are not selected if they are
    # older than the marker, and so loses the row if the marker has expired.
    at = EPOCH if ttl or s.default_ttl else stamp(s, n)
    return f"INSERT INTO {KEYSPACE}.{s.name} ({', '.join(names)}) VALUES ({', '.join(values)}){using(s, at, ttl)}"


def assignment(s, c):
    r, name, kind = s.r, c.name, c.type
    if not kind.multi_cell() or r.random() < 0.3:
        if kind.multi_cell():
            s.tag('collection overwritten')
        return f'{name} = {literal(s, kind, 0.12)}'
    if kind.name == 'udt':
        field, inner = r.choice(kind.fields)
        return f'{name}.{field} = {literal(s, inner, 0.2)}'
    if kind.name == 'map' and r.random() < 0.4:
        return f'{name}[{literal(s, kind.args[0])}] = {literal(s, kind.args[1], 0.2)}'
    if kind.name == 'list' and r.random() < 0.3:
        return f'{name} = {literal(s, kind)} + {name}'
    if kind.name in ('set', 'map') and r.random() < 0.25:
        keys = Type('set', [kind.args[0]])
        s.tag('element deletion')
        return f'{name} = {name} - {literal(s, keys)}'
    return f'{name} = {name} + {literal(s, kind)}'


def update(s, n):
    r = s.r
    columns = s.values()
    if not columns:
        return insert(s, n)
    first = r.choice(columns)
    if first.role == 'static':
        s.tag('static row')
    columns = [first] + [c for c in columns if c.role == first.role and c is not first and r.random() < 0.3]
    where = pairs(s.of('key'), r.choice(s.keys))
    if first.role == 'regular':
        where += pairs(s.of('clustering'), r.choice(s.rows))
    ttl = r.choice(TTLS) if r.random() < 0.25 else 0
    sets = ', '.join(assignment(s, c) for c in columns)
    return f"UPDATE {KEYSPACE}.{s.name}{using(s, stamp(s, n), ttl)} SET {sets} WHERE {' AND '.join(where)}"


def bounds(s, rows):
    """A restriction of the clustering columns that leaves a range."""
    r, columns = s.r, s.of('clustering')
    pick = lambda at: r.choice(rows)[at].literal
    row = r.choice(rows)
    fixed = r.randint(0, len(columns) - 1)
    parts = pairs(columns[:fixed], row)
    c = columns[fixed]
    shape = r.random()
    if shape < 0.25 and fixed:
        return parts  # a prefix
    if shape < 0.4 and len(columns) > 1:
        some = columns[:r.randint(1, len(columns))]
        head = '(' + ', '.join(c.name for c in some) + ')'
        tail = lambda: '(' + ', '.join(v.literal for v in r.choice(rows)[:len(some)]) + ')'
        both = [f'{head} {r.choice([">", ">="])} {tail()}', f'{head} {r.choice(["<", "<="])} {tail()}']
        return both if r.random() < 0.5 else [r.choice(both)]
    low, high = f'{c.name} {r.choice([">", ">="])} {pick(fixed)}', f'{c.name} {r.choice(["<", "<="])} {pick(fixed)}'
    return parts + r.choice([[low], [high], [low, high], [low, high]])


def delete(s, n):
    r = s.r
    where, what, kind = pairs(s.of('key'), r.choice(s.keys)), '', r.random()
    columns = s.values()
    if kind < 0.25 and columns:
        c = r.choice(columns)
        s.tag('cell deletion')
        what = ' ' + c.name
        if c.type.multi_cell() and c.type.name in ('set', 'map') and r.random() < 0.6:
            s.tag('element deletion')
            what = f' {c.name}[{literal(s, c.type.args[0])}]'
        if c.role == 'regular':
            where += pairs(s.of('clustering'), r.choice(s.rows))
    elif kind < 0.5:
        s.tag('row deletion' if s.of('clustering') else 'partition deletion')
        where += pairs(s.of('clustering'), r.choice(s.rows))
    elif kind < 0.92 and s.of('clustering'):
        s.tag('range tombstone')
        where += bounds(s, s.rows)
    else:
        s.tag('partition deletion')
    return f"DELETE{what} FROM {KEYSPACE}.{s.name}{using(s, stamp(s, n))} WHERE {' AND '.join(where)}"


def batch(s, n):
    s.tag('batch')
    many = [s.r.choice([insert, update, delete])(s, n) for _ in range(s.r.randint(2, 4))]
    return f"BEGIN UNLOGGED BATCH {' '.join(one + ';' for one in many)} APPLY BATCH"


def counter_round(s, n):
    """Each row is counted up and down; those of the last key are then deleted, for good."""
    r, last = s.r, ROUNDS - 1
    deleted = s.keys[-1]
    for _ in range(NARROW_WRITES):
        c = r.choice(s.values())
        key = r.choice(s.keys if n < last else s.keys[:-1])
        where = pairs(s.of('key'), key) + (pairs(s.of('clustering'), r.choice(s.rows)) if c.role == 'regular' else [])
        yield f"UPDATE {KEYSPACE}.{s.name} SET {c.name} = {c.name} {r.choice('+-')} {r.choice([1, 2, 500, 10 ** 12])} WHERE {' AND '.join(where)}"
    if n == last and len(s.keys) > 1:
        s.tag('counter deletion')
        where = pairs(s.of('key'), deleted) + (pairs(s.of('clustering'), s.rows[0]) if r.random() < 0.5 else [])
        yield f"DELETE FROM {KEYSPACE}.{s.name} WHERE {' AND '.join(where)}"


def wide_round(s, n):
    """Rows over several blocks of the index, and deletions within a block and across their edges."""
    r, table = s.r, f'{KEYSPACE}.{s.name}'
    for c1 in range(WIDE_ROWS):
        for key in s.keys[:1 + c1 % 2]:
            row = [value_of(c1 * 3 + n)] + r.choice(s.rows)[1:]
            yield insert(s, n, key, row, {'filler': f"'{c1} {FILLER[:r.choice([10, 200, 400, 430])]}'"})
    for _ in range(5):
        low = r.randint(0, WIDE_ROWS * 3)
        where = pairs(s.of('key'), r.choice(s.keys)) + [f'c1 {r.choice([">", ">="])} {low}', f'c1 {r.choice(["<", "<="])} {low + r.choice([0, 1, 5, 40])}']
        s.tag('range tombstone')
        # some are older than the rows in them: open over edges of blocks
        yield f"DELETE FROM {table} USING TIMESTAMP {r.choice([EPOCH - 5, stamp(s, n), stamp(s, n)])} WHERE {' AND '.join(where)}"


def value_of(number):
    return type(NULL)(str(number), number.to_bytes(4, 'big'), str(number))


def writes(s, n):
    """Round `n` of writes, each round followed by a flush."""
    if s.counter:
        yield from counter_round(s, n)
        return
    if s.wide:
        yield from wide_round(s, n)
    for _ in range(NARROW_WRITES):
        yield s.r.choice([insert, insert, insert, update, update, update, update, delete, delete, batch])(s, n)


def questions(s):
    """Each with the time at which it is asked, and the size of its pages (0: one page)."""
    r, table = s.r, f'{KEYSPACE}.{s.name}'
    keys, clustering = s.of('key'), s.of('clustering')
    primary = ', '.join(c.name for c in keys + clustering)
    head = ', '.join(c.name for c in keys)
    yield LATER, 0, f'SELECT * FROM {table}'
    yield SOON, 0, f'SELECT * FROM {table}'
    yield LATER, PAGE, f'SELECT * FROM {table}'
    times = [f'writetime({c.name}), ttl({c.name})' for c in s.values() if not c.type.multi_cell()]
    if times and not s.counter:
        yield LATER, 0, f"SELECT {primary}, {', '.join(times)} FROM {table}"
        yield SOON, 0, f"SELECT {primary}, {', '.join(times)} FROM {table}"
    statics = [c.name for c in s.of('static')]
    yield LATER, 0, f"SELECT DISTINCT {', '.join([head] + statics)} FROM {table}"
    yield LATER, 0, f'SELECT count(*) FROM {table}'
    low = r.randint(-2 ** 63, 2 ** 62)
    yield LATER, 0, f'SELECT {primary} FROM {table} WHERE token({head}) > {low} AND token({head}) <= {low + 2 ** 62}'
    if s.values():
        c = r.choice(s.values())
        yield LATER, 0, f'SELECT {primary}, {c.name} FROM {table} PER PARTITION LIMIT 2'
    for key in s.keys:
        where = ' AND '.join(pairs(keys, key))
        yield LATER, 0, f'SELECT * FROM {table} WHERE {where}'
        if not clustering:
            continue
        back = ', '.join(f"{c.name} {'ASC' if o == 'DESC' else 'DESC'}" for c, o in zip(clustering, s.orders))
        yield LATER, 0, f'SELECT * FROM {table} WHERE {where} ORDER BY {back}'
        rows = s.rows if not s.wide else [[value_of(r.randint(0, WIDE_ROWS * 3))] + row[1:] for row in s.rows for _ in range(3)]
        for _ in range(12 if s.wide else 3):
            bound = ' AND '.join([where] + bounds(s, rows))
            yield LATER, 0, f'SELECT * FROM {table} WHERE {bound}'
            yield LATER, 0, f'SELECT * FROM {table} WHERE {bound} ORDER BY {back}'
            yield LATER, 0, f'SELECT {primary} FROM {table} WHERE {bound} ORDER BY {back} LIMIT 2'
        for row in rows[:4]:
            yield LATER, 0, f"SELECT * FROM {table} WHERE {' AND '.join([where] + pairs(clustering, row))}"
        yield LATER, PAGE, f'SELECT {primary} FROM {table} WHERE {where} ORDER BY {back}'
