"""Page sizes over partitions of many shapes."""

from keyspace import keyspace


def paging():
    lines = ['-- clock 1000', *keyspace('cf_pg'), 'CREATE TABLE t (k int, c int, s int static, v text, PRIMARY KEY (k, c));', 'CREATE TABLE one (k int PRIMARY KEY, v int);']
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
    return lines
