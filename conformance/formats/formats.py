"""Tables in every format of SSTables that Cassandra writes: filled there, read by Helenus.

    formats.py fill HOST                 makes the tables and their rows, all times given
    formats.py record HOST               what each question is answered with, into answers.json.gz
    formats.py pack FORMAT DIR           the data directory of a stopped Cassandra, into FORMAT.tar.gz
    formats.py unpack FORMAT DIR         a recorded data directory: oa, da, or mixed, where tables have files of both
    formats.py check HOST                the recorded questions; exit code 1 if an answer differs
    formats.py again HOST                some of the rows once more, at the same times: no answer changes
    formats.py versions DIR              the versions that files of the tables have
"""

import gzip
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import wire  # noqa: E402

ANSWERS = os.path.join(HERE, 'answers.json.gz')
KEYSPACE = 'formats'
SHOWN = 20
# all writes are of this time and later, in microseconds
EPOCH = 1_700_000_000_000_000
# the longest that Cassandra allows: expires beyond the 32 bits of `nb`
TTL = 630_720_000
WIDE_ROWS = 3000
TYPED_ROWS = 48
PARTITIONS = 1500
FILLER = 'lorem ipsum dolor sit amet ' * 14

COMPRESSIONS = {
    'lz4': "{'class': 'LZ4Compressor', 'chunk_length_in_kb': 4}",
    'snappy': "{'class': 'SnappyCompressor', 'chunk_length_in_kb': 4}",
    'deflate': "{'class': 'DeflateCompressor'}",
    'zstd': "{'class': 'ZstdCompressor'}",
    'noop': "{'class': 'NoopCompressor', 'chunk_length_in_kb': 4}",
    'plain': "{'enabled': false}",
}


def typed():
    """Clustering types, and for each distinct values as CQL writes them."""
    n = range(TYPED_ROWS)
    signed = [i - TYPED_ROWS // 2 for i in n]
    stretched = [i * abs(i) ** 7 for i in signed]
    return {
        'ascii': [f"'a{'bc' * (i % 5)}{i:x}'" for i in n],
        'bigint': [str(i) for i in stretched],
        'blob': ['0x' + '00' * (i % 4) + f'{i * 5:02x}' * (i % 3) + ('ff' if i % 2 else '00') + f'{i:02x}' for i in n],
        'boolean': ['false', 'true'],
        'date': [f"'{1900 + 5 * i}-03-0{1 + i % 9}'" for i in n],
        'decimal': [f'{i}{"0" * (abs(i) % 3)}.{abs(i) * 37}E{i * 3 % 41 - 20}' for i in signed if i],
        'double': [f'{i}.{abs(i)}E{i % 17}' for i in signed],
        'float': [f'{i}.{abs(i)}' for i in signed],
        'inet': [f"'10.{i}.0.{i * 5}'" for i in n] + ["'::1'", "'fe80::2'"],
        'int': [str(i * 40_000_000) for i in signed],
        'smallint': [str(i * 1000) for i in signed],
        'text': [f"'{chr(0x61 + i % 26)}{chr(0xE0 + i)}{'x' * (i % 3)}'" for i in n] + ["''"],
        'time': [f"'{i % 24:02}:{i:02}:00.{i:03}'" for i in n],
        'timestamp': [str(i * 31_556_926_000) for i in signed],
        'timeuuid': [f'{(i * 0x13579bdf) & 0xffffffff:08x}-{i * 7:04x}-11e0-{0x8000 + i * 100:04x}-{i * 0x123456:012x}' for i in n],
        'tinyint': [str(i * 5) for i in signed],
        'uuid': [f'{(i * 0x2468ace1) & 0xffffffff:08x}-0{i:03x}-{(4, 1, 7)[i % 3]}{i:03x}-9{i:03x}-{i * 0x654321:012x}' for i in n],
        'varint': [str(i * 10 ** (abs(i) * 2)) for i in signed],
        'frozen<list<int>>': ['[' + ', '.join(str(j - 3) for j in range(i % 7)) + (', ' if i % 7 else '') + f'{i}]' for i in signed],
        'frozen<set<text>>': ['{' + ', '.join(f"'{chr(0x61 + j)}'" for j in range(1 + i % 5)) + f", '{i:02}'}}" for i in n],
        'frozen<map<int, text>>': [f"{{{i % 5}: 'x{i}', {i + 10}: ''}}" for i in n],
        'tuple<int, text, bigint>': [f"({i % 4}, {'null' if i % 3 == 0 else repr(str(i))}, {i})" for i in n],
        'frozen<pair>': [f"{{x: {i // 5}, y: {'null' if i % 5 == 0 else repr(str(i % 5))}}}" for i in n],
        'vector<float, 2>': [f'[{i % 3}.5, -{i}.25]' for i in n],
    }


def typed_tables():
    for number, (cql, values) in enumerate(typed().items()):
        order = 'DESC' if number % 2 else 'ASC'
        yield f'by_{number:02}_{"".join(c if c.isalnum() else "_" for c in cql).strip("_")}', cql, order, values


def statements():
    yield f'DROP KEYSPACE IF EXISTS {KEYSPACE}'
    yield f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    yield f'CREATE TYPE {KEYSPACE}.pair (x int, y text)'
    for name, compression in COMPRESSIONS.items():
        yield (f'CREATE TABLE {KEYSPACE}.{name} (k int, c int, s text static, v text, PRIMARY KEY (k, c)) '
               f'WITH compression = {compression}')
    yield (f'CREATE TABLE {KEYSPACE}.kinds (k int, c1 int, c2 text, s int static, sm map<text, int> static, '
           'v int, b blob, l list<int>, m map<int, text>, st set<text>, u pair, fu frozen<pair>, '
           'vec vector<float, 2>, t tuple<int, text>, d duration, dec decimal, gone int, '
           'PRIMARY KEY (k, c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)')
    yield f'CREATE TABLE {KEYSPACE}.simple (k text PRIMARY KEY, v int, w text) WITH compression = {{\'enabled\': false}}'
    yield f'CREATE TABLE {KEYSPACE}.composite (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))'
    yield f'CREATE TABLE {KEYSPACE}.wide (k int, c1 int, c2 text, s text static, v text, PRIMARY KEY (k, c1, c2))'
    yield (f'CREATE TABLE {KEYSPACE}.wide_desc (k int, c1 int, c2 text, v text, PRIMARY KEY (k, c1, c2)) '
           'WITH CLUSTERING ORDER BY (c1 DESC, c2 DESC)')
    yield f'CREATE TABLE {KEYSPACE}.counts (k int, c int, n counter, s counter static, PRIMARY KEY (k, c))'
    for name, cql, order, _ in typed_tables():
        yield (f'CREATE TABLE {KEYSPACE}.{name} (k int, c {cql}, v text, PRIMARY KEY (k, c)) '
               f'WITH CLUSTERING ORDER BY (c {order})')
    yield from rows()


def rows():
    for name in COMPRESSIONS:
        for k in range(12):
            yield f"INSERT INTO {KEYSPACE}.{name} (k, s) VALUES ({k}, 'static {k}') USING TIMESTAMP {EPOCH + k}"
            for c in range(k * 3):
                yield (f"INSERT INTO {KEYSPACE}.{name} (k, c, v) VALUES ({k}, {c}, '{name} {k * c} {FILLER[:c * 9]}') "
                       f'USING TIMESTAMP {EPOCH + c}')
    yield from kinds()
    for k in range(PARTITIONS):
        ttl = f' AND TTL {TTL}' if k % 50 == 0 else ''
        yield f"INSERT INTO {KEYSPACE}.simple (k, v, w) VALUES ('key{k * k}', {k}, '{k % 10}') USING TIMESTAMP {EPOCH}{ttl}"
        if k % 90 == 0:
            yield f"DELETE FROM {KEYSPACE}.simple USING TIMESTAMP {EPOCH + 1} WHERE k = 'key{k * k}'"
    for a in range(20):
        for c in range(3):
            yield f"INSERT INTO {KEYSPACE}.composite (a, b, c, v) VALUES ({a}, '{chr(0xE9) * a}', {c}, {a * c}) USING TIMESTAMP {EPOCH}"
    yield from wide()
    for k in range(3):
        for c in range(k * 20 + 2):
            yield f'UPDATE {KEYSPACE}.counts SET n = n + {c * 1000 - 500} WHERE k = {k} AND c = {c}'
            yield f'UPDATE {KEYSPACE}.counts SET n = n - {k} WHERE k = {k} AND c = {c}'
        yield f'UPDATE {KEYSPACE}.counts SET s = s + {k} WHERE k = {k}'
        yield f'DELETE FROM {KEYSPACE}.counts WHERE k = {k} AND c = 1'
    for name, _, _, values in typed_tables():
        for n, value in enumerate(values):
            yield (f"INSERT INTO {KEYSPACE}.{name} (k, c, v) VALUES ({n % 7 // 6}, {value}, '{n} {FILLER}') "
                   f'USING TIMESTAMP {EPOCH + n}')


def kinds():
    table = f'{KEYSPACE}.kinds'
    for k in range(6):
        yield f"UPDATE {table} USING TIMESTAMP {EPOCH} SET s = {k}, sm = {{'a': {k}, 'b': 2}} WHERE k = {k}"
        for c in range(8):
            yield (f"INSERT INTO {table} (k, c1, c2, v, b, l, m, st, u, fu, vec, t, d, dec, gone) VALUES ({k}, {c}, 'r{c}', {c}, "
                   f"0x{c:02x}, [{c}, 2, 3], {{{c}: 'x', 9: 'y'}}, {{'p', 'q{c}'}}, {{x: {c}, y: 'why'}}, {{x: {c}}}, "
                   f"[1.5, {c}], ({c}, null), {c}mo2d3h, {c}.50, 1) USING TIMESTAMP {EPOCH + 10}")
        at = f'USING TIMESTAMP {EPOCH + 20}'
        yield f'DELETE v, m[9] FROM {table} {at} WHERE k = {k} AND c1 = 1 AND c2 = \'r1\''
        yield f'DELETE FROM {table} {at} WHERE k = {k} AND c1 = 2 AND c2 = \'r2\''
        yield f'DELETE FROM {table} {at} WHERE k = {k} AND c1 = 3'
        yield f"DELETE FROM {table} {at} WHERE k = {k} AND c1 > 3 AND c1 <= 5"
        yield f"DELETE FROM {table} USING TIMESTAMP {EPOCH + 21} WHERE k = {k} AND c1 >= 5 AND c1 < 7"
        yield (f"INSERT INTO {table} (k, c1, c2, v, st) VALUES ({k}, 5, 'new', 5, {{'n'}}) "
               f'USING TIMESTAMP {EPOCH + 30} AND TTL {TTL}')
        yield f"UPDATE {table} USING TIMESTAMP {EPOCH + 31} AND TTL {TTL} SET m[77] = 'ttl', b = 0xff WHERE k = {k} AND c1 = 7 AND c2 = 'r7'"
        yield f"UPDATE {table} USING TIMESTAMP {EPOCH + 31} SET m = null, u.y = null WHERE k = {k} AND c1 = 0 AND c2 = 'r0'"
        yield f"INSERT INTO {table} (k, c1, c2, v) VALUES ({k}, 100, 'gone soon', 1) USING TIMESTAMP {EPOCH + 31} AND TTL 1"
    yield f'DELETE FROM {table} USING TIMESTAMP {EPOCH + 40} WHERE k = 4'
    yield f'DELETE FROM {table} USING TIMESTAMP {EPOCH + 5} WHERE k = 5'
    yield f'DELETE FROM {table} USING TIMESTAMP {EPOCH + 40} WHERE k = 1000'
    yield f'ALTER TABLE {table} DROP gone'


def wide():
    for name in ('wide', 'wide_desc'):
        table = f'{KEYSPACE}.{name}'
        if name == 'wide':
            yield f"UPDATE {table} USING TIMESTAMP {EPOCH} SET s = 'wide' WHERE k = 1"
        for n in range(WIDE_ROWS):
            yield (f"INSERT INTO {table} (k, c1, c2, v) VALUES (1, {n // 10}, '{n % 10 * 'z'}', '{n} {FILLER[:90]}') "
                   f'USING TIMESTAMP {EPOCH + n}')
        later = f'USING TIMESTAMP {EPOCH + WIDE_ROWS}'
        # ranges within a block, over an edge of blocks, over several
        for low, high in ((3, 4), (17, 60), (100, 101), (118, 121), (200, 290)):
            yield f'DELETE FROM {table} {later} WHERE k = 1 AND c1 >= {low} AND c1 < {high}'
        # older than the rows in it: open over several edges of blocks
        yield f'DELETE FROM {table} USING TIMESTAMP {EPOCH - 1} WHERE k = 1 AND c1 > 70 AND c1 <= 95'
        yield f"DELETE FROM {table} {later} WHERE k = 1 AND c1 = 150 AND c2 > 'z' AND c2 < 'zzzzzz'"
        for c1 in (30, 31, 250):
            yield f"INSERT INTO {table} (k, c1, c2, v) VALUES (1, {c1}, 'kept', 'after') USING TIMESTAMP {EPOCH + WIDE_ROWS + 1}"
        yield f"INSERT INTO {table} (k, c1, c2, v) VALUES (2, 0, 'narrow', 'one') USING TIMESTAMP {EPOCH}"


def questions():
    for name in COMPRESSIONS:
        yield f'SELECT k, c, s, v, writetime(v), writetime(s) FROM {name}'
        yield f'SELECT c, v FROM {name} WHERE k = 7 AND c >= 5 AND c < 11'
        yield f'SELECT c, v FROM {name} WHERE k = 7 ORDER BY c DESC LIMIT 4'
        yield f'SELECT * FROM {name} WHERE k = 99'
    yield 'SELECT * FROM kinds'
    yield 'SELECT k, c1, c2, writetime(v), writetime(b), writetime(dec), writetime(s) FROM kinds'
    for k in (0, 4, 5, 1000, 1001):
        yield f'SELECT * FROM kinds WHERE k = {k}'
        yield f'SELECT c1, c2, v FROM kinds WHERE k = {k} AND c1 > 1 AND c1 <= 6'
        yield f'SELECT c1, c2, v FROM kinds WHERE k = {k} ORDER BY c1 ASC, c2 DESC'
    yield 'SELECT DISTINCT k, s FROM kinds'
    yield 'SELECT k, v, w, writetime(v), token(k) FROM simple'
    yield 'SELECT k FROM simple WHERE token(k) > -3000000000000000000 AND token(k) <= 3000000000000000000'
    yield 'SELECT k FROM simple WHERE token(k) >= 0 LIMIT 5'
    for k in (0, 1, 25, 8100, 250000, 251001, 3):
        yield f"SELECT * FROM simple WHERE k = 'key{k}'"
    yield "SELECT * FROM simple WHERE k = 'nokey'"
    yield 'SELECT * FROM composite'
    for a in (0, 3, 19):
        yield f"SELECT * FROM composite WHERE a = {a} AND b = '{chr(0xE9) * a}' AND c > 0"
    yield from wide_questions()
    yield 'SELECT * FROM counts'
    yield 'SELECT c, n FROM counts WHERE k = 2 ORDER BY c DESC'
    for name, cql, order, values in typed_tables():
        yield f'SELECT k, c, v FROM {name}'
        back = 'DESC' if order == 'ASC' else 'ASC'
        for value in values[::5]:
            yield f'SELECT c FROM {name} WHERE k = 0 AND c >= {value} LIMIT 3'
            yield f'SELECT c FROM {name} WHERE k = 0 AND c < {value} LIMIT 3'
            yield f'SELECT c FROM {name} WHERE k = 0 AND c > {value} ORDER BY c {back} LIMIT 3'
            yield f'SELECT c FROM {name} WHERE k = 0 AND c <= {value} ORDER BY c {back} LIMIT 3'
            yield f'SELECT v FROM {name} WHERE k = 0 AND c = {value}'


def wide_questions():
    for name in ('wide', 'wide_desc'):
        back = 'c1 DESC, c2 DESC' if name == 'wide' else 'c1 ASC, c2 ASC'
        yield f'SELECT c1, c2, v FROM {name} WHERE k = 1'
        yield f'SELECT c1, c2, writetime(v) FROM {name} WHERE k = 1 ORDER BY {back}'
        for low, high in ((0, 1), (2, 6), (15, 18), (25, 32), (59, 62), (69, 72), (80, 81), (94, 97), (99, 122),
                          (149, 152), (240, 300), (290, 400), (400, 500)):
            where = f'k = 1 AND c1 >= {low} AND c1 < {high}'
            yield f'SELECT c1, c2, v FROM {name} WHERE {where}'
            yield f'SELECT c1, c2 FROM {name} WHERE {where} ORDER BY {back}'
            yield f'SELECT c1, c2 FROM {name} WHERE {where} ORDER BY {back} LIMIT 7'
        for c1 in (0, 3, 30, 77, 120, 250, 299, 300):
            yield f"SELECT v FROM {name} WHERE k = 1 AND c1 = {c1} AND c2 = 'zzz'"
            yield f"SELECT c2 FROM {name} WHERE k = 1 AND c1 = {c1} AND c2 > 'z' AND c2 <= 'zzzzzz'"
            yield f"SELECT c2 FROM {name} WHERE k = 1 AND c1 = {c1} AND c2 > 'z' AND c2 <= 'zzzzzz' ORDER BY {back}"
            yield f"SELECT c1, c2 FROM {name} WHERE k = 1 AND (c1, c2) > ({c1}, 'zzzz') LIMIT 13"
            yield f"SELECT c1, c2 FROM {name} WHERE k = 1 AND (c1, c2) <= ({c1}, 'zzzz') ORDER BY {back} LIMIT 13"
        yield f'SELECT c1, c2 FROM {name} WHERE k = 1 AND c1 IN (2, 30, 31, 77, 150, 250, 299)'
        yield f'SELECT c1, c2 FROM {name} WHERE k = 1 AND c1 IN (2, 30, 31, 77, 150, 250, 299) ORDER BY {back}'
        yield f'SELECT * FROM {name} WHERE k = 2'
        yield f'SELECT * FROM {name} WHERE k = 3'
    yield 'SELECT s FROM wide WHERE k = 1 LIMIT 1'


def connect(host):
    return wire.Connection(host, 9042, 4, timeout=120)


def fill(host):
    connection = connect(host)
    for n, statement in enumerate(statements()):
        answer = connection.query(statement)
        if answer['kind'] == 'error':
            raise SystemExit(f'{statement}: {answer}')
    print(f'{host}: {n + 1} statements')


def answers(host):
    connection = connect(host)
    connection.query(f'USE {KEYSPACE}')
    for question in questions():
        answer = connection.query(question)
        if answer['kind'] != 'rows':
            yield question, str(answer)
            continue
        yield question, [[None if cell is None else cell.hex() for cell in row] for row in answer['rows']]


def record(host):
    found = dict(answers(host))
    failed = [f'{q}: {a}' for q, a in found.items() if isinstance(a, str)]
    if failed:
        raise SystemExit('\n'.join(failed[:SHOWN]))
    with gzip.GzipFile(ANSWERS, 'wb', 9, mtime=0) as f:
        f.write(json.dumps(found, indent=0).encode())
    print(f'{host}: {len(found)} answers, {sum(map(len, found.values()))} rows')


def check(host):
    with gzip.open(ANSWERS) as f:
        wanted = json.load(f)
    found = dict(answers(host))
    differ = [q for q in wanted if wanted[q] != found.get(q)]
    for question in differ[:SHOWN]:
        print(f'{question}\n  {str(found.get(question))[:400]}\n  {str(wanted[question])[:400]}')
    print(f'{len(wanted)} answers compared, {len(differ)} differ')
    return 1 if differ or not wanted else 0


def pack(name, directory):
    """`directory` is what holds `data/KEYSPACE/TABLE-ID`. Times and owners do not matter, snapshots neither."""
    def plain(entry):
        if os.path.basename(entry.name) == 'snapshots':
            return None
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ''
        return entry

    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode='w') as tar:
        tar.add(os.path.join(directory, 'data'), 'data', filter=plain)
    with gzip.GzipFile(os.path.join(HERE, name + '.tar.gz'), 'wb', 9, mtime=0) as f:
        f.write(raw.getvalue())


def unpack(name, directory):
    if name != 'mixed':
        with tarfile.open(os.path.join(HERE, name + '.tar.gz')) as tar:
            tar.extractall(directory, filter='data')
        return
    unpack('oa', directory)
    with tempfile.TemporaryDirectory() as other:
        unpack('da', other)
        for table, path in tables(other).items():
            # each recording counted for itself, and has paths of its own for the elements of lists
            if table in ('counts', 'kinds'):
                continue
            for file in os.listdir(path):
                shutil.copy(os.path.join(path, file), tables(directory)[table])


def tables(directory):
    """Names of our tables, and where their files are."""
    keyspace = os.path.join(directory, 'data', KEYSPACE)
    return {name.split('-')[0]: os.path.join(keyspace, name) for name in sorted(os.listdir(keyspace))}


def again(host):
    connection = connect(host)
    wanted = tuple(f'INSERT INTO {KEYSPACE}.{table} ' for table in ('composite', 'lz4', 'wide', 'wide_desc'))
    inserts = [s for s in rows() if s.startswith(wanted) and 'USING TIMESTAMP' in s]
    for statement in inserts[::7]:
        answer = connection.query(statement)
        if answer['kind'] == 'error':
            raise SystemExit(f'{statement}: {answer}')


def versions(directory):
    names = [file for path in tables(directory).values() for file in os.listdir(path)]
    print(' '.join(sorted({name.split('-')[0] for name in names if name.endswith('-Data.db')})))


def main():
    command, *rest = sys.argv[1:]
    verbs = (fill, record, pack, unpack, check, again, versions)
    return {verb.__name__: verb for verb in verbs}[command](*rest) or 0


if __name__ == '__main__':
    sys.exit(main())
