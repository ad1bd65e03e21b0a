"""What functions, operators, casts and aggregates make of values at the ends of their types' ranges."""

from keyspace import keyspace
from literals import T, U

KEYSPACE = 'cf_compute'
NUMBERS = {
    'tinyint': ['127', '-128', '0', '-1', '7'],
    'smallint': ['32767', '-32768', '0', '-1', '7'],
    'int': ['2147483647', '-2147483648', '0', '-1', '7'],
    'bigint': ['9223372036854775807', '-9223372036854775808', '0', '-1', '7'],
    'varint': ['9223372036854775808', '-170141183460469231731687303715884105729', '0', '-1', '7'],
    'float': ['3.4028235e38', '-1.4e-45', '0', 'NaN', '-Infinity'],
    'double': ['1.7976931348623157e308', '-4.9e-324', '-0.0', 'NaN', 'Infinity'],
    'decimal': ['1e40', '-1.5e-40', '0', '0.10', '123456789012345678901234567890.5'],
}
OPERATORS = ['+', '-', '*', '/', '%']
CASTS = ['ascii', 'text', 'tinyint', 'smallint', 'int', 'bigint', 'float', 'double', 'decimal', 'varint', 'date', 'timestamp']
MATH = ['abs', 'exp', 'log', 'log10', 'round']
# Milliseconds: both ends of 64 bits, of what a time-UUID can say, of dates, of years of four digits, of the calendars.
MILLIS = ['0', '-1', '1', '999', '-999', '-1000', '-1001', '9223372036854775807', '-9223372036854775808', '922337203685477', '922337203685478',
          '910118044392307', '910118044392308', '-12219292800000', '-12219292800001', '-12219292799999', '103072857660683', '103072857660684', '103072857660685',
          '-934556697260907', '-934556697260908', '934556697260907', '221845392000000', '253402300799999', '253402300800000', '-62135596800000', '-62135596800001', '-62167219200001',
          '185542587100799999', '185542587100800000', '-185542587187200000', '-185542587187200001', '106751991167300', '86399999', '-86400000', '1700000000123']
DATES = ['0', '1', '2147483647', '2147483648', '4294967295', '2147502000', "'1582-10-04'", "'1582-10-15'", "'0000-01-01'", "'-0001-12-31'", "'9999-12-31'", "'2020-02-29'"]
TIMES = ['0', '1', '86399999999999', '43200000000000']
DURATIONS = ['0s', '1ns', '1ms', '1s', '1h', '1d', '1mo', '1y', '7d', '1d1ms', '1mo1d', '2147483647mo', '2147483647d', '-1mo', '-1d', '-1ms', '9223372036854ms', '24h', '25h', '-2147483648d']
UUIDS = [T, '00000000-0000-1000-8080-808080808080', 'ffffffff-ffff-1fff-bfff-ffffffffffff', 'ffffffff-ffff-17ff-8000-000000000000', '00000000-0000-1800-8000-000000000000', '13814000-1dd2-11b2-8000-000000000000']


def numbers():
    columns = list(NUMBERS)
    yield 'CREATE TABLE n (k int PRIMARY KEY, ' + ', '.join(f'c_{t} {t}' for t in columns) + ');'
    for row in range(5):
        yield f"INSERT INTO n (k, {', '.join('c_' + t for t in columns)}) VALUES ({row}, {', '.join(NUMBERS[t][row] for t in columns)});"
    yield 'CREATE TABLE c (k int PRIMARY KEY, c counter);'
    for row, n in enumerate(['1000', '9223372036854775807', '-9223372036854775808', '0', '-1']):
        yield f'UPDATE c SET c = c + {n} WHERE k = {row};'
    counter_functions = [f'cast(c AS {t})' for t in CASTS[:10]] + [f'{f}(c)' for f in MATH] + [
        '-c', 'c + c', 'c * 2', 'to_json(c)', 'counter_as_blob(c)', 'bigint_as_blob(c)', 'mask_default(c)', 'mask_null(c)', 'mask_replace(c, 5)', 'mask_hash(c)', 'mask_inner(c, 1, 1)',
        '(bigint) c', '(counter) 5', 'writetime(c)', 'maxwritetime(c)', 'ttl(c)', 'min(c)', 'max(c)', 'sum(c)', 'avg(c)', 'count(c)', 'sum(cast(c AS varint))', 'JSON c', 'token(k)', 'text_as_blob(cast(c AS text))',
        "cast(c AS text) + 'x'"]
    for f in counter_functions:
        yield f'SELECT {f} FROM c;'
    for text in ("cast(c AS text) = '1000'", 'c = 1000', 'c IN (0, 1000)', 'c > 0'):
        yield f'SELECT k FROM c WHERE {text} ALLOW FILTERING;'
    yield "INSERT INTO n (k, c_bigint) VALUES (99, (bigint) 5);"
    for t in columns:
        for c in CASTS:
            for row in range(5):
                yield f'SELECT cast(c_{t} AS {c}) FROM n WHERE k = {row};'
        for f in MATH:
            for row in range(5):
                yield f'SELECT {f}(c_{t}) FROM n WHERE k = {row};'
        for row in range(5):
            yield f'SELECT -c_{t}, to_json(c_{t}) FROM n WHERE k = {row};'
        for f in ('min', 'max', 'sum', 'avg', 'count'):
            yield f'SELECT {f}(c_{t}) FROM n WHERE k IN (0, 1, 2, 3, 4);'
            yield f'SELECT {f}(c_{t}) FROM n WHERE k IN (0, 2);'
            yield f'SELECT {f}(c_{t}) FROM n WHERE k = 99;'
    for left in columns:
        for right in columns:
            for operator in OPERATORS:
                for row in range(5):
                    yield f'SELECT c_{left} {operator} c_{right} FROM n WHERE k = {row};'
    for t in columns:
        for operator in OPERATORS:
            for literal in NUMBERS[t]:
                yield f'INSERT INTO n (k, c_{t}) VALUES (50, ({t}) {literal} {operator} ({t}) 1);'
                yield f'SELECT c_{t} FROM n WHERE k = 50;'
        for literal in NUMBERS[t]:
            yield f'INSERT INTO n (k, c_{t}) VALUES (51, -({t}) {literal});'
            yield f'SELECT c_{t} FROM n WHERE k = 51;'


def times():
    yield 'CREATE TABLE ts (k int PRIMARY KEY, ts timestamp, d date, t time, u timeuuid);'
    yield 'CREATE TABLE tu (k int, u timeuuid, PRIMARY KEY (k, u));'
    for i, u in enumerate(UUIDS):
        yield f'INSERT INTO tu (k, u) VALUES (0, {u});'
        yield f'INSERT INTO ts (k, u) VALUES ({100 + i}, {u});'
    for i, ms in enumerate(MILLIS):
        yield f'INSERT INTO ts (k, ts) VALUES ({i}, {ms});'
    for i, d in enumerate(DATES):
        yield f'INSERT INTO ts (k, d) VALUES ({200 + i}, {d});'
    for i, t in enumerate(TIMES):
        yield f'INSERT INTO ts (k, t) VALUES ({300 + i}, {t});'
    for k in range(len(MILLIS)):
        for f in ('min_timeuuid(ts)', 'max_timeuuid(ts)', 'mintimeuuid(ts)', 'maxtimeuuid(ts)', 'to_date(ts)', 'to_unix_timestamp(ts)', 'cast(ts AS date)', 'cast(ts AS text)', 'cast(ts AS ascii)', 'to_json(ts)',
                  'to_timestamp(min_timeuuid(ts))', 'to_date(max_timeuuid(ts))', 'to_timestamp(to_date(ts))'):
            yield f'SELECT {f} FROM ts WHERE k = {k};'
    for ms in MILLIS + ["'9000-01-01'", "'5236-03-31 21:21:00.684Z'", "'5236-03-31 21:21:00.685Z'", "'1582-10-14'", "'+292278994-08-17'"]:
        for f in ('mintimeuuid', 'maxtimeuuid', 'min_timeuuid', 'max_timeuuid'):
            yield f'SELECT u FROM tu WHERE k = 0 AND u < {f}({ms});'
            yield f'SELECT u FROM tu WHERE k = 0 AND u > {f}({ms});'
        yield f'INSERT INTO tu (k, u) VALUES (1, min_timeuuid({ms}));'
        yield f'INSERT INTO ts (k, d) VALUES (150, to_date((timestamp) {ms}));'
    yield 'SELECT * FROM tu WHERE k = 1;'
    for i in range(len(UUIDS)):
        for f in ('to_date(u)', 'to_timestamp(u)', 'to_unix_timestamp(u)', 'cast(u AS date)', 'cast(u AS timestamp)', 'cast(u AS text)', 'to_json(u)', 'floor(u, 1d)', 'floor(u, 1mo)', 'floor(u, 1h, 0)'):
            yield f'SELECT {f} FROM ts WHERE k = {100 + i};'
    for i in range(len(DATES)):
        for f in ('to_timestamp(d)', 'to_unix_timestamp(d)', 'cast(d AS timestamp)', 'cast(d AS text)', 'to_json(d)', 'min_timeuuid(to_timestamp(d))'):
            yield f'SELECT {f} FROM ts WHERE k = {200 + i};'
        for d in DURATIONS:
            for f in (f'd + {d}', f'd - {d}', f'floor(d, {d})', f"floor(d, {d}, '2020-01-31')"):
                yield f'SELECT {f} FROM ts WHERE k = {200 + i};'
    for k in range(len(MILLIS)):
        for d in DURATIONS:
            for f in (f'ts + {d}', f'ts - {d}', f'floor(ts, {d})', f'floor(ts, {d}, 86400000)'):
                yield f'SELECT {f} FROM ts WHERE k = {k};'
    for i in range(len(TIMES)):
        for f in ['cast(t AS text)', 'to_json(t)'] + [f'floor(t, {d})' for d in DURATIONS]:
            yield f'SELECT {f} FROM ts WHERE k = {300 + i};'


JSON = {
    'ascii': ['""', '"a"', '"\\u00e9"', '"\\u0000"', '5', 'true', '[1]', '"\\u007f"'],
    'bigint': ['""', '"5"', '5.0', '5.5', '9223372036854775807', '9223372036854775808', '1e2', '"9223372036854775808"', 'true'],
    'blob': ['""', '"0x"', '"0xg"', '"00"', '"0x0"', '5'],
    'boolean': ['""', '"true"', '"TRUE"', '"x"', '1'],
    'date': ['""', '"2020-02-30"', '0', '4294967295', '4294967296', '-1', '"-5877641-06-23"', '"5881580-07-11"', '"5881580-07-12"', '1.5'],
    'decimal': ['""', '"1.50"', '1e500', '1.10', '"x"', 'NaN', '"NaN"'],
    'double': ['""', '"1"', '"NaN"', '"Infinity"', '"-Infinity"', '1e400', '"1e400"', '-0.0', '5'],
    'duration': ['""', '"1d"', '"1d-1h"', '5', '"P1D"', '"-1d"'],
    'float': ['""', '"1"', '"NaN"', '3.5e38', '1e-60', '"x"', '16777217'],
    'inet': ['""', '"1.2.3"', '"::1"', '"localhost"', '5'],
    'int': ['""', '"5"', '2147483648', '"2147483648"', '1.0', '1e1', 'false'],
    'smallint': ['""', '"5"', '32767', '32768', '-32769', '"32768"', '1.0', '65536'],
    'text': ['""', '"\\ud800"', '"\\u0000"', '5', '1.50', 'true', '{"a": 1}', '"\\ud83d\\ude00"'],
    'time': ['""', '"24:00:00"', '86400000000000', '-1', '"12:00"', '0', '"23:59:59.999999999"'],
    'timestamp': ['""', '"x"', '9223372036854775807', '9223372036854775808', '1.5', '"1500"', '"2020-01-01"'],
    'timeuuid': ['""', f'"{U}"', f'"{T}"', '5'],
    'tinyint': ['""', '"5"', '127', '128', '-129', '"128"', '256', '1.0'],
    'uuid': ['""', f'"{U}"', '"x"', '5'],
    'varint': ['""', '"5"', '1e3', '1.0', '99999999999999999999999', '"x"'],
}


def json():
    yield 'CREATE TYPE ju (a int, b int);'
    yield 'CREATE TABLE j (k int PRIMARY KEY, ' + ', '.join(f'c_{t} {t}, l_{t} list<{t}>, fl_{t} frozen<list<{t}>>, m_{t} map<int, {t}>, t_{t} tuple<{t}, int>' for t in JSON) + ', u ju, fu frozen<ju>, v vector<int, 2>);'
    at = 0
    for kind, texts in JSON.items():
        for text in texts:
            for column, value in ((f'c_{kind}', text), (f'l_{kind}', f'[{text}]'), (f'fl_{kind}', f'[{text}]'), (f'm_{kind}', f'{{"1": {text}}}'), (f't_{kind}', f'[{text}, 1]')):
                yield f"INSERT INTO j JSON '{{\"k\": {at}, \"{column}\": {value}}}';"
                yield f'SELECT {column} FROM j WHERE k = {at};'
                yield f"INSERT INTO j (k, {column}) VALUES ({at + 1}, from_json('{value}'));"
                yield f'SELECT {column} FROM j WHERE k = {at + 1};'
                at += 2
        for column in (f'c_{kind}', f'l_{kind}', f'm_{kind}'):
            yield f"INSERT INTO j JSON '{{\"k\": {at}, \"{column}\": null}}';"
            yield f"INSERT INTO j JSON '{{\"k\": {at}, \"{column}\": [null]}}';"
            yield f"INSERT INTO j JSON '{{\"k\": {at}, \"{column}\": {{\"1\": null}}}}';"
            at += 1
    for text in ('{"k": 1, "K": 2}', '{"K": 1, "k": 2}', '{"\\"k\\"": 1, "k": 2}', '{"k": 1, "\\"k\\"": 2}', '{"k": 1, "k": 2}', '{"K": 1}', '{"\\"K\\"": 1}', '{"k": 1, "x": 2}', '{"k": null}', '{}', '[]', '5', 'null', '', '{"k": 1,}', "{'k': 1}".replace("'", "''"),
                 '{"k": 1, "U": {"A": 1, "a": 2}}', '{"k": 1, "u": {"a": 1, "A": 2}}', '{"k": 1, "u": {"\\"a\\"": 1, "a": 2}}', '{"k": 1, "u": {"a": 1, "c": 2}}', '{"k": 1, "u": {}}', '{"k": 1, "fu": {"b": 1}}', '{"k": 1, "v": [1]}', '{"k": 1, "v": [1, 2, 3]}', '{"k": 1, "v": [1, null]}', '{"k": 1, "v": ["1", 2]}'):
        yield f"INSERT INTO j JSON '{text}';"
        yield 'SELECT k, u, fu, v FROM j WHERE k IN (1, 2);'
        yield 'DELETE FROM j WHERE k IN (1, 2);'


def times_of_writes():
    yield 'CREATE TABLE w (k int PRIMARY KEY, v int, l list<int>, m map<int, int>, fl frozen<list<int>>, s set<int>, t tuple<int, int>);'
    for ts in ('-9223372036854775807', '0', '9223372036854775807', '-1'):
        yield f'INSERT INTO w (k, v, l, m, fl, s, t) VALUES (1, 1, [1, 2], {{1: 1, 2: 2}}, [1], {{1}}, (1, 2)) USING TIMESTAMP {ts};'
        for column in ('v', 'l', 'm', 'fl', 's', 't', 'm[1]', 'm[1..2]', 's[1]', 's[5]', 'k'):
            for f in ('writetime', 'maxwritetime', 'ttl'):
                yield f'SELECT {f}({column}) FROM w WHERE k = 1;'
    for ttl in ('0', '1000', '630720000', '630720001', '-1', 'null'):
        yield f'INSERT INTO w (k, v, l) VALUES (2, 1, [1]) USING TTL {ttl};'


def value_functions():
    yield '-- clock 1000'
    yield '-- now 1700000000'
    yield from keyspace(KEYSPACE)
    yield from numbers()
    yield from times()
    yield from json()
    yield '-- clock off'
    yield from times_of_writes()
