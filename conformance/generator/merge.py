"""Writes and deletions at explicit timestamps and with TTLs over few rows."""

from keyspace import keyspace


def merge(r):
    lines = ['-- now 1900000000', '-- clock 1000', *keyspace('cf_mrg'),
             'CREATE TABLE t (k int, c1 int, c2 int, s int static, sl list<int> static, v int, w text, m map<int, text>, st set<int>, l list<int>, PRIMARY KEY (k, c1, c2)) WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC);']
    stamp = lambda: r.choice([100, 200, 300, 300, 300, 400])
    cell = lambda: r.choice([f'v = {r.randint(0, 9)}', f"w = '{r.choice('xyz')}'", 'v = null', f'm = {{{r.randint(0, 2)}: \'m\'}}', f"m[{r.randint(0, 2)}] = '{r.choice('ab')}'",
                             f"m = m + {{{r.randint(0, 2)}: 'p'}}", f'm = m - {{{r.randint(0, 2)}}}', f'st = st + {{{r.randint(0, 3)}}}', f'st = st - {{{r.randint(0, 3)}}}', 'st = {}', f'st = {{{r.randint(0, 3)}}}', 'm = null'])
    for n in range(240):
        k, c1, c2, ts = r.randint(0, 2), r.randint(0, 3), r.randint(0, 3), stamp()
        ttl = f' AND TTL {r.choice([10, 20, 100])}' if r.random() < 0.25 else ''
        where = f'k = {k} AND c1 = {c1} AND c2 = {c2}'
        kind = r.random()
        if kind < 0.3:
            # A row's marker that expires is older than all cells: Cassandra passes over cells that are not selected if they are
            # older than the marker, and so loses the row if the marker has expired.
            ts = 100 if ttl else ts
            lines.append(f"INSERT INTO t (k, c1, c2, v, w) VALUES ({k}, {c1}, {c2}, {r.randint(0, 9)}, {r.choice(['null', chr(39) + 'i' + chr(39)])}) USING TIMESTAMP {ts}{ttl};")
        elif kind < 0.65:
            lines.append(f"UPDATE t USING TIMESTAMP {ts}{ttl} SET {cell()} WHERE {where};")
        elif kind < 0.72:
            lines.append(f"UPDATE t USING TIMESTAMP {ts}{ttl} SET s = {r.randint(0, 5)} WHERE k = {k};")
        elif kind < 0.80:
            lines.append(f"DELETE FROM t USING TIMESTAMP {ts} WHERE {where};")
        elif kind < 0.86:
            lines.append(f"DELETE {r.choice(['v', 'w', 'm', 'st', 'm[1]', 'st[2]', 'v, w'])} FROM t USING TIMESTAMP {ts} WHERE {where};")
        elif kind < 0.96:
            lines.append(f"DELETE FROM t USING TIMESTAMP {ts} WHERE k = {k} AND " + r.choice([f'c1 = {c1}', f'c1 > {c1}', f'c1 >= {c1} AND c1 < {c1 + 2}', f'c1 = {c1} AND c2 < {c2}', f'c1 = {c1} AND c2 >= {c2}', f'c1 <= {c1}', f'(c1, c2) > ({c1}, {c2})', f'c1 IN ({c1}, {c2})']) + ';')
        else:
            lines.append(f"DELETE FROM t USING TIMESTAMP {r.choice([50, 100, 200])} WHERE k = {k};")
        if n % 6 == 5:
            k = r.randint(0, 2)
            lines += [r.choice([f'SELECT * FROM t WHERE k = {k};', f'SELECT * FROM t WHERE k = {k} ORDER BY c1 DESC;', 'SELECT * FROM t;', f'SELECT k, c1, c2, v, writetime(v), ttl(v), w, writetime(w) FROM t WHERE k = {k};',
                                f'SELECT s, v FROM t WHERE k = {k} AND c1 = {r.randint(0, 3)};', f'SELECT m, st, writetime(m), writetime(st) FROM t WHERE k = {k};', 'SELECT DISTINCT k, s FROM t;', f'SELECT * FROM t WHERE k = {k} AND c1 > 0 AND c1 <= 2 ORDER BY c1 DESC LIMIT 3;'])]
        if n % 60 == 59:
            lines.append(f'-- now {1900000000 + n}')
            lines.append('SELECT * FROM t;')
            lines.append('SELECT k, c1, c2, v, ttl(v), ttl(s), s FROM t;')
            lines.append('-- page 1 2 3 5')
            lines.append('SELECT * FROM t;')
    return lines
