"""Primary-key restrictions over one table of three clustering columns."""

from keyspace import keyspace


def relation(r, column, types):
    value = lambda: str(r.randint(-1, 4)) if types[column] == 'int' else "'" + r.choice('abcd') + "'"
    op = r.choice(['=', '=', '=', '<', '<=', '>', '>=', 'IN', 'IN', '!=', 'CONTAINS', 'LIKE'] if r.random() < 0.15
                  else ['=', '=', '=', '<', '<=', '>', '>=', 'IN'])
    if op == 'IN':
        return f"{column} IN ({', '.join(value() for _ in range(r.randint(0, 3)))})"
    return f'{column} {op} {value()}'


def restrictions(r):
    types = {'k1': 'int', 'k2': 'text', 'c1': 'int', 'c2': 'text', 'c3': 'int', 'v': 'int', 's': 'int'}
    lines = ['-- clock 1000', *keyspace('cf_res'),
             'CREATE TABLE t (k1 int, k2 text, c1 int, c2 text, c3 int, s int static, v int, PRIMARY KEY ((k1, k2), c1, c2, c3)) WITH CLUSTERING ORDER BY (c1 ASC, c2 DESC, c3 ASC);']
    batch = []
    for k1 in range(2):
        for k2 in 'ab':
            for c1 in range(3):
                for c2 in 'abc':
                    batch.append(f"INSERT INTO t (k1, k2, c1, c2, c3, v) VALUES ({k1}, '{k2}', {c1}, '{c2}', {(c1 + ord(c2)) % 3}, {len(batch)})")
    for at in range(0, len(batch), 12):
        lines.append('BEGIN UNLOGGED BATCH\n' + ';\n'.join(batch[at:at + 12]) + ';\nAPPLY BATCH;')
    lines.append("UPDATE t SET s = 7 WHERE k1 = 0 AND k2 = 'a';")
    lines.append("UPDATE t SET s = 8 WHERE k1 = 5 AND k2 = 'static only';")
    for n in range(400):
        where = []
        if r.random() < 0.85:
            where += ['k1 = ' + str(r.randint(0, 1)) if r.random() < 0.8 else relation(r, 'k1', types)]
            where += ["k2 = '" + r.choice('ab') + "'" if r.random() < 0.8 else relation(r, 'k2', types)]
        elif r.random() < 0.4:
            where += [f"token(k1, k2) {r.choice(['>', '>=', '<', '<=', '='])} token({r.randint(0, 1)}, '{r.choice('ab')}')"]
        for c in ('c1', 'c2', 'c3'):
            if r.random() < 0.55:
                where.append(relation(r, c, types))
                if r.random() < 0.2:
                    where.append(relation(r, c, types))
            elif r.random() < 0.7:
                break
        if r.random() < 0.15:
            columns = r.choice([['c1'], ['c1', 'c2'], ['c1', 'c2', 'c3'], ['c2', 'c3'], ['c1', 'c3']])
            val = lambda: '(' + ', '.join(str(r.randint(0, 2)) if types[c] == 'int' else "'" + r.choice('abc') + "'" for c in columns) + ')'
            where = where[:2] + [f"({', '.join(columns)}) {r.choice(['>', '<=', '=', '>='])} {val()}" if r.random() < 0.7
                                 else f"({', '.join(columns)}) IN ({', '.join(val() for _ in range(r.randint(1, 3)))})"]
            if r.random() < 0.4:
                where.append(f"({', '.join(columns)}) {r.choice(['<', '<='])} {val()}")
        if r.random() < 0.12:
            where.append(relation(r, r.choice(['v', 's']), types))
        r.shuffle(where) if r.random() < 0.2 else None
        cql = 'SELECT ' + r.choice(['*', 'k1, k2, c1, c2, c3, v', 'c1, c2, v', 'v', 's, v', 'count(*)', 'DISTINCT k1, k2, s', 'max(v), min(c2)']) + ' FROM t'
        if where:
            cql += ' WHERE ' + ' AND '.join(where)
        if r.random() < 0.08:
            cql += r.choice([' GROUP BY k1, k2', ' GROUP BY k1, k2, c1', ' GROUP BY c1', ' GROUP BY v'])
        if r.random() < 0.25:
            cql += ' ORDER BY ' + r.choice(['c1 DESC', 'c1 ASC', 'c1 DESC, c2 ASC', 'c1 DESC, c2 DESC', 'c1, c2', 'c2', 'c1 DESC, c2 ASC, c3 DESC', 'v', 'k1'])
        if r.random() < 0.15:
            cql += f' PER PARTITION LIMIT {r.randint(0, 3)}'
        if r.random() < 0.25:
            cql += f' LIMIT {r.randint(0, 6)}'
        if r.random() < 0.65:
            cql += ' ALLOW FILTERING'
        if r.random() < 0.15:
            lines.append(f'-- page {r.randint(1, 4)} {r.randint(5, 9)}')
        lines.append(cql + ';')
    for n in range(60):  # the same clauses in writes
        where = ['k1 = ' + str(r.randint(0, 1)), "k2 = '" + r.choice('ab') + "'"] if r.random() < 0.85 else [relation(r, 'k1', types)]
        for c in ('c1', 'c2', 'c3'):
            if r.random() < 0.75:
                where.append(relation(r, c, types) if r.random() < 0.5 else f'{c} = ' + (str(r.randint(0, 2)) if types[c] == 'int' else "'a'"))
        head = r.choice(['DELETE FROM t', 'DELETE v FROM t', 'DELETE s FROM t', 'UPDATE t SET v = 5', 'UPDATE t SET s = 6', 'UPDATE t SET s = 6, v = 7'])
        lines.append(f"{head} WHERE {' AND '.join(where)};")
        if n % 5 == 4:
            lines.append('SELECT * FROM t;')
    return lines
