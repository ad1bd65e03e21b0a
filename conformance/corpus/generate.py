"""Writes the generated part of the corpus (gen_*.cql) beside itself; the seed is fixed, so the files are too.

    gen_literals.cql      every native type: literals good and bad, extremes, read back with their bytes
    gen_restrictions.cql  random primary-key restrictions over a table of three clustering columns
    gen_merge.cql         random writes and deletions with explicit timestamps and TTLs, then everything read back
    gen_paging.cql        page sizes over partitions of many shapes
"""

import os
import random

HERE = os.path.dirname(os.path.abspath(__file__))
KEYSPACE = "CREATE KEYSPACE {0} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};\nUSE {0};\n"
U = '6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47'
T = 'de3e12ba-e5f0-11f1-a71b-15da588fdeae'

LITERALS = {
    'ascii': ["'a'", "''", "'it''s'", "$$dollar$$", "'\\n'", "'\u00e9'", '5', 'true', '0x41', 'null', '"quoted"', "['a']", "'" + 'x' * 300 + "'"],
    'text': ["'a'", "''", "'\u00e9\u4e2d\U0001f600'", "$$it's$$", "$$$$", '5', '1.5', U, '0x41', 'null', 'abc', "{'a'}", "'line\nbreak'"],
    'varchar': ["'v'", "''", '7'],
    'bigint': ['0', '-1', '9223372036854775807', '-9223372036854775808', '9223372036854775808', '-9223372036854775809',
               '1.5', "'5'", "''", '0x0000000000000005', '0x05', 'NaN', 'true', 'null', '+5', '00012', '-0', '1e3'],
    'int': ['0', '2147483647', '-2147483648', '2147483648', '-2147483649', '1.0', "'1'", '0x00000001', '0x01', '1e2',
            'null', 'int', '(int) 5', '(bigint) 5', '(int) 99999999999', '1 + 1', '7 / 2', '7 % 4', '-(-5)', '1 / 0', "''"],
    'smallint': ['0', '32767', '-32768', '32768', '-32769', "'1'", '1.0', '0x0001', 'null'],
    'tinyint': ['0', '127', '-128', '128', '-129', '0x01', 'null', '(tinyint) 5'],
    'varint': ['0', '-1', '127', '128', '-128', '-129', '255', '256', '123456789012345678901234567890',
               '-123456789012345678901234567890', '1.5', "'5'", '1e3', '0x00', 'null'],
    'decimal': ['0', '0.0', '0.00', '-0.5', '1.5', '123456789012345678901234567890.123456789', '1e10', '1E-10', '-1.5e+3', "'5'", '1e400', 'NaN', 'null', '5'],
    'float': ['0', '-0.0', '1.5', '3.4028235e38', '1e39', '1e-46', '-1.17549435E-38', 'NaN', 'Infinity', '-Infinity', '-NaN', "'1'", '0x3f800000', 'null', '5', 'nan', 'infinity', '0.1'],
    'double': ['0', '-0.0', '1.5', '1.7976931348623157e308', '1e309', '4.9e-324', '1e-400', 'NaN', 'Infinity', '-Infinity', "'1'", '0x3ff0000000000000', 'null', '5', '1.', '.5', '0.1'],
    'boolean': ['true', 'false', 'TRUE', 'False', "'true'", '1', '0', '0x01', '0x02', 'null', "''"],
    'blob': ['0x', '0x00', '0xDEADbeef', '0x0', '0xzz', "'abc'", '5', 'null', 'textAsBlob(\'x\')', 'intAsBlob(5)', 'text_as_blob(\'x\')', 'bigintAsBlob(7)', "''"],
    'uuid': [U, U.upper(), T, "'" + U + "'", U[:-1], '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '0x' + U.replace('-', ''), '5', 'null'],
    'timeuuid': [T, U, "'" + T + "'", '00000000-0000-1000-8080-808080808080', '00000000-0000-1000-7f7f-7f7f7f7f7f7f', 'minTimeuuid(1000)', "maxTimeuuid('2020-01-01 00:00+0000')", 'min_timeuuid(1000)', 'null', '00000000-0000-0000-0000-000000000000'],
    'timestamp': ['0', '-1', '1700000000000', '9223372036854775807', '-9223372036854775808', '9223372036854775808', "'2020-02-29'", "'2021-02-29'",
                  "'2020-01-01 12:34'", "'2020-01-01 12:34:56'", "'2020-01-01 12:34:56.789'", "'2020-01-01 12:34:56.789+0000'", "'2020-01-01T12:34:56Z'", "'2020-01-01T12:34:56.1Z'",
                  "'2020-01-01 12:34:56+02'", "'2020-01-01 12:34:56-0330'", "'2020-01-01 12:34:56+02:00'", "'2020-01-01 12:34:56 GMT'", "'2020-01-01 12:34:56.123456+0000'", "'2020-01-01 25:00:00'", "'2020-13-01'", "'1700000000000'", "''",
                  "'0000-01-01'", "'-0044-03-15'", "'20000-01-01'", "'2020-01-01 '", '1.5', 'null', "'abc'", '0x0000000000000001', "'2020-1-1'", "'2020-01-01T12:34'", "'1969-12-31 23:59:59.999Z'"],
    'date': ["'2020-02-29'", "'2021-02-29'", "'1970-01-01'", "'1969-12-31'", "'-5877641-06-23'", "'5881580-07-11'", "'5881580-07-12'", "'0000-01-01'", '2147483648', '0', '4294967295', '4294967296', '-1', "'2020-1-1'", "'20200101'", "'18262'", "'2020-01-01 00:00'", "''", 'null', '0x80000000', '1.5'],
    'time': ["'00:00:00'", "'23:59:59.999999999'", "'24:00:00'", "'12:34'", "'12:34:56.1'", "'12:34:56.1234567891'", "'-01:00:00'", "'12:60:00'", '0', '86399999999999', '86400000000000', '-1', "'3600000000000'", "''", 'null', "'1:2:3'", '1.5'],
    'duration': ['1y2mo3w4d5h6m7s8ms9us10ns', '-1d', '0s', '1y', '1mo', '12h30m', 'P1Y2M3DT4H5M6S', 'P2W', 'P0001-02-03T04:05:06', '1d1d', '1m1h', '5x', "'1d'", '5', 'null', '-P1Y', 'PT', '9999999999999y', '1ns', '9223372036854775807ns', '9223372036854775808ns', '1\u00b5s', "''", 'P1Y2M10DT2H30M', '2h1y', '1Y2MO'],
    'inet': ["'127.0.0.1'", "'255.255.255.255'", "'0.0.0.0'", "'::1'", "'2001:db8::ff00:42:8329'", "'256.0.0.1'", "'1.2.3'", "'localhost'", "''", '5', '0x7f000001', 'null', "'::ffff:1.2.3.4'", "'1.2.3.4/8'", "'fe80::1%lo'"],
    'counter': ['1'],
    'vector<float, 3>': ['[1, 2, 3]', '[1.5, -0.0, NaN]', '[1, 2]', '[1, 2, 3, 4]', "['a', 'b', 'c']", 'null', '[null, 1, 2]', '(1, 2, 3)', '[]', '{1, 2, 3}', '[Infinity, 0, -Infinity]'],
    'vector<text, 2>': ["['a', '']", "['a']", "['', '']", '[1, 2]', 'null', "['\u00e9', 'b']"],
    'vector<int, 1>': ['[5]', '[2147483648]', '[]'],
    'vector<frozen<list<int>>, 2>': ['[[1, 2], []]', '[[1]]'],
    'list<int>': ['[1, 2, 3]', '[]', '[3, 1, 3]', 'null', '[null]', "['a']", '{1, 2}', '{}', '[1, 2147483648]', '[[1]]', '(1, 2)', '5'],
    'frozen<list<int>>': ['[1, 2, 3]', '[]', '[3, 1, 3]', 'null', '[null]', "['a']"],
    'set<text>': ["{'b', 'a', 'b'}", '{}', 'null', '{null}', '{1}', "['a']", "{'a': 1}", "{''}", "{'\u00e9', 'z', 'A'}"],
    'frozen<set<int>>': ['{3, 1, 2, 1}', '{}', '{-1, 1}', 'null', '{null}', '[1]'],
    'map<text, int>': ["{'a': 1, 'b': 2}", '{}', 'null', "{'a': null}", '{null: 1}', '{1: 1}', "{'a': 'b'}", "{'a': 1, 'a': 2}", "{'z': 1, 'A': 2}", '[1]', "{'a'}"],
    'frozen<map<int, text>>': ["{2: 'b', 1: 'a'}", '{}', 'null', "{1: null}", "{-1: 'x', 1: 'y'}"],
    'frozen<map<text, frozen<list<int>>>>': ["{'a': [1, 2], 'b': []}", "{'a': [null]}", "{'a': {1}}"],
    'tuple<int, text, float>': ["(1, 'a', 1.5)", "(1, 'a')", '(1)', "(null, 'a', null)", "(1, 'a', 1.5, 4)", "('a', 1, 1)", 'null', '(null, null, null)', '()', "[1, 'a', 1.5]"],
    'frozen<tuple<int, frozen<set<text>>>>': ["(1, {'b', 'a'})", '(1, {})', '(1, null)', "(1, {1})"],
    'list<frozen<tuple<int, int>>>': ['[(1, 2), (3, null)]', '[(1)]', '[(1, 2, 3)]'],
    'empty': ["''", 'null'],
}
# Sort orders as clustering columns: values good for it, in no order.
ORDERED = {
    'ascii': ["'b'", "'a'", "''", "'A'", "'aa'"],
    'text': ["'b'", "'a'", "''", "'\u00e9'", "'\U0001f600'", "'\uffff'"],
    'bigint': ['5', '-5', '0', '9223372036854775807', '-9223372036854775808'],
    'int': ['5', '-5', '0', '2147483647', '-2147483648'],
    'smallint': ['5', '-5', '0'],
    'tinyint': ['5', '-5', '0', '-128', '127'],
    'varint': ['0', '-1', '128', '-129', '99999999999999999999', '-99999999999999999999', '255', '-256'],
    'decimal': ['0', '0.00', '1.5', '1.50', '-1.5', '1e10', '1e-10', '-1e10'],
    'float': ['0', '-0.0', 'NaN', 'Infinity', '-Infinity', '1.5', '-1.5'],
    'double': ['0', '-0.0', 'NaN', 'Infinity', '-Infinity', '1.5', '-1.5'],
    'boolean': ['true', 'false'],
    'blob': ['0x', '0x00', '0xff', '0x0001', '0x7f'],
    'uuid': [U, T, '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '6ab09bec-e68e-18d9-a5f8-97e6fb4c9b47', '00000000-0000-1000-8000-000000000001'],
    'timeuuid': [T, '00000000-0000-1000-8080-808080808080', '00000000-0000-1000-7f7f-7f7f7f7f7f7f', 'ffffffff-ffff-1fff-8000-000000000000', '00000000-0001-1000-8080-808080808080'],
    'timestamp': ['0', '-1', '1', "'2020-01-01'", '-9223372036854775808'],
    'date': ["'1970-01-01'", "'1969-12-31'", "'2020-01-01'", '0', '4294967295'],
    'time': ["'00:00:00'", "'23:59:59'", "'12:00:00'"],
    'inet': ["'127.0.0.1'", "'255.0.0.1'", "'::1'", "'10.0.0.1'", "'ffff::'", "'0.0.0.0'"],
    'frozen<list<int>>': ['[1]', '[]', '[1, 2]', '[-1]', '[2]'],
    'frozen<set<text>>': ["{'a'}", '{}', "{'a', 'b'}", "{'b'}"],
    'frozen<map<int, int>>': ['{1: 1}', '{}', '{1: 2}', '{0: 9}', '{1: 1, 2: 2}'],
    'frozen<tuple<int, text>>': ["(1, 'a')", "(1, null)", "(null, 'a')", "(-1, 'z')", "(1)"],
    'vector<float, 2>': ['[1, 2]', '[-1, 2]', '[1, -2]', '[0, 0]'],
}


def write(name, head, lines):
    with open(os.path.join(HERE, name), 'w', encoding='utf-8') as f:
        f.write(f'-- {head} Written by generate.py.\n' + '\n'.join(lines) + '\n')


def literals():
    lines = ['-- clock 1000', KEYSPACE.format('cf_lit')]
    for i, (kind, values) in enumerate(LITERALS.items()):
        if kind == 'empty':
            continue
        key = '' if kind == 'counter' else ''
        lines.append(f'CREATE TABLE t{i} (k int PRIMARY KEY{key}, v {kind});')
        for j, v in enumerate(values):
            lines.append(f'INSERT INTO t{i} (k, v) VALUES ({j}, {v});')
        lines.append(f'SELECT k, v FROM t{i};')
    for i, (kind, values) in enumerate(ORDERED.items()):
        for direction in ('ASC', 'DESC'):
            table = f'{direction.lower()}{i}'
            lines.append(f'CREATE TABLE {table} (k int, c {kind}, n int, PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c {direction});')
            for j, v in enumerate(values):
                lines.append(f'INSERT INTO {table} (k, c, n) VALUES (0, {v}, {j});')
            lines.append(f'SELECT * FROM {table} WHERE k = 0;')
            lines.append(f'SELECT * FROM {table} WHERE k = 0 AND c > {values[0]};')
        lines.append(f'CREATE TABLE key{i} (k {kind} PRIMARY KEY, n int);')
        for j, v in enumerate(values):
            lines.append(f'INSERT INTO key{i} (k, n) VALUES ({v}, {j});')
        lines.append(f'SELECT k, token(k), n FROM key{i};')
    write('gen_literals.cql', 'Literals of every native type, their bytes, orders and tokens.', lines)


def relation(r, column, types):
    value = lambda: str(r.randint(-1, 4)) if types[column] == 'int' else "'" + r.choice('abcd') + "'"
    op = r.choice(['=', '=', '=', '<', '<=', '>', '>=', 'IN', 'IN', '!=', 'CONTAINS', 'LIKE'] if r.random() < 0.15
                  else ['=', '=', '=', '<', '<=', '>', '>=', 'IN'])
    if op == 'IN':
        return f"{column} IN ({', '.join(value() for _ in range(r.randint(0, 3)))})"
    return f'{column} {op} {value()}'


def restrictions():
    r = random.Random(20)
    types = {'k1': 'int', 'k2': 'text', 'c1': 'int', 'c2': 'text', 'c3': 'int', 'v': 'int', 's': 'int'}
    lines = ['-- clock 1000', KEYSPACE.format('cf_res'),
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
    write('gen_restrictions.cql', 'Random primary-key restrictions, valid and not, in reads and writes.', lines)


def merge():
    r = random.Random(21)
    lines = ['-- now 1900000000', '-- clock 1000', KEYSPACE.format('cf_mrg'),
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
    write('gen_merge.cql', 'Random writes and deletions at explicit timestamps, read back while they pile up.', lines)


def paging():
    lines = ['-- clock 1000', KEYSPACE.format('cf_pg'), 'CREATE TABLE t (k int, c int, s int static, v text, PRIMARY KEY (k, c));', 'CREATE TABLE one (k int PRIMARY KEY, v int);']
    for k, rows in enumerate([0, 1, 2, 3, 7, 10, 0, 4]):
        if k % 2 == 0:
            lines.append(f'UPDATE t SET s = {k} WHERE k = {k};')
        if rows:
            lines.append('BEGIN UNLOGGED BATCH\n' + '\n'.join(f"INSERT INTO t (k, c, v) VALUES ({k}, {c}, 'v{k}.{c}');" for c in range(rows)) + '\nAPPLY BATCH;')
        lines.append(f'INSERT INTO one (k, v) VALUES ({k}, {rows});')
    sizes = ' '.join(str(n) for n in list(range(1, 13)) + [26, 27, 28, 29, 30, 31, 100])
    for where in ['', ' WHERE k = 5', ' WHERE k IN (5, 4, 0, 3, 99)', ' WHERE k = 5 AND c > 2', ' WHERE token(k) > 0', ' WHERE k = 0', ' WHERE k = 99', ' WHERE c = 1 ALLOW FILTERING', " WHERE v = 'v5.3' ALLOW FILTERING"]:
        for tail in ['', ' LIMIT 5', ' LIMIT 9']:
            if 'ALLOW' in where and tail:
                continue
            lines += [f'-- page {sizes}', f'SELECT k, c, s, v FROM t{where}{tail};']
    lines += ['-- page 1 2 3 9', 'SELECT k, c FROM t WHERE k = 5 ORDER BY c DESC;', '-- page 1 2 3 9', 'SELECT k, c FROM t WHERE k = 5 AND c IN (9, 1, 3) ORDER BY c DESC;',
              '-- page 1 2 3 100', 'SELECT DISTINCT k, s FROM t;', '-- page 1 2 3 100', 'SELECT k, c FROM t PER PARTITION LIMIT 2;', '-- page 1 2 3 100', 'SELECT k, c FROM t PER PARTITION LIMIT 2 LIMIT 7;',
              '-- page 1 2 3 100', 'SELECT count(*) FROM t;', '-- page 1 2 3 100', 'SELECT k, count(c), max(c) FROM t GROUP BY k;', '-- page 1 2 3 100', 'SELECT k, max(c) FROM t GROUP BY k LIMIT 3;', '-- page 1 2 3 4 5 6 7 8 9', 'SELECT * FROM one;', '-- page 1 3',
              'SELECT * FROM one WHERE k IN (3, 1, 2, 5);', '-- page 1 2', 'SELECT k, c FROM t WHERE k IN (5, 4) ORDER BY c DESC;', '-- page 0', 'SELECT k, c FROM t WHERE k = 5;', '-- page -1', 'SELECT k, c FROM t WHERE k = 5;']
    for version in (3, 4):
        lines += [f'-- protocol {version}', '-- page 1 4 30', 'SELECT k, c, s, v FROM t;', '-- bind int:5', '-- page 3 10 11', 'SELECT c FROM t WHERE k = ?;']
    write('gen_paging.cql', 'Page sizes from one row up.', lines)


if __name__ == '__main__':
    literals()
    restrictions()
    merge()
    paging()
