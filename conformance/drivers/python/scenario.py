"""The common driver scenario with the unmodified Python driver: scenario.py HOST PORT [SLOW_HOST].

Both hosts fail a read over more than a thousand tombstones; SLOW_HOST acknowledges no write and ends no long read
before it times out.
"""

import datetime
import decimal
import ipaddress
import sys
import threading
import time
import uuid

from cassandra import (AlreadyExists, ConsistencyLevel, InvalidRequest, ReadFailure, ReadTimeout, Unauthorized, Unavailable,
                       WriteTimeout)
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.protocol import ConfigurationException, SyntaxException
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement
from cassandra.util import Date, Duration, Time

KS = 'drv_python'
EVENT_SECONDS = 15


def ok(name):
    print(f'ok {name}', flush=True)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def equal(got, want, what):
    check(got == want, f'{what}: got {got!r}, want {want!r}')


def fails(error, call, what):
    try:
        call()
    except error as e:
        return e
    raise AssertionError(f'{what}: no {error.__name__}')


def connect(host, port, version):
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]), request_timeout=30,
                               retry_policy=FallthroughRetryPolicy(), consistency_level=ConsistencyLevel.ONE)
    cluster = Cluster([host], port=port, protocol_version=version, execution_profiles={EXEC_PROFILE_DEFAULT: profile},
                      connect_timeout=20, control_connection_timeout=20, schema_event_refresh_window=0)
    return cluster, cluster.connect()


def schema_metadata(cluster, s):
    s.execute(f'DROP KEYSPACE IF EXISTS {KS}')
    s.execute(f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
    s.execute(f'CREATE TYPE {KS}.address (street text, zip int)')
    s.execute(f'CREATE TABLE {KS}.shape (k1 int, k2 text, c1 timeuuid, c2 int, s text static, a frozen<address>, '
              "v map<text, frozen<set<int>>>, PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC) "
              "AND comment = 'a shape'")
    cluster.refresh_schema_metadata()
    host = cluster.metadata.all_hosts()[0]
    check(host.release_version.startswith('5.0'), f'release {host.release_version}')
    check(host.datacenter and host.rack and host.host_id, 'host without place')
    t = cluster.metadata.keyspaces[KS].tables['shape']
    equal([c.name for c in t.partition_key], ['k1', 'k2'], 'partition key')
    equal([(c.name, c.is_reversed) for c in t.clustering_key], [('c1', True), ('c2', False)], 'clustering')
    check(t.columns['s'].is_static, 'static column')
    equal(t.columns['v'].cql_type, 'map<text, frozen<set<int>>>', 'type of v')
    equal(t.options['comment'], 'a shape', 'comment')
    equal(cluster.metadata.keyspaces[KS].user_types['address'].field_names, ['street', 'zip'], 'fields')
    check('CLUSTERING ORDER BY (c1 DESC, c2 ASC)' in t.as_cql_query(), 'DDL of the table')
    check(len(cluster.metadata.token_map.ring) >= 1, 'no tokens')
    check('system_virtual_schema' in cluster.metadata.keyspaces, 'no virtual keyspaces')
    ok('schema_metadata')


def prepared(s):
    s.execute(f'CREATE TABLE {KS}.p (k int, c int, v text, PRIMARY KEY (k, c))')
    insert = s.prepare(f'INSERT INTO {KS}.p (k, c, v) VALUES (?, ?, ?)')
    equal(insert.routing_key_indexes, [0], 'routing key')
    for c in range(100):
        s.execute(insert, (1, c, f'v{c}'))
    select = s.prepare(f'SELECT * FROM {KS}.p WHERE k = :k AND c >= :low')
    equal([r.v for r in s.execute(select, {'k': 1, 'low': 97})], ['v97', 'v98', 'v99'], 'rows')
    s.execute(f'ALTER TABLE {KS}.p ADD later int')
    row = s.execute(select, {'k': 1, 'low': 99}).one()
    equal(row.v, 'v99', 'row after ALTER')
    ok('prepared')


def paging(s):
    s.execute(f'CREATE TABLE {KS}.pages (k int, c int, v int, PRIMARY KEY (k, c))')
    insert = s.prepare(f'INSERT INTO {KS}.pages (k, c, v) VALUES (?, ?, ?)')
    futures = []
    for n in range(10000):
        futures.append(s.execute_async(insert, (n % 7, n, n * 2)))
        if len(futures) == 128:
            [f.result() for f in futures]
            futures = []
    [f.result() for f in futures]
    seen, pages = set(), 0
    result = s.execute(SimpleStatement(f'SELECT k, c, v FROM {KS}.pages', fetch_size=100))
    while True:
        pages += 1
        for r in result.current_rows:
            equal(r.v, r.c * 2, 'value')
            seen.add(r.c)
        if not result.has_more_pages:
            break
        check(len(result.current_rows) == 100, f'a page of {len(result.current_rows)}')
        result.fetch_next_page()
    equal(len(seen), 10000, 'rows')
    check(100 <= pages <= 101, f'{pages} pages')
    select = s.prepare(f'SELECT c FROM {KS}.pages WHERE k = ?')
    select.fetch_size = 100
    result = s.execute(select, (3,))
    state = result.paging_state
    check(state, 'no paging state')
    rest = s.execute(select, (3,), paging_state=state)
    equal(rest.one().c, 3 + 7 * 100, 'first row of the second page')
    equal(s.execute(f'SELECT count(*) FROM {KS}.pages').one()[0], 10000, 'count')
    ok('paging')


def batches(s):
    s.execute(f'CREATE TABLE {KS}.b (k int PRIMARY KEY, v int)')
    s.execute(f'CREATE TABLE {KS}.counts (k int PRIMARY KEY, n counter)')
    insert = s.prepare(f'INSERT INTO {KS}.b (k, v) VALUES (?, ?)')
    for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
        batch = BatchStatement(batch_type=kind)
        for k in range(10):
            batch.add(insert, (k, kind.value))
        batch.add(f'INSERT INTO {KS}.b (k, v) VALUES (%s, %s)', (99, kind.value))
        s.execute(batch)
        equal(sorted(r.k for r in s.execute(f'SELECT * FROM {KS}.b') if r.v == kind.value), list(range(10)) + [99], 'rows')
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    add = s.prepare(f'UPDATE {KS}.counts SET n = n + ? WHERE k = ?')
    for n in range(1, 5):
        batch.add(add, (n, 1))
    s.execute(batch)
    equal(s.execute(f'SELECT n FROM {KS}.counts WHERE k = 1').one().n, 10, 'counter')
    ok('batches')


def types(s, version):
    vector = version >= 5
    U = uuid.UUID('6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47')
    T = uuid.UUID('de3e12ba-e5f0-11f1-a71b-15da588fdeae')
    columns = {
        'a ascii': ['x', ''],
        'b bigint': [0, 2 ** 63 - 1, -2 ** 63],
        'c blob': [b'', b'\x00\xff' * 500],
        'd boolean': [True, False],
        'e date': [Date(0), Date(-2 ** 31), Date(2 ** 31 - 1), Date('2020-02-29')],
        'f decimal': [decimal.Decimal('0'), decimal.Decimal('-1.50'), decimal.Decimal('1e+20'), decimal.Decimal('1' * 40 + '.' + '9' * 20)],
        'g double': [0.0, -1.5, 1.7976931348623157e308, 5e-324, float('inf')],
        'h duration': [Duration(0, 0, 0), Duration(1, 2, 3), Duration(-1, -2, -3), Duration(2 ** 31 - 1, 2 ** 31 - 1, 2 ** 62)],
        'i float': [0.0, 1.5, -0.25, float('-inf')],
        'j inet': ['127.0.0.1', '::1', '2001:db8::ff00:42:8329'],
        'k1 int': [0, 2 ** 31 - 1, -2 ** 31],
        'l smallint': [0, 32767, -32768],
        'm text': ['', 'caf\u00e9 \u4e2d \U0001f600', 'x' * 100000],
        'n time': [Time(0), Time(86399999999999)],
        'o timestamp': [datetime.datetime(1970, 1, 1), datetime.datetime(2020, 2, 29, 12, 34, 56, 789000), datetime.datetime(1900, 1, 1)],
        'p timeuuid': [T],
        'q tinyint': [0, 127, -128],
        'r uuid': [U, uuid.UUID(int=0)],
        't varint': [0, -1, 128, -129, 2 ** 200, -2 ** 200],
        'u list<int>': [[1, 2, 3], [5, 5]],
        'v set<text>': [{'a', '', 'z'}],
        'w map<text, int>': [{'a': 1, 'b': -1}],
        'x frozen<map<int, frozen<list<text>>>>': [{1: ['a', ''], 2: []}, {}],
        'y tuple<int, text, boolean>': [(1, 'a', True), (None, 'a', None)],
    }
    if vector:
        columns['z vector<float, 3>'] = [[1.0, -2.5, 0.0]]
    s.execute(f"CREATE TABLE {KS}.types (k int PRIMARY KEY, {', '.join(columns)})")
    for column, values in columns.items():
        name = column.split()[0]
        insert = s.prepare(f'INSERT INTO {KS}.types (k, {name}) VALUES (?, ?)')
        select = s.prepare(f'SELECT {name} FROM {KS}.types WHERE k = ?')
        for v in values:
            s.execute(insert, (1, v))
            got = s.execute(select, (1,)).one()[0]
            if isinstance(v, (dict, set, list)) and not isinstance(got, type(v)):
                got = dict(got) if isinstance(v, dict) else set(got) if isinstance(v, set) else list(got)
            equal(got, v, column)
        s.execute(insert, (1, UNSET_VALUE))
        check(s.execute(select, (1,)).one()[0] is not None, f'{column}: unset erased the value')
        s.execute(insert, (1, None))
        equal(s.execute(select, (1,)).one()[0], None, f'{column} null')
    ok('types')


def empty_values(s):
    """The value of no bytes, of every type that has one, is neither null nor lost; empty collections are."""
    scalars = ['ascii', 'bigint', 'blob', 'boolean', 'decimal', 'double', 'float', 'inet', 'int', 'text', 'timestamp', 'timeuuid', 'uuid', 'varint']
    columns = [f'{t}_ {t}' for t in scalars]
    s.execute(f"CREATE TABLE {KS}.empties (k int PRIMARY KEY, {', '.join(columns)}, l list<int>, fl frozen<list<int>>, fm frozen<map<int, int>>, "
              f'a frozen<address>, t tuple<int, text>)'.replace('<address>', f'<{KS}.address>'))
    for t in scalars:
        term = '0x' if t == 'blob' else f'blobAs{t}(0x)'
        s.execute(f'INSERT INTO {KS}.empties (k, {t}_) VALUES (1, {term})')
        bytes_of = f'{t}_' if t == 'blob' else f'{t}AsBlob({t}_)'
        row = s.execute(f'SELECT {bytes_of} AS raw, {t}_ AS v FROM {KS}.empties WHERE k = 1').one()
        equal(row.raw, b'', f'empty {t}')
        # the driver has no value of its own for the others
        equal(row.v, {'ascii': '', 'text': '', 'blob': b''}.get(t), f'empty {t} as the driver sees it')
        equal(s.execute(f'SELECT {bytes_of} AS raw FROM {KS}.empties WHERE k = 2').one(), None, 'no row')
    s.execute(s.prepare(f'INSERT INTO {KS}.empties (k, l, fl, fm, a, t) VALUES (3, ?, ?, ?, ?, ?)'), ([], [], {}, (None, None), (None, None)))
    row = s.execute(f'SELECT l, fl, fm, a, t FROM {KS}.empties WHERE k = 3').one()
    equal((row.l, list(row.fl), dict(row.fm), tuple(row.a), tuple(row.t)), (None, [], {}, (None, None), (None, None)), 'empty collections')
    ok('empty_values')


def errors(s):
    fails(SyntaxException, lambda: s.execute('SELEKT * FROM x'), 'syntax')
    fails(InvalidRequest, lambda: s.execute(f'SELECT nosuch FROM {KS}.b'), 'invalid')
    fails(InvalidRequest, lambda: s.execute(f'SELECT * FROM {KS}.nosuch'), 'no table')
    e = fails(AlreadyExists, lambda: s.execute(f'CREATE TABLE {KS}.b (k int PRIMARY KEY)'), 'already exists')
    equal((e.keyspace, e.table), (KS, 'b'), 'what exists')
    fails(AlreadyExists, lambda: s.execute(f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"), 'keyspace exists')
    fails(ConfigurationException, lambda: s.execute("CREATE KEYSPACE drv_bad WITH replication = {'class': 'NoSuch'}"), 'config')
    fails(ConfigurationException, lambda: s.execute(f'CREATE TABLE {KS}.bad (k int PRIMARY KEY) WITH gc_grace_seconds = -1'), 'config of a table')
    fails(Unauthorized, lambda: s.execute('DROP TABLE system.local'), 'unauthorized')
    s.execute("DROP KEYSPACE IF EXISTS drv_python3")
    s.execute("CREATE KEYSPACE drv_python3 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}")
    s.execute('CREATE TABLE drv_python3.t (k int PRIMARY KEY, v int)')
    for cql in ('INSERT INTO drv_python3.t (k, v) VALUES (1, 1)', 'SELECT * FROM drv_python3.t WHERE k = 1'):
        e = fails(Unavailable, lambda: s.execute(SimpleStatement(cql, consistency_level=ConsistencyLevel.THREE)), 'unavailable')
        equal((e.consistency, e.required_replicas, e.alive_replicas), (ConsistencyLevel.THREE, 3, 1), 'unavailable')
    s.execute('DROP KEYSPACE drv_python3')
    ok('errors')


def tombstones(s):
    """A read over too many tombstones warns, and one over far too many fails."""
    s.execute(f'CREATE TABLE {KS}.graves (k int, c int, v int, PRIMARY KEY (k, c))')
    delete = s.prepare(f'DELETE FROM {KS}.graves WHERE k = ? AND c = ?')
    for k, count in ((1, 200), (2, 1200)):
        [f.result() for f in [s.execute_async(delete, (k, c)) for c in range(count)]]
    result = s.execute(f'SELECT * FROM {KS}.graves WHERE k = 1')
    check(any('200 tombstone cells' in w for w in result.response_future.warnings or []), f'{result.response_future.warnings}')
    e = fails(ReadFailure, lambda: s.execute(f'SELECT * FROM {KS}.graves WHERE k = 2'), 'read failure')
    equal((e.consistency, e.required_responses, e.received_responses, e.failures), (ConsistencyLevel.ONE, 1, 0, 1), 'read failure')
    ok('tombstones')


def tracing(s):
    """A traced request says its session's id, and the driver finds the session complete."""
    s.execute(f'CREATE TABLE {KS}.traced (k int PRIMARY KEY, v text)')
    insert = s.prepare(f'INSERT INTO {KS}.traced (k, v) VALUES (?, ?)')
    trace = s.execute(insert, (1, 'one'), trace=True).get_query_trace()
    equal(trace.request_type, 'Execute CQL3 prepared query', 'request')
    equal({n: trace.parameters.get(n) for n in ('bound_var_0_k', 'bound_var_1_v', 'consistency_level', 'query')},
          {'bound_var_0_k': '1', 'bound_var_1_v': "'one'", 'consistency_level': 'ONE',
           'query': f'INSERT INTO {KS}.traced (k, v) VALUES (?, ?)'}, 'parameters')
    for statement, request in ((SimpleStatement(f'SELECT * FROM {KS}.traced WHERE k = 1', fetch_size=77), 'Execute CQL3 query'),
                               (BatchStatement(), 'Execute batch of CQL3 queries')):
        if isinstance(statement, BatchStatement):
            statement.add(insert, (2, 'two'))
        trace = s.execute(statement, trace=True).get_query_trace()
        equal(trace.request_type, request, 'request')
        check(trace.duration > datetime.timedelta(0), f'duration {trace.duration}')
        check(trace.coordinator and trace.client and trace.started_at, 'session without place or time')
        check(len(trace.events) > 2, f'{len(trace.events)} events')
        check(all(e.source and e.thread_name and e.description for e in trace.events), 'event without source')
        elapsed = [e.source_elapsed for e in trace.events]
        equal(elapsed, sorted(elapsed), 'order of events')
    check(s.execute(f'SELECT * FROM {KS}.traced').get_query_trace() is None, 'a trace nobody asked for')
    e = fails(InvalidRequest, lambda: s.execute(f'SELECT nosuch FROM {KS}.traced', trace=True), 'invalid')
    check(e is not None, 'error')
    ok('tracing')


def written(s, statement, rows):
    """Writes rows at once and gives the timeouts. While its socket is full the driver refuses requests by itself: those are sent again."""
    timed_out = []
    deadline = time.monotonic() + EVENT_SECONDS
    while rows:
        again = []
        for row, future in [(row, s.execute_async(statement, row)) for row in rows]:
            try:
                future.result()
            except WriteTimeout as e:
                timed_out.append((e.consistency, e.required_responses, e.received_responses))
            except NoHostAvailable:
                check(time.monotonic() < deadline, 'the driver takes no more requests')
                again.append(row)
        rows = again
    return timed_out


def timeouts(host, port):
    """The slow server writes, and says so too late."""
    cluster, s = connect(host, port, 5)
    try:
        s.execute(f"CREATE KEYSPACE {KS} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
        s.execute(f'CREATE TABLE {KS}.t (k int PRIMARY KEY, v text)')
        insert = s.prepare(f'INSERT INTO {KS}.t (k, v) VALUES (?, ?)')
        value = '\\' * 20000
        # some are in time: those that came right before the log was synced
        timed_out = written(s, insert, [(k, value) for k in range(1000)])
        equal(set(timed_out), {(ConsistencyLevel.ONE, 1, 0)}, 'write timeout')
        long = 'toJson(' * 5 + 'v' + ')' * 5
        e = fails(ReadTimeout, lambda: s.execute(f'SELECT count({long}) FROM {KS}.t'), 'read timeout')
        equal((e.consistency, e.required_responses, e.received_responses), (ConsistencyLevel.ONE, 1, 0), 'read timeout')
        equal(s.execute(f'SELECT k FROM {KS}.t WHERE k = 7').one().k, 7, 'what timed out and was written')
        s.execute(f'DROP KEYSPACE {KS}')
    finally:
        cluster.shutdown()
    ok('timeouts')


def unprepared(s):
    """A statement that the server forgot (its table was made anew) is prepared again inside the driver."""
    s.execute(f'CREATE TABLE {KS}.again (k int PRIMARY KEY, v int)')
    insert = s.prepare(f'INSERT INTO {KS}.again (k, v) VALUES (?, ?)')
    s.execute(insert, (1, 1))
    s.execute(f'DROP TABLE {KS}.again')
    s.execute(f'CREATE TABLE {KS}.again (k int PRIMARY KEY, v int)')
    s.execute(insert, (2, 2))
    equal([tuple(r) for r in s.execute(f'SELECT k, v FROM {KS}.again')], [(2, 2)], 'rows')
    ok('unprepared')


def events(cluster, s):
    """Changes made by one session reach the metadata of another cluster object by event."""
    host = cluster.metadata.all_hosts()[0]
    other, watcher = connect(host.address, cluster.port, cluster.protocol_version)
    pause = threading.Event()

    def seen(change, what):
        for _ in range(EVENT_SECONDS * 20):
            if change(other.metadata.keyspaces):
                return
            pause.wait(0.05)
        raise AssertionError(f'no event for {what}')

    try:
        s.execute('DROP KEYSPACE IF EXISTS drv_announced')
        for statement, change in (
            ("CREATE KEYSPACE drv_announced WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
             lambda all: 'drv_announced' in all),
            ('CREATE TABLE drv_announced.t (k int PRIMARY KEY)', lambda all: 't' in all['drv_announced'].tables),
            ('ALTER TABLE drv_announced.t ADD v int', lambda all: 'v' in all['drv_announced'].tables['t'].columns),
            ('CREATE TYPE drv_announced.u (a int)', lambda all: 'u' in all['drv_announced'].user_types),
            ('ALTER TYPE drv_announced.u ADD b int', lambda all: all['drv_announced'].user_types['u'].field_names == ['a', 'b']),
            ('DROP TYPE drv_announced.u', lambda all: 'u' not in all['drv_announced'].user_types),
            ('DROP TABLE drv_announced.t', lambda all: 't' not in all['drv_announced'].tables),
            ('ALTER KEYSPACE drv_announced WITH durable_writes = false', lambda all: not all['drv_announced'].durable_writes),
            ('DROP KEYSPACE drv_announced', lambda all: 'drv_announced' not in all),
        ):
            s.execute(statement)
            seen(change, statement)
    finally:
        other.shutdown()
    ok('events')


def negotiation(host, port):
    """Asked for a version that it does not know, the server names those it does, and the driver takes the highest."""
    profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([host]))
    cluster = Cluster([host], port=port, execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    try:
        cluster.connect()
        equal(cluster.protocol_version, 5, 'protocol version agreed on')
    finally:
        cluster.shutdown()
    ok('negotiation')


def main():
    host, port = sys.argv[1], int(sys.argv[2])
    negotiation(host, port)
    for version in (5, 4):
        cluster, s = connect(host, port, version)
        try:
            equal(cluster.protocol_version, version, 'protocol version')
            schema_metadata(cluster, s)
            prepared(s)
            paging(s)
            batches(s)
            types(s, version)
            empty_values(s)
            errors(s)
            tombstones(s)
            tracing(s)
            unprepared(s)
            events(cluster, s)
            s.execute(f'DROP KEYSPACE {KS}')
        finally:
            cluster.shutdown()
        ok(f'protocol v{version}')
    if len(sys.argv) > 3:
        timeouts(sys.argv[3], port)


main()
