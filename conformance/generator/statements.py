"""Random statements over a table: mostly valid, sometimes refused, with their values in the text, bound by place or bound by name."""

from values import FIXED, NULL, Value, value


class Words:
    """A statement in the making: hands out literals or markers and keeps what is to be bound."""

    def __init__(self, r, mode=None):
        self.r, self.mode, self.bound = r, mode or r.choice(['literal', 'literal', 'literal', 'bind', 'values', 'names']), []

    def put(self, kind, given=None, null=0.0):
        """`given` or a random value, as it stands in the text."""
        r = self.r
        v = given or (NULL if r.random() < null else value(r, kind))
        if self.mode == 'literal':
            return v.literal
        word = v.word()
        if given is None or null:
            chance = r.random()
            if chance < 0.02:
                word = 'null'
            elif chance < 0.05 and null:
                word = 'unset'
            elif chance < 0.055 and kind.name in FIXED:
                word = '0x' + '01' * (FIXED[kind.name] + 1)
        return self.marker(word)

    def number(self, n, word):
        return str(n) if self.mode == 'literal' or self.r.random() < 0.4 else self.marker(word)

    def marker(self, word):
        self.bound.append(word)
        return f':b{len(self.bound)}' if self.mode == 'names' else '?'

    def done(self, cql):
        """The statement with its directives."""
        if not self.bound:
            return [cql + ';']
        if self.mode == 'names':
            words = [f'b{i + 1}={w}' for i, w in enumerate(self.bound)]
            self.r.shuffle(words)
        else:
            words = self.bound
        return [f"-- {self.mode} {' '.join(words)}", cql + ';']


def using(w, write_time=True, ttl=True):
    r, parts = w.r, []
    if write_time and r.random() < 0.25:
        n = r.choice([100, 200, 300, 300, 2000])
        parts.append('TIMESTAMP ' + w.number(n, f'bigint:{n}'))
    if ttl and r.random() < 0.2:
        n = r.choice([0, 10, 100, 100000])
        parts.append('TTL ' + w.number(n, f'int:{n}'))
    r.shuffle(parts)
    return ' USING ' + ' AND '.join(parts) if parts else ''


def insert(r, t, times):
    if r.random() < 0.15:
        return insert_json(r, t, times)
    w = Words(r)
    key, row = r.choice(t.keys), r.choice(t.rows)
    names, values = [], []
    for c, v in list(zip(t.of('key'), key)) + list(zip(t.of('clustering'), row)):
        if r.random() < 0.97:
            names.append(c.name)
            values.append(w.put(c.type, v))
    for c in t.values():
        if r.random() < 0.6:
            names.append(c.name)
            values.append(w.put(c.type, null=0.12))
    return w.done(f"INSERT INTO {t.name} ({', '.join(names)}) VALUES ({', '.join(values)}){using(w, ttl=times)}")


def insert_json(r, t, times):
    fields = [(c, v) for c, v in list(zip(t.of('key'), r.choice(t.keys))) + list(zip(t.of('clustering'), r.choice(t.rows))) if r.random() < 0.98]
    fields += [(c, NULL if r.random() < 0.1 else value(r, c.type)) for c in t.values() if r.random() < 0.6]
    r.shuffle(fields)
    name = lambda c: '"\\"V3\\""' if c.name == '"V3"' else f'"{c.name}"'
    text = '{' + ', '.join(f'{name(c)}: {v.json}' for c, v in fields) + '}'
    w = Words(r, r.choice(['literal', 'bind']))
    given = Value("'" + text.replace("'", "''") + "'", text.encode(), '')
    body = given.literal if w.mode == 'literal' else w.marker(given.word())
    return w.done(f"INSERT INTO {t.name} JSON {body}{r.choice(['', '', ' DEFAULT UNSET', ' DEFAULT NULL'])}{using(w, ttl=times)}")


def where_key(w, t, partial=0.04):
    """The partition key whole, mostly by equality."""
    r, parts = w.r, []
    for c, v in zip(t.of('key'), r.choice(t.keys)):
        if r.random() < partial:
            continue
        if r.random() < 0.12:
            at = t.of('key').index(c)
            parts.append(f"{c.name} IN ({', '.join(w.put(c.type, k[at]) for k in r.sample(t.keys, r.randint(1, 3)))})")
        else:
            parts.append(f'{c.name} = {w.put(c.type, v)}')
    return parts


def assignment(w, c):
    r, n, kind = w.r, c.name, c.type
    if kind.name == 'counter':
        return f"{n} = {n} {r.choice('+-')} {w.number(2, 'bigint:2')}"
    if kind.collection() and kind.multi_cell() and r.random() < 0.7:
        if kind.name == 'list':
            return r.choice([lambda: f'{n} = {n} + {w.put(kind)}', lambda: f'{n} = {w.put(kind)} + {n}', lambda: f'{n} = {n} - {w.put(kind)}', lambda: f'{n} += {w.put(kind)}',
                             lambda: f"{n}[{w.number(0, 'int:0')}] = {w.put(kind.args[0], null=0.2)}"])()
        if kind.name == 'set':
            return f"{n} {r.choice(['= ' + n + ' +', '= ' + n + ' -', '+=', '-='])} {w.put(kind)}"
        if r.random() < 0.5:
            return f'{n}[{w.put(kind.args[0])}] = {w.put(kind.args[1], null=0.2)}'
        if r.random() < 0.6:
            return f"{n} {r.choice(['= ' + n + ' +', '+='])} {w.put(kind)}"
        keys = type(kind)('set', [kind.args[0]])
        return f"{n} {r.choice(['= ' + n + ' -', '-='])} {w.put(keys)}"
    if kind.name == 'udt' and not kind.frozen and r.random() < 0.6:
        field, inner = r.choice(kind.fields)
        return f'{n}.{field} = {w.put(inner, null=0.2)}'
    if kind.numeric() and r.random() < 0.05:
        return f'{n} += 1'
    return f'{n} = {w.put(kind, null=0.12)}'


def update(r, t, times):
    w = Words(r)
    options = using(w, not t.counter, times and not t.counter)
    columns = r.sample(t.values(), r.randint(1, min(3, len(t.values()))))
    if columns and r.random() < 0.5:  # all static or all regular, or the statement asks for too much
        columns = [c for c in columns if c.role == columns[0].role]
    sets = [assignment(w, c) for c in columns]
    parts = where_key(w, t)
    if any(c.role == 'regular' for c in columns) or r.random() < 0.1:
        row = r.choice(t.rows)
        parts += [f'{c.name} = {w.put(c.type, v)}' for c, v in zip(t.of('clustering'), row) if r.random() < 0.98]
    return w.done(f"UPDATE {t.name}{options} SET {', '.join(sets)} WHERE {' AND '.join(parts) or 'k1 = 0'}")


def delete(r, t, times):
    w = Words(r)
    what, columns = '', []
    if r.random() < 0.45:
        columns = r.sample(t.values(), r.randint(1, min(2, len(t.values()))))
        items = []
        for c in columns:
            if c.type.multi_cell() and r.random() < 0.6:
                kind = c.type
                items.append(f'{c.name}.{kind.fields[0][0]}' if kind.name == 'udt' else f"{c.name}[{w.number(0, 'int:0') if kind.name == 'list' else w.put(kind.args[0])}]")
            else:
                items.append(c.name)
        what = ' ' + ', '.join(items)
    options = using(w, not t.counter, False)
    parts = where_key(w, t)
    if any(c.role == 'regular' for c in columns) or (not columns and r.random() < 0.7):
        parts += clustering(w, t, full=bool(columns) and r.random() < 0.9)
    return w.done(f"DELETE{what} FROM {t.name}{options} WHERE {' AND '.join(parts) or 'k1 = 0'}")


def clustering(w, t, full=False, least=0):
    """Restrictions of the clustering columns, a prefix most of the time; `least` values in an IN."""
    r, parts, columns = w.r, [], t.of('clustering')
    pick = lambda at: r.choice(t.rows)[at]
    if not full and len(columns) > 1 and r.random() < 0.2:
        names = columns[:r.randint(1, len(columns))] if r.random() < 0.9 else columns[1:]
        shape = lambda row: '(' + ', '.join(w.put(c.type, row[columns.index(c)]) for c in names) + ')'
        head = '(' + ', '.join(c.name for c in names) + ')'
        if r.random() < 0.3:
            return [f"{head} IN ({', '.join(shape(row) for row in r.sample(t.rows, r.randint(1, 3)))})"]
        if r.random() < 0.3:
            return [f'{head} {r.choice([">", ">="])} {shape(r.choice(t.rows))}', f'{head} {r.choice(["<", "<="])} {shape(r.choice(t.rows))}']
        return [f"{head} {r.choice(['=', '<', '<=', '>', '>='])} {shape(r.choice(t.rows))}"]
    for at, c in enumerate(columns):
        if not full and r.random() < 0.08:
            continue
        if full or r.random() < 0.55:
            parts.append(f'{c.name} = {w.put(c.type, pick(at))}')
            continue
        kind = r.random()
        if kind < 0.35:
            parts.append(f"{c.name} IN ({', '.join(w.put(c.type, pick(at)) for _ in range(r.randint(least, 3)))})")
        else:
            parts.append(f"{c.name} {r.choice(['<', '<=', '>', '>='])} {w.put(c.type, pick(at))}")
            if r.random() < 0.4:
                parts.append(f"{c.name} {r.choice(['<', '<='])} {w.put(c.type, pick(at))}")
            if r.random() < 0.8:
                break
        if r.random() < 0.2:
            break
    return parts


def batch(r, t, times):
    kind = 'COUNTER ' if t.counter else r.choice(['', 'UNLOGGED ', 'UNLOGGED '])
    many = []
    while len(many) < r.randint(1, 4):
        one = r.choice([update] if t.counter else [insert, update, delete])(r, t, times)
        if len(one) == 1:
            many.append(one[0])
    stamp = f'USING TIMESTAMP {r.choice([150, 250])} ' if r.random() < 0.15 else ''
    return [f'BEGIN {kind}BATCH {stamp}' + ' '.join(many) + ' APPLY BATCH;']


def batch_message(r, t, times):
    """A BATCH of the protocol, prepared and plain statements mixed."""
    lines = ['-- batch ' + ('counter' if t.counter else r.choice(['logged', 'unlogged']))]
    for _ in range(r.randint(1, 4)):
        one = r.choice([update] if t.counter else [insert, update, delete])(r, t, times)
        if not one[0].startswith('-- names'):
            lines += one
    return lines + ['-- end'] if len(lines) > 1 else []
