"""Random reads of a table: what is selected, of which rows, in which order, how many."""

from statements import Words, clustering, where_key
from values import NUMBERS, value

# Source type -> types that it can be cast to, and some that it cannot.
CASTS = {'timestamp': ['date', 'text'], 'date': ['timestamp', 'text'], 'timeuuid': ['timestamp', 'date', 'text'], 'boolean': ['text', 'ascii'], 'uuid': ['text'], 'time': ['text'],
         'inet': ['text'], 'ascii': ['text'], 'text': ['text', 'int'], 'blob': ['text']}


def element(w, c, markers=True):
    """An element, slice or field of a collection or user type."""
    r, kind = w.r, c.type
    put = w.put if markers else (lambda t: value(r, t).literal)
    if kind.name == 'udt':
        return f'{c.name}.{r.choice(kind.fields)[0]}'
    if kind.name == 'list':
        return f"{c.name}[{r.choice(['0', '1'])}]"
    key = kind.args[0]
    if r.random() < 0.6:
        return f'{c.name}[{put(key)}]'
    low, high = r.choice([(True, True), (True, False), (False, True)])
    return f"{c.name}[{put(key) if low else ''}..{put(key) if high else ''}]"


def scalar_call(w, t, c):
    """A native function of one column."""
    r, kind, n = w.r, c.type, c.name
    reversed_ = c.role == 'clustering' and 'DESC' in t.orders  # its type is no collection or vector to Cassandra's functions
    options = [f'to_json({n})', f'mask_default({n})', f'mask_null({n})', f'mask_replace({n}, {w.put(kind)})', f'mask_hash({n})']
    if kind.numeric():
        options += [f'abs({n})', f'{n} + {n}', f'{n} * 2', f'-{n}', f'{n} - 1', f'round({n})'] + [f'CAST({n} AS {t})' for t in r.sample(NUMBERS + ['text'], 3)]
    if kind.name in CASTS:
        options += [f'CAST({n} AS {t})' for t in CASTS[kind.name]]
    if kind.collection() and not reversed_:
        options += [f'collection_count({n})'] * 2
        if kind.name == 'map':
            options += [f'map_keys({n})', f'map_values({n})']
        else:
            options += [f'collection_min({n})', f'collection_max({n})', f'collection_sum({n})', f'collection_avg({n})']
    if kind.name in ('text', 'ascii'):
        options += [f'mask_inner({n}, 1, 1)', f"mask_outer({n}, 1, null, '#')", f"{n} + 'x'", f'text_as_blob({n})']
    if kind.name in ('timestamp', 'date', 'timeuuid'):
        options += [f'to_date({n})', f'to_timestamp({n})', f'to_unix_timestamp({n})', f'floor({n}, 1h)', f'{n} + 1d', f'{n} - 1mo']
    if kind.name == 'time':
        options += [f'floor({n}, 1h)', f'{n} + 1h']
    if kind.name == 'vector' and kind.args[0].name == 'float' and not reversed_:
        options += [f'similarity_cosine({n}, {w.put(kind)})', f'similarity_euclidean({n}, {w.put(kind)})', f'similarity_dot_product({n}, {n})']
    if kind.scalar() and kind.name not in ('blob', 'duration'):
        options += [f'{kind}_as_blob({n})', f'blob_as_{kind}({kind}_as_blob({n}))']
    return r.choice(options)


def aggregate(w, c):
    r, kind = w.r, c.type
    options = ['count(*)', f'count({c.name})', f'min({c.name})', f'max({c.name})', f'count({c.name}) AS n', 'count(1)']
    if kind.numeric() or kind.name == 'counter':
        options += [f'sum({c.name})', f'avg({c.name})', f'max(abs({c.name}))', f'sum(CAST({c.name} AS double))', f'abs(max({c.name}))', f'sum({c.name}) + 1']
    return r.choice(options)


def selector(w, t):
    r, c = w.r, w.r.choice(t.columns)
    kind = r.random()
    if kind < 0.4:
        return c.name + (f' AS x{r.randint(0, 1)}' if r.random() < 0.15 else '')
    if kind < 0.55 and (c.type.collection() or c.type.name == 'udt') and c.role != 'clustering':
        return element(w, c)
    if kind < 0.75:
        what = r.choice(['writetime', 'ttl', 'maxwritetime'])
        c = r.choice(t.values()) if r.random() < 0.95 else c
        if c.type.multi_cell() and r.random() < 0.5:
            return f'{what}({element(w, c, markers=False)})'  # with a marker Cassandra fails by mistake
        return f'{what}({c.name})'
    if kind < 0.8:
        return f"token({', '.join(k.name for k in t.of('key'))})"
    if kind < 0.84:
        # Not of clusterings in descending order: they change Cassandra's digest of the metadata (docs/differences.md).
        some = [k for k in t.columns if k.role != 'clustering' or 'DESC' not in t.orders]
        two = r.sample(some, min(2, len(some)))
        return f"({', '.join(k.name for k in two)})"
    return scalar_call(w, t, c)


def clause(w, t):
    """(selection, aggregates there are)"""
    r = w.r
    kind = r.random()
    if kind < 0.3:
        return '*', False
    if kind < 0.42:
        return ', '.join(aggregate(w, r.choice(t.columns)) for _ in range(r.randint(1, 3))), True
    if kind < 0.5:
        some = t.of('key') + (t.of('static') if r.random() < 0.7 else []) + (t.of('regular')[:1] if r.random() < 0.08 else [])
        return 'DISTINCT ' + ', '.join(c.name for c in some), False
    items = [selector(w, t) for _ in range(r.randint(1, 4))]
    if r.random() < 0.05:
        items.append(aggregate(w, r.choice(t.columns)))
    return ', '.join(items), False


def token_range(w, t):
    r = w.r
    head = f"token({', '.join(c.name for c in t.of('key'))})"
    shape = lambda: f"token({', '.join(w.put(c.type, v) for c, v in zip(t.of('key'), r.choice(t.keys)))})" if r.random() < 0.7 else w.number(r.choice([0, -3000000000000000000, 5000000000000000000]), 'bigint:0')
    parts = [f"{head} {r.choice(['>', '>=', '<', '<='])} {shape()}"]
    if r.random() < 0.3:
        parts.append(f"{head} {r.choice(['<', '<='])} {shape()}")
    return parts


def filter_on(w, t):
    """A restriction that takes ALLOW FILTERING."""
    r, c = w.r, w.r.choice(t.values() + t.of('key')[:1])
    kind = c.type
    if kind.name == 'counter':
        return f"{c.name} {r.choice(['=', '>', '<='])} {w.number(2, 'bigint:2')}"
    if kind.collection() and r.random() < 0.8:
        if kind.name == 'map':
            return r.choice([lambda: f'{c.name} CONTAINS KEY {w.put(kind.args[0])}', lambda: f'{c.name} CONTAINS {w.put(kind.args[1])}', lambda: f'{c.name}[{w.put(kind.args[0])}] = {w.put(kind.args[1])}'])()
        return f'{c.name} CONTAINS {w.put(kind.args[0])}'
    op = r.choice(['=', '=', '=', '<', '>', '<=', '>=', 'IN', '!=', 'LIKE'] if r.random() < 0.2 else ['=', '=', '<', '>', '<=', '>='])
    if op == 'IN':
        return f"{c.name} IN ({', '.join(w.put(kind) for _ in range(r.randint(0, 3)))})"
    return f'{c.name} {op} {w.put(kind)}'


def order(r, t):
    columns = t.of('clustering')
    if not columns:
        return 'k1'
    names = columns[:r.randint(1, len(columns))]
    flip = r.random() < 0.6
    parts = []
    for c, o in zip(names, t.orders):
        way = {'ASC': 'DESC', 'DESC': 'ASC'}[o] if flip else o
        if r.random() < 0.06:
            way = 'DESC'
        parts.append(c.name if way == 'ASC' and r.random() < 0.5 else f'{c.name} {way}')
    return ', '.join(parts)


def select(r, t, pages=True):
    # Several pages are asked for with one text, bound values only when prepared.
    paged = pages and r.random() < 0.2
    w = Words(r, r.choice(['literal', 'bind']) if paged else None)
    what, aggregates = clause(w, t)
    json = 'JSON ' if r.random() < 0.07 else ''
    parts, filtering = [], False
    kind = r.random()
    if kind < 0.6:
        parts = where_key(w, t)
        if not what.startswith('DISTINCT') or r.random() < 0.05:
            parts += clustering(w, t)
    elif kind < 0.7:
        parts = token_range(w, t)
    elif kind < 0.8:
        parts = clustering(w, t, least=1)  # of all partitions with IN () Cassandra makes one empty page for each static row
        filtering = bool(parts)
    if r.random() < 0.2:
        parts.append(filter_on(w, t))
        filtering = True
    if r.random() < 0.05:
        r.shuffle(parts)
    cql = f'SELECT {json}{what} FROM {t.name}' if not json or not what.startswith('DISTINCT') else f'SELECT {what} FROM {t.name}'
    if parts:
        cql += ' WHERE ' + ' AND '.join(parts)
    if r.random() < (0.35 if aggregates else 0.04):
        columns = t.of('key', 'clustering')
        cql += ' GROUP BY ' + ', '.join(c.name for c in columns[:r.randint(1, len(columns))])
    if kind < 0.6 and r.random() < 0.3:
        cql += ' ORDER BY ' + order(r, t)
    if r.random() < 0.12:
        n = r.randint(1, 3)
        cql += ' PER PARTITION LIMIT ' + w.number(n, f'int:{n}')
    if r.random() < 0.22:
        n = r.choice([1, 2, 3, 5])
        cql += ' LIMIT ' + w.number(n, f'int:{n}')
    if filtering and r.random() < 0.92 or r.random() < 0.04:
        cql += ' ALLOW FILTERING'
    lines = w.done(cql)
    if paged:
        lines.insert(0, '-- page ' + ' '.join(str(n) for n in sorted(r.sample(range(1, 8), r.randint(1, 3)))))
    elif len(lines) == 2 and w.mode == 'bind' and r.random() < 0.2:
        lines.insert(0, '-- skip_metadata')
    return lines


def everything(r, t):
    """Reads that show the whole table, cell for cell."""
    lines = [f'SELECT * FROM {t.name};']
    plain = [c for c in t.values() if not c.type.multi_cell()]
    if plain and not t.counter:
        lines.append(f"SELECT {', '.join(f'writetime({c.name}), ttl({c.name})' for c in plain)} FROM {t.name};")
    multi = [c for c in t.values() if c.type.multi_cell()]
    if multi:
        lines.append(f"SELECT {', '.join(f'writetime({c.name}), ttl({c.name}), maxwritetime({c.name})' for c in multi)} FROM {t.name};")
    return lines
