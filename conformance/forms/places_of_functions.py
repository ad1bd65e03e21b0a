"""Where functions that are not pure may stand: tables, and statements that put one there."""

# What gives a value that no other call gives, by type.
UNIQUE = {'uuid': ['uuid()'], 'timeuuid': ['now()', 'current_timeuuid()'], 'blob': ['uuid_as_blob(uuid())', 'timeuuid_as_blob(now())']}
# What gives the time, which others may get too.
TIMES = {'timestamp': ['current_timestamp()', 'to_timestamp(now())', 'to_timestamp(current_date())'],
         'date': ['current_date()', 'to_date(now())', 'to_date(current_timestamp())'],
         'time': ['current_time()'],
         'timeuuid': ['min_timeuuid(current_timestamp())', 'max_timeuuid(to_timestamp(now()))'],
         'bigint': ['to_unix_timestamp(now())', 'to_unix_timestamp(current_date())']}
OLD_NAMES = {'timeuuid': ['currentTimeUUID()'], 'timestamp': ['currentTimestamp()', 'toTimestamp(now())'], 'date': ['currentDate()', 'toDate(now())'],
             'time': ['currentTime()'], 'bigint': ['toUnixTimestamp(now())'], 'blob': ['uuidAsBlob(uuid())']}


class Case:
    """A table and a statement with `{n}`, another number each time. `rows`: how many it makes; `fresh`: the columns that are never alike;
    `first`: a statement that makes what is changed; `sizes`: how many elements a collection has."""

    def __init__(self, name, columns, statement, rows=1, fresh=(), first=None, sizes=None, conditions=True):
        self.name, self.columns, self.statement, self.rows, self.fresh, self.first = name, columns, statement, rows, tuple(fresh), first
        self.sizes, self.conditions = sizes or {}, conditions

    def is_insert(self):
        return self.statement.startswith('INSERT')


def keys():
    """In the key."""
    for kind, functions in UNIQUE.items():
        for f in functions:
            yield Case(f'partition key {f}', f'k {kind} PRIMARY KEY, n int', f'INSERT INTO {{t}} (k, n) VALUES ({f}, {{n}})', fresh='k')
            yield Case(f'part of the partition key {f}', f'a int, k {kind}, n int, PRIMARY KEY ((a, k))', f'INSERT INTO {{t}} (a, k, n) VALUES (7, {f}, {{n}})', fresh='k')
            yield Case(f'clustering {f}', f'a int, k {kind}, n int, PRIMARY KEY (a, k)', f'INSERT INTO {{t}} (a, k, n) VALUES ({{third}}, {f}, {{n}})', fresh='k')
            yield Case(f'clustering descending {f}', f'a int, k {kind}, n int, PRIMARY KEY (a, k)) WITH CLUSTERING ORDER BY (k DESC',
                       f'INSERT INTO {{t}} (a, k, n) VALUES ({{third}}, {f}, {{n}})', fresh='k')
            yield Case(f'both keys {f}', f'a {kind}, k {kind}, n int, PRIMARY KEY (a, k)', f'INSERT INTO {{t}} (a, k, n) VALUES ({f}, {f}, {{n}})', fresh='ak')
            yield Case(f'key of an update {f}', f'k {kind} PRIMARY KEY, n int', f'UPDATE {{t}} SET n = {{n}} WHERE k = {f}', fresh='k')
            yield Case(f'clustering of an update {f}', f'a int, k {kind}, n int, PRIMARY KEY (a, k)', f'UPDATE {{t}} SET n = {{n}} WHERE a = {{third}} AND k = {f}', fresh='k')
            yield Case(f'keys of an IN {f}', f'k {kind} PRIMARY KEY, n int', f'UPDATE {{t}} SET n = {{n}} WHERE k IN ({f}, {f})', rows=2, fresh='k', conditions=False)
            yield Case(f'clusterings of an IN {f}', f'a int, k {kind}, n int, PRIMARY KEY (a, k)', f'UPDATE {{t}} SET n = {{n}} WHERE a = {{third}} AND k IN ({f}, {f})',
                       rows=2, fresh='k', conditions=False)
            yield Case(f'static beside {f}', f'k {kind}, c int, s int static, n int, PRIMARY KEY (k, c)', f'INSERT INTO {{t}} (k, c, s, n) VALUES ({f}, 1, {{n}}, {{n}})', fresh='k')
    for kind, functions in TIMES.items():
        for f in functions + OLD_NAMES.get(kind, []):
            yield Case(f'partition key {f}', f'k {kind}, n int, PRIMARY KEY (k, n)', f'INSERT INTO {{t}} (k, n) VALUES ({f}, {{n}})')
            yield Case(f'clustering {f}', f'n int, k {kind}, PRIMARY KEY (n, k)', f'INSERT INTO {{t}} (n, k) VALUES ({{n}}, {f})')
            yield Case(f'key of an update {f}', f'k {kind}, n int, v int, PRIMARY KEY (k, n)', f'UPDATE {{t}} SET v = 1 WHERE k = {f} AND n = {{n}}')
    for name, kind, term in [('tuple', 'frozen<tuple<uuid, int>>', '(uuid(), 1)'), ('list', 'frozen<list<timeuuid>>', '[now(), now()]'),
                             ('set', 'frozen<set<uuid>>', '{{uuid()}}'), ('map', 'frozen<map<uuid, timeuuid>>', '{{uuid(): now()}}'),
                             ('type', 'frozen<ut>', '{{a: uuid(), b: 1}}'), ('vector', 'vector<uuid, 2>', '[uuid(), uuid()]')]:
        yield Case(f'{name} as a partition key', f'k {kind} PRIMARY KEY, n int', f'INSERT INTO {{t}} (k, n) VALUES ({term}, {{n}})', fresh='k')
        yield Case(f'{name} as a clustering', f'a int, k {kind}, n int, PRIMARY KEY (a, k)', f'INSERT INTO {{t}} (a, k, n) VALUES ({{third}}, {term}, {{n}})', fresh='k')


def values():
    """In values."""
    for source in (UNIQUE, TIMES, OLD_NAMES):
        for kind, functions in source.items():
            for f in functions:
                fresh = 'v' if source is UNIQUE else ''
                yield Case(f'value {f}', f'n int PRIMARY KEY, v {kind}', f'INSERT INTO {{t}} (n, v) VALUES ({{n}}, {f})', fresh=fresh)
                yield Case(f'value of an update {f}', f'n int PRIMARY KEY, v {kind}', f'UPDATE {{t}} SET v = {f} WHERE n = {{n}}', fresh=fresh)
    yield Case('static value', 'n int, c int, v uuid static, PRIMARY KEY (n, c)', 'INSERT INTO {t} (n, c, v) VALUES ({n}, 1, uuid())', fresh='v')
    for name, kind, term, size in [
            ('list', 'list<uuid>', '[uuid(), uuid()]', 2), ('frozen list', 'frozen<list<timeuuid>>', '[now(), now()]', 2),
            ('set', 'set<timeuuid>', '{{now(), now()}}', 2), ('frozen set', 'frozen<set<uuid>>', '{{uuid(), uuid()}}', 2),
            ('map', 'map<uuid, timeuuid>', '{{uuid(): now(), uuid(): now()}}', 2), ('frozen map', 'frozen<map<timeuuid, timestamp>>', '{{now(): current_timestamp()}}', 1),
            ('list of times', 'list<timestamp>', '[current_timestamp(), to_timestamp(now())]', 2)]:
        fresh = '' if 'times' in name else 'v'
        yield Case(f'{name} of an insert', f'n int PRIMARY KEY, v {kind}', f'INSERT INTO {{t}} (n, v) VALUES ({{n}}, {term})', fresh=fresh, sizes={'v': size})
        yield Case(f'{name} of an update', f'n int PRIMARY KEY, v {kind}', f'UPDATE {{t}} SET v = {term} WHERE n = {{n}}', fresh=fresh, sizes={'v': size})
        if not name.startswith('frozen'):
            yield Case(f'{name} added to', f'n int PRIMARY KEY, v {kind}', f'UPDATE {{t}} SET v = v + {term} WHERE n = {{n}}', fresh=fresh, sizes={'v': size})
    yield Case('list, put before', 'n int PRIMARY KEY, v list<uuid>', 'UPDATE {t} SET v = [uuid()] + v WHERE n = {n}', fresh='v', sizes={'v': 1})
    yield Case('element of a list', 'n int PRIMARY KEY, v list<uuid>', 'UPDATE {t} SET v[0] = uuid() WHERE n = {n}', fresh='v', sizes={'v': 1},
               first='INSERT INTO {t} (n, v) VALUES ({n}, [00000000-0000-0000-0000-000000000000])')
    yield Case('key of a map', 'n int PRIMARY KEY, v map<uuid, int>', 'UPDATE {t} SET v[uuid()] = 1 WHERE n = {n}', fresh='v', sizes={'v': 1})
    yield Case('value of a map', 'n int PRIMARY KEY, v map<int, timeuuid>', 'UPDATE {t} SET v[5] = now() WHERE n = {n}', fresh='v', sizes={'v': 1})
    yield Case('key and value of a map', 'n int PRIMARY KEY, v map<timeuuid, uuid>', 'UPDATE {t} SET v[now()] = uuid() WHERE n = {n}', fresh='v', sizes={'v': 1})
    for name, kind, term in [('tuple', 'frozen<tuple<uuid, timestamp>>', '(uuid(), current_timestamp())'), ('type', 'ut', '{{a: uuid(), b: 5}}'),
                             ('frozen type', 'frozen<ut>', '{{a: uuid(), b: 5}}'), ('vector', 'vector<uuid, 2>', '[uuid(), uuid()]'),
                             ('nested', 'list<frozen<map<uuid, frozen<tuple<timeuuid, date>>>>>', '[{{uuid(): (now(), current_date())}}]')]:
        yield Case(f'{name} of an insert', f'n int PRIMARY KEY, v {kind}', f'INSERT INTO {{t}} (n, v) VALUES ({{n}}, {term})', fresh='v')
        yield Case(f'{name} of an update', f'n int PRIMARY KEY, v {kind}', f'UPDATE {{t}} SET v = {term} WHERE n = {{n}}', fresh='v')
    yield Case('field of a type', 'n int PRIMARY KEY, v ut', 'UPDATE {t} SET v.a = uuid() WHERE n = {n}', fresh='v')


def conditions():
    """Beside conditions and in them."""
    yield Case('key of an upsert with a condition', 'k uuid PRIMARY KEY, n int', 'UPDATE {t} SET n = {n} WHERE k = uuid() IF n = null', fresh='k', conditions=False)
    yield Case('clustering of an upsert with a condition', 'a int, k timeuuid, n int, PRIMARY KEY (a, k)',
               'UPDATE {t} SET n = {n} WHERE a = {third} AND k = now() IF n = null', fresh='k', conditions=False)
    yield Case('value beside a condition', 'n int PRIMARY KEY, v uuid', 'UPDATE {t} SET v = uuid() WHERE n = {n} IF v = null', fresh='v', conditions=False)
    first = 'INSERT INTO {t} (n, v) VALUES ({n}, 00000000-0000-0000-0000-000000000000)'
    yield Case('value in a condition', 'n int PRIMARY KEY, v uuid', 'UPDATE {t} SET v = uuid() WHERE n = {n} IF v != uuid()', fresh='v', first=first, conditions=False)
    yield Case('value beside IF EXISTS', 'n int PRIMARY KEY, v uuid', 'UPDATE {t} SET v = uuid() WHERE n = {n} IF EXISTS', fresh='v', first=first, conditions=False)
    yield Case('list in a condition', 'n int PRIMARY KEY, v list<uuid>, w uuid', 'UPDATE {t} SET w = uuid(), v = v + [uuid()] WHERE n = {n} IF w = null', fresh='vw',
               sizes={'v': 1}, conditions=False)


def deletions():
    """Of what is not there: all stays as it is."""
    first = 'INSERT INTO {t} (k, n) VALUES (uuid(), {n})'
    yield Case('deletes no partition', 'k uuid PRIMARY KEY, n int', 'DELETE FROM {t} WHERE k = uuid()', first=first, fresh='k')
    yield Case('deletes no column', 'k uuid PRIMARY KEY, n int', 'DELETE n FROM {t} WHERE k = uuid()', first=first, fresh='k')
    first = 'INSERT INTO {t} (a, k, n) VALUES ({third}, now(), {n})'
    columns = 'a int, k timeuuid, n int, PRIMARY KEY (a, k)'
    yield Case('deletes no row', columns, 'DELETE FROM {t} WHERE a = {third} AND k = now()', first=first, fresh='k')
    yield Case('deletes no range', columns, 'DELETE FROM {t} WHERE a = {third} AND k > now()', first=first, fresh='k', conditions=False)
    yield Case('deletes no element', 'n int PRIMARY KEY, v set<uuid>', 'UPDATE {t} SET v = v - {{uuid()}} WHERE n = {n}', sizes={'v': 1}, fresh='v',
               first='INSERT INTO {t} (n, v) VALUES ({n}, {{uuid()}})')
    yield Case('deletes no entry', 'n int PRIMARY KEY, v map<uuid, int>', 'DELETE v[uuid()] FROM {t} WHERE n = {n}', sizes={'v': 1}, fresh='v',
               first='INSERT INTO {t} (n, v) VALUES ({n}, {{uuid(): 1}})')


def all_cases():
    return [*keys(), *values(), *conditions(), *deletions()]
