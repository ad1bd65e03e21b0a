// The common driver scenario with the unmodified Node.js driver: node scenario.js HOST PORT [SLOW_HOST]
//
// Both hosts fail a read over more than a thousand tombstones; SLOW_HOST acknowledges no write and ends no long read
// before it times out.
'use strict';

const assert = require('assert');
const path = require('path');
const cassandra = require(require.resolve('cassandra-driver', { paths: [process.env.DRIVER_MODULES || path.join(__dirname, 'node_modules')] }));

const { types } = cassandra;
const KS = 'drv_node';
const EVENT_MILLIS = 20000;
const E = types.responseErrorCodes;

const ok = (name) => console.log('ok ' + name);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

function connect(host, port, version) {
  return new cassandra.Client({
    contactPoints: [`${host}:${port}`],
    localDataCenter: 'datacenter1',
    protocolOptions: { maxVersion: version },
    socketOptions: { readTimeout: 30000, connectTimeout: 20000 },
    policies: { retry: new cassandra.policies.retry.FallthroughRetryPolicy() },
    queryOptions: { consistency: types.consistencies.one },
    refreshSchemaDelay: 10,
  });
}

async function fails(call, code, what) {
  try {
    await call();
  } catch (e) {
    const found = e.code === undefined && e.innerErrors ? Object.values(e.innerErrors)[0] : e;
    assert.strictEqual(found.code, code, `${what}: ${found}`);
    return found;
  }
  throw new assert.AssertionError({ message: `${what} did not fail` });
}

async function schemaMetadata(c) {
  await c.execute(`DROP KEYSPACE IF EXISTS ${KS}`);
  await c.execute(`CREATE KEYSPACE ${KS} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
  await c.execute(`CREATE TYPE ${KS}.address (street text, zip int)`);
  await c.execute(`CREATE TABLE ${KS}.shape (k1 int, k2 text, c1 timeuuid, c2 int, s text static, a frozen<address>, v map<text, frozen<set<int>>>, ` +
    'PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)');
  const host = c.hosts.values()[0];
  assert.ok(host.cassandraVersion.startsWith('5.0'), `release ${host.cassandraVersion}`);
  assert.ok(host.datacenter && host.rack && host.hostId && host.tokens.length >= 1);
  await c.metadata.refreshKeyspaces();
  const t = await c.metadata.getTable(KS, 'shape');
  assert.deepStrictEqual(t.partitionKeys.map((x) => x.name), ['k1', 'k2']);
  assert.deepStrictEqual(t.clusteringKeys.map((x) => x.name), ['c1', 'c2']);
  assert.deepStrictEqual(t.clusteringOrder, ['DESC', 'ASC']);
  assert.ok(t.columnsByName.s.isStatic);
  assert.strictEqual(t.columnsByName.v.type.code, types.dataTypes.map);
  const udt = await c.metadata.getUdt(KS, 'address');
  assert.deepStrictEqual(udt.fields.map((f) => f.name), ['street', 'zip']);
  ok('schema_metadata');
}

async function prepared(c) {
  await c.execute(`CREATE TABLE ${KS}.p (k int, c int, v text, PRIMARY KEY (k, c))`);
  for (let i = 0; i < 100; i++) await c.execute(`INSERT INTO ${KS}.p (k, c, v) VALUES (?, ?, ?)`, [1, i, 'v' + i], { prepare: true });
  const rs = await c.execute(`SELECT * FROM ${KS}.p WHERE k = :k AND c >= :low`, { k: 1, low: 97 }, { prepare: true });
  assert.deepStrictEqual(rs.rows.map((r) => r.v), ['v97', 'v98', 'v99']);
  await c.execute(`ALTER TABLE ${KS}.p ADD later int`);
  const again = await c.execute(`SELECT * FROM ${KS}.p WHERE k = :k AND c >= :low`, { k: 1, low: 99 }, { prepare: true });
  assert.strictEqual(again.rows[0].v, 'v99');
  ok('prepared');
}

async function paging(c) {
  await c.execute(`CREATE TABLE ${KS}.pages (k int, c int, v int, PRIMARY KEY (k, c))`);
  const parameters = Array.from({ length: 10000 }, (_, n) => [n % 7, n, n * 2]);
  await cassandra.concurrent.executeConcurrent(c, `INSERT INTO ${KS}.pages (k, c, v) VALUES (?, ?, ?)`, parameters, { concurrencyLevel: 128 });
  const seen = new Set();
  let pages = 0;
  let pageState;
  do {
    const rs = await c.execute(`SELECT k, c, v FROM ${KS}.pages`, [], { fetchSize: 100, pageState, prepare: true });
    for (const r of rs.rows) {
      assert.strictEqual(r.v, r.c * 2);
      seen.add(r.c);
    }
    pages += 1;
    pageState = rs.pageState;
  } while (pageState);
  assert.strictEqual(seen.size, 10000);
  assert.ok(pages >= 100 && pages <= 101, `${pages} pages`);
  const count = await c.execute(`SELECT count(*) FROM ${KS}.pages`);
  assert.strictEqual(count.first().count.toNumber(), 10000);
  ok('paging');
}

async function batches(c) {
  await c.execute(`CREATE TABLE ${KS}.b (k int PRIMARY KEY, v int)`);
  await c.execute(`CREATE TABLE ${KS}.counts (k int PRIMARY KEY, n counter)`);
  for (const [mark, logged] of [[1, true], [2, false]]) {
    const queries = Array.from({ length: 10 }, (_, k) => ({ query: `INSERT INTO ${KS}.b (k, v) VALUES (?, ?)`, params: [k, mark] }));
    await c.batch(queries, { prepare: true, logged });
    const rs = await c.execute(`SELECT v FROM ${KS}.b`);
    assert.strictEqual(rs.rows.filter((r) => r.v === mark).length, 10);
  }
  await c.batch([1, 2, 3, 4].map((n) => ({ query: `UPDATE ${KS}.counts SET n = n + ? WHERE k = ?`, params: [n, 1] })), { prepare: true, counter: true });
  assert.strictEqual((await c.execute(`SELECT n FROM ${KS}.counts WHERE k = 1`)).first().n.toNumber(), 10);
  ok('batches');
}

async function allTypes(c) {
  const L = types.Long;
  const columns = {
    'a ascii': ['x', ''],
    'b bigint': [L.ZERO, L.MAX_VALUE, L.MIN_VALUE],
    'c blob': [Buffer.alloc(0), Buffer.from('00ff', 'hex'), Buffer.alloc(100000, 7)],
    'd boolean': [true, false],
    'e date': [types.LocalDate.fromString('1970-01-01'), types.LocalDate.fromString('2020-02-29'), new types.LocalDate(-2147483648), new types.LocalDate(2147483647)],
    'f decimal': [types.BigDecimal.fromString('0'), types.BigDecimal.fromString('-1.50'), types.BigDecimal.fromString('1234567890123456789012345678901234567890.5')],
    'g double': [0, -1.5, Number.MAX_VALUE, Number.MIN_VALUE, Infinity],
    'h duration': [new types.Duration(0, 0, L.ZERO), new types.Duration(1, 2, L.fromNumber(3)), new types.Duration(-1, -2, L.fromNumber(-3))],
    'i float': [0, 1.5, -Infinity],
    'j inet': [types.InetAddress.fromString('127.0.0.1'), types.InetAddress.fromString('2001:db8::ff00:42:8329')],
    'k1 int': [0, 2147483647, -2147483648],
    'l smallint': [0, 32767, -32768],
    'm text': ['', 'caf\u00e9 \u4e2d \u{1f600}', 'x'.repeat(100000)],
    'n time': [types.LocalTime.fromString('00:00:00'), types.LocalTime.fromString('23:59:59.999999999')],
    'o timestamp': [new Date(0), new Date('2020-02-29T12:34:56.789Z'), new Date(-8640000000000000)],
    'p timeuuid': [types.TimeUuid.fromString('de3e12ba-e5f0-11f1-a71b-15da588fdeae')],
    'q tinyint': [0, 127, -128],
    'r uuid': [types.Uuid.fromString('00000000-0000-0000-0000-000000000000'), types.Uuid.fromString('6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47')],
    't varint': [types.Integer.ZERO, types.Integer.fromString('-129'), types.Integer.fromString('99999999999999999999999999')],
    'u list<int>': [[1, 2, 3], [5, 5]],
    'v set<text>': [['', 'a', 'z']],
    'w map<text, int>': [{ a: 1, b: -1 }],
    'y tuple<int, text, boolean>': [new types.Tuple(1, 'a', true), new types.Tuple(null, 'a', null)],
    [`x frozen<${KS}.address>`]: [{ street: 's', zip: 1 }, { street: null, zip: 2 }],
    'z vector<float, 3>': [new types.Vector([1, -2.5, 0], 'float')],
  };
  await c.execute(`CREATE TABLE ${KS}.types (k int PRIMARY KEY, ${Object.keys(columns).join(', ')})`);
  const text = (v) => (v instanceof types.Tuple ? JSON.stringify(v.elements) : v instanceof types.Vector ? JSON.stringify(Array.from(v)) : v !== null && typeof v === 'object' && !Buffer.isBuffer(v) && !Array.isArray(v) && v.constructor !== Object ? v.toString() : JSON.stringify(v));
  for (const [column, values] of Object.entries(columns)) {
    const name = column.split(' ')[0];
    const insert = `INSERT INTO ${KS}.types (k, ${name}) VALUES (?, ?)`;
    const select = `SELECT ${name} FROM ${KS}.types WHERE k = ?`;
    const read = async () => (await c.execute(select, [1], { prepare: true })).first()[name];
    for (const v of values) {
      await c.execute(insert, [1, v], { prepare: true });
      assert.strictEqual(text(await read()), text(v), column);
    }
    await c.execute(insert, [1, types.unset], { prepare: true });
    assert.notStrictEqual(await read(), null, `${column}: unset erased the value`);
    await c.execute(insert, [1, null], { prepare: true });
    assert.strictEqual(await read(), null, `${column}: null`);
  }
  ok('types');
}

// The value of no bytes, of every type that has one, is neither null nor lost; empty collections are.
async function emptyValues(c) {
  const scalars = ['ascii', 'bigint', 'blob', 'boolean', 'decimal', 'double', 'float', 'inet', 'int', 'text', 'timestamp', 'timeuuid', 'uuid', 'varint'];
  await c.execute(`CREATE TABLE ${KS}.empties (k int PRIMARY KEY, ${scalars.map((t) => `${t}_ ${t}`).join(', ')}, l list<int>, fl frozen<list<int>>, ` +
    'fm frozen<map<int, int>>, t tuple<int, text>)');
  for (const t of scalars) {
    const bytesOf = t === 'blob' ? 'blob_' : `${t}AsBlob(${t}_)`;
    await c.execute(`INSERT INTO ${KS}.empties (k, ${t}_) VALUES (1, ${t === 'blob' ? '0x' : `blobAs${t}(0x)`})`);
    const row = (await c.execute(`SELECT ${bytesOf} AS raw, ${t}_ AS v FROM ${KS}.empties WHERE k = 1`)).first();
    assert.strictEqual(row.raw.length, 0, `empty ${t}`);
    // The driver has no value of its own for the others.
    assert.deepStrictEqual(row.v, { ascii: '', text: '', blob: Buffer.alloc(0) }[t] ?? null, `empty ${t} as the driver sees it`);
  }
  // The driver sends null for an empty list.
  await c.execute(`INSERT INTO ${KS}.empties (k, l, fl, fm, t) VALUES (3, ?, [], ?, ?)`, [[], {}, new types.Tuple(null, null)], { prepare: true });
  const row = (await c.execute(`SELECT l, fl, fm, t FROM ${KS}.empties WHERE k = 3`)).first();
  assert.deepStrictEqual([row.l, row.fl, row.fm, row.t.elements], [null, [], {}, [null, null]]);
  ok('empty_values');
}

async function errors(c) {
  await fails(() => c.execute('SELEKT * FROM x'), E.syntaxError, 'syntax');
  await fails(() => c.execute(`SELECT nosuch FROM ${KS}.b`), E.invalid, 'invalid');
  await fails(() => c.execute(`SELECT * FROM ${KS}.nosuch`), E.invalid, 'no table');
  const e = await fails(() => c.execute(`CREATE TABLE ${KS}.b (k int PRIMARY KEY)`), E.alreadyExists, 'already exists');
  assert.strictEqual(`${e.keyspace}.${e.table}`, `${KS}.b`);
  await fails(() => c.execute("CREATE KEYSPACE drv_bad WITH replication = {'class': 'NoSuch'}"), E.configError, 'config');
  await fails(() => c.execute(`CREATE TABLE ${KS}.bad (k int PRIMARY KEY) WITH gc_grace_seconds = -1`), E.configError, 'config of a table');
  await c.execute('DROP KEYSPACE IF EXISTS drv_node3');
  await c.execute("CREATE KEYSPACE drv_node3 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
  await c.execute('CREATE TABLE drv_node3.t (k int PRIMARY KEY, v int)');
  for (const cql of ['INSERT INTO drv_node3.t (k, v) VALUES (1, 1)', 'SELECT * FROM drv_node3.t WHERE k = 1']) {
    const u = await fails(() => c.execute(cql, [], { consistency: types.consistencies.three }), E.unavailableException, 'unavailable');
    assert.deepStrictEqual([u.consistencies, u.required, u.alive], [types.consistencies.three, 3, 1]);
  }
  await c.execute('DROP KEYSPACE drv_node3');
  await fails(() => c.execute(`CREATE KEYSPACE ${KS} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`), E.alreadyExists, 'keyspace exists');
  await fails(() => c.execute('DROP TABLE system.local'), E.unauthorized, 'unauthorized');
  ok('errors');
}

// A read over too many tombstones warns, and one over far too many fails.
async function tombstones(c) {
  await c.execute(`CREATE TABLE ${KS}.graves (k int, c int, v int, PRIMARY KEY (k, c))`);
  const graves = [];
  for (const [k, count] of [[1, 200], [2, 1200]]) for (let i = 0; i < count; i++) graves.push([k, i]);
  await cassandra.concurrent.executeConcurrent(c, `DELETE FROM ${KS}.graves WHERE k = ? AND c = ?`, graves);
  const { warnings } = (await c.execute(`SELECT * FROM ${KS}.graves WHERE k = 1`)).info;
  assert.ok((warnings || []).some((w) => w.includes('200 tombstone cells')), `${warnings}`);
  const e = await fails(() => c.execute(`SELECT * FROM ${KS}.graves WHERE k = 2`), E.readFailure, 'read failure');
  assert.deepStrictEqual([e.consistencies, e.received, e.blockFor, e.failures], [types.consistencies.one, 0, 1, 1]);
  ok('tombstones');
}

// The slow server writes, and says so too late.
async function timeouts(host, port) {
  const c = connect(host, port, 4);
  await c.connect();
  try {
    await c.execute(`CREATE KEYSPACE ${KS} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`);
    await c.execute(`CREATE TABLE ${KS}.t (k int PRIMARY KEY, v text)`);
    const value = '\\'.repeat(20000);
    const insert = (k) => c.execute(`INSERT INTO ${KS}.t (k, v) VALUES (?, ?)`, [k, value], { prepare: true });
    // In time are those that come right before the log is synced.
    const ends = await Promise.allSettled(Array.from({ length: 1000 }, (_, k) => insert(k)));
    const late = ends.filter((end) => end.status === 'rejected').map((end) => end.reason);
    assert.ok(late.length > 0, 'all writes in time');
    for (const e of late) {
      assert.deepStrictEqual([e.code, e.consistencies, e.received, e.blockFor, e.writeType], [E.writeTimeout, types.consistencies.one, 0, 1, 'SIMPLE']);
    }
    const long = `SELECT count(${'toJson('.repeat(5)}v${')'.repeat(5)}) FROM ${KS}.t`;
    const e = await fails(() => c.execute(long), E.readTimeout, 'read timeout');
    assert.deepStrictEqual([e.consistencies, e.received, e.blockFor], [types.consistencies.one, 0, 1]);
    assert.strictEqual((await c.execute(`SELECT k FROM ${KS}.t WHERE k = 7`)).first().k, 7);
    await c.execute(`DROP KEYSPACE ${KS}`);
  } finally {
    await c.shutdown();
  }
  ok('timeouts');
}

async function unprepared(c) {
  const insert = `INSERT INTO ${KS}.again (k, v) VALUES (?, ?)`;
  await c.execute(`CREATE TABLE ${KS}.again (k int PRIMARY KEY, v int)`);
  await c.execute(insert, [1, 1], { prepare: true });
  await c.execute(`DROP TABLE ${KS}.again`);
  await c.execute(`CREATE TABLE ${KS}.again (k int PRIMARY KEY, v int)`);
  await c.execute(insert, [2, 2], { prepare: true });
  assert.strictEqual((await c.execute(`SELECT * FROM ${KS}.again`)).rows.length, 1);
  ok('unprepared');
}

// The driver keeps definitions until an event tells it otherwise.
async function events(c, host, port, version) {
  await c.execute('DROP KEYSPACE IF EXISTS drv_announced');
  const watcher = connect(host, port, version);
  await watcher.connect();
  const { metadata } = watcher;
  const table = (name) => metadata.getTable('drv_announced', name);
  const type = (name) => metadata.getUdt('drv_announced', name);
  try {
    for (const [cql, seen] of [
      ["CREATE KEYSPACE drv_announced WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", () => metadata.keyspaces.drv_announced],
      ['CREATE TABLE drv_announced.t (k int PRIMARY KEY)', async () => (await table('t')).columns.length === 1],
      ['ALTER TABLE drv_announced.t ADD v int', async () => (await table('t')).columns.length === 2],
      ['CREATE TYPE drv_announced.u (a int)', async () => (await type('u')).fields.length === 1],
      ['ALTER TYPE drv_announced.u ADD b int', async () => (await type('u')).fields.length === 2],
      ['DROP TYPE drv_announced.u', async () => !(await type('u'))],
      ['DROP TABLE drv_announced.t', async () => !(await table('t'))],
      ['ALTER KEYSPACE drv_announced WITH durable_writes = false', () => !metadata.keyspaces.drv_announced.durableWrites],
      ['DROP KEYSPACE drv_announced', () => !metadata.keyspaces.drv_announced],
    ]) {
      await c.execute(cql);
      const end = Date.now() + EVENT_MILLIS;
      while (!(await seen())) {
        assert.ok(Date.now() < end, `no event for ${cql}`);
        await sleep(20);
      }
    }
  } finally {
    await watcher.shutdown();
  }
  ok('events');
}

async function main() {
  const [host, port, slow] = process.argv.slice(2);
  for (const version of [4]) { // the highest this driver speaks
    const c = connect(host, port, version);
    await c.connect();
    try {
      await schemaMetadata(c);
      await prepared(c);
      await paging(c);
      await batches(c);
      await allTypes(c);
      await emptyValues(c);
      await errors(c);
      await tombstones(c);
      await unprepared(c);
      await events(c, host, port, version);
      await c.execute(`DROP KEYSPACE ${KS}`);
    } finally {
      await c.shutdown();
    }
    ok(`protocol up to v${version}`);
  }
  if (slow) await timeouts(slow, port);
}

main().catch((e) => {
  console.error(e);
  process.exit(1);
});
