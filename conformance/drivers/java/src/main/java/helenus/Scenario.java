package helenus;

import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.DefaultProtocolVersion;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.data.TupleValue;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.SchemaChangeListenerBase;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidConfigurationInQueryException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.ReadFailureException;
import com.datastax.oss.driver.api.core.servererrors.ReadTimeoutException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.servererrors.UnauthorizedException;
import com.datastax.oss.driver.api.core.servererrors.UnavailableException;
import com.datastax.oss.driver.api.core.servererrors.WriteTimeoutException;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.TupleType;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * The common driver scenario with the unmodified Java driver 4: Scenario HOST PORT [SLOW_HOST].
 *
 * <p>Both hosts fail a read over more than a thousand tombstones; SLOW_HOST acknowledges no write and ends no long read
 * before it times out.
 */
public final class Scenario {
  private static final String KS = "drv_java";

  private final String host;
  private final int port;
  /** What the watching session was told of, in order. */
  private final BlockingQueue<String> told = new LinkedBlockingQueue<>();
  private CqlSession session;

  private Scenario(String host, int port) {
    this.host = host;
    this.port = port;
  }

  public static void main(String[] args) throws Exception {
    Scenario s = new Scenario(args[0], Integer.parseInt(args[1]));
    try (CqlSession session = s.connect(s.host, null, "none", false)) {
      check(session.getContext().getProtocolVersion() == DefaultProtocolVersion.V5, "protocol version agreed on");
    }
    ok("negotiation");
    for (String variant : new String[] {"V5 none", "V5 lz4", "V4 lz4"}) {
      String[] part = variant.split(" ");
      try (CqlSession session = s.connect(s.host, part[0], part[1], false)) {
        s.session = session;
        check(session.getContext().getProtocolVersion() == DefaultProtocolVersion.valueOf(part[0]), "protocol version");
        s.schemaMetadata();
        s.prepared();
        s.paging();
        s.batches();
        s.types();
        s.emptyValues();
        s.errors();
        s.tombstones();
        s.unprepared();
        if (variant.equals("V5 none")) s.events();
        session.execute("DROP KEYSPACE " + KS);
      }
      ok("protocol " + variant);
    }
    if (args.length > 2) s.timeouts(args[2]);
    System.exit(0);
  }

  private CqlSession connect(String to, String version, String compression, boolean watching) {
    ProgrammaticDriverConfigLoaderBuilder config = DriverConfigLoader.programmaticBuilder();
    if (version != null) config.withString(DefaultDriverOption.PROTOCOL_VERSION, version);
    config
        .withString(DefaultDriverOption.PROTOCOL_COMPRESSION, compression)
        .withString(DefaultDriverOption.LOAD_BALANCING_LOCAL_DATACENTER, "datacenter1")
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(30))
        .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.CONTROL_CONNECTION_TIMEOUT, Duration.ofSeconds(20))
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_REQUEST_TIMEOUT, Duration.ofSeconds(20))
        .withStringList(DefaultDriverOption.METADATA_SCHEMA_REFRESHED_KEYSPACES, Collections.emptyList())
        .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(10));
    CqlSessionBuilder builder = CqlSession.builder().withConfigLoader(config.build()).addContactPoint(new InetSocketAddress(to, port));
    if (watching) builder.withSchemaChangeListener(new Watcher());
    return builder.build();
  }

  /** Notes what the driver says of the keyspace that the test of events changes. */
  private final class Watcher extends SchemaChangeListenerBase {
    @Override
    public void onKeyspaceCreated(KeyspaceMetadata keyspace) {
      note("created", keyspace.getName(), keyspace.getName());
    }

    @Override
    public void onKeyspaceUpdated(KeyspaceMetadata now, KeyspaceMetadata before) {
      if (now.isDurableWrites() != before.isDurableWrites()) note("updated", now.getName(), now.getName());
    }

    @Override
    public void onKeyspaceDropped(KeyspaceMetadata keyspace) {
      note("dropped", keyspace.getName(), keyspace.getName());
    }

    @Override
    public void onTableCreated(TableMetadata table) {
      note("created", table.getKeyspace(), table.getName());
    }

    @Override
    public void onTableUpdated(TableMetadata now, TableMetadata before) {
      note("updated", now.getKeyspace(), now.getName());
    }

    @Override
    public void onTableDropped(TableMetadata table) {
      note("dropped", table.getKeyspace(), table.getName());
    }

    @Override
    public void onUserDefinedTypeCreated(UserDefinedType type) {
      note("created", type.getKeyspace(), type.getName());
    }

    @Override
    public void onUserDefinedTypeUpdated(UserDefinedType now, UserDefinedType before) {
      note("updated", now.getKeyspace(), now.getName());
    }

    @Override
    public void onUserDefinedTypeDropped(UserDefinedType type) {
      note("dropped", type.getKeyspace(), type.getName());
    }

    private void note(String what, CqlIdentifier keyspace, CqlIdentifier name) {
      if (keyspace.asInternal().equals("drv_announced")) told.add(what + " " + name.asInternal());
    }
  }

  private void schemaMetadata() {
    run("DROP KEYSPACE IF EXISTS " + KS);
    run("CREATE KEYSPACE " + KS + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run("CREATE TYPE " + KS + ".address (street text, zip int)");
    run("CREATE TABLE " + KS + ".shape (k1 int, k2 text, c1 timeuuid, c2 int, s text static, a frozen<address>, "
        + "v map<text, frozen<set<int>>>, PRIMARY KEY ((k1, k2), c1, c2)) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)");
    session.refreshSchema();
    Node node = session.getMetadata().getNodes().values().iterator().next();
    check(node.getCassandraVersion().getMajor() == 5, "release " + node.getCassandraVersion());
    check(node.getHostId() != null && node.getDatacenter() != null && node.getSchemaVersion() != null, "node's place");
    KeyspaceMetadata keyspace = session.getMetadata().getKeyspace(KS).get();
    TableMetadata table = keyspace.getTable("shape").get();
    equal(table.getPartitionKey().size(), 2, "partition key");
    equal(table.getClusteringColumns().values().toString(), "[DESC, ASC]", "clustering order");
    check(table.getColumn("s").get().isStatic(), "static column");
    equal(table.getColumn("v").get().getType().asCql(true, false), "map<text, frozen<set<int>>>", "type of v");
    equal(keyspace.getUserDefinedType("address").get().getFieldNames().toString(), "[street, zip]", "fields");
    check(session.getMetadata().getKeyspace("system_views").get().isVirtual(), "virtual keyspace");
    check(session.getMetadata().getTokenMap().get().getTokens(node).size() >= 1, "tokens");
    ok("schema_metadata");
  }

  private void prepared() {
    run("CREATE TABLE " + KS + ".p (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".p (k, c, v) VALUES (?, ?, ?)");
    equal(insert.getPartitionKeyIndices(), Collections.singletonList(0), "routing key");
    for (int c = 0; c < 100; c++) session.execute(insert.bind(1, c, "v" + c));
    boolean v5 = session.getContext().getProtocolVersion() == DefaultProtocolVersion.V5;
    // Before v5 a client cannot learn that the columns of a prepared SELECT * have changed.
    PreparedStatement select = session.prepare("SELECT " + (v5 ? "*" : "k, c, v") + " FROM " + KS + ".p WHERE k = :k AND c >= :low");
    List<String> got = new ArrayList<>();
    for (Row r : session.execute(select.boundStatementBuilder().setInt("k", 1).setInt("low", 97).build())) got.add(r.getString("v"));
    equal(got, Arrays.asList("v97", "v98", "v99"), "rows");
    run("ALTER TABLE " + KS + ".p ADD later int");
    Row row = session.execute(select.bind(1, 99)).one();
    equal(row.getString("v"), "v99", "row after ALTER");
    if (v5) {
      check(row.getColumnDefinitions().contains("later"), "the new column of a prepared SELECT *");
    }
    ok("prepared");
  }

  private void paging() throws Exception {
    run("CREATE TABLE " + KS + ".pages (k int, c int, v int, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".pages (k, c, v) VALUES (?, ?, ?)");
    List<CompletionStage<AsyncResultSet>> open = new ArrayList<>();
    for (int n = 0; n < 10000; n++) {
      open.add(session.executeAsync(insert.bind(n % 7, n, n * 2)));
      if (open.size() == 128 || n == 9999) {
        for (CompletionStage<AsyncResultSet> s : open) s.toCompletableFuture().get();
        open.clear();
      }
    }
    ResultSet rows = session.execute(SimpleStatement.newInstance("SELECT k, c, v FROM " + KS + ".pages").setPageSize(100));
    int seen = 0;
    for (Row r : rows) {
      equal(r.getInt("v"), r.getInt("c") * 2, "value");
      seen++;
    }
    equal(seen, 10000, "rows");
    int pages = rows.getExecutionInfos().size();
    check(pages >= 100 && pages <= 101, pages + " pages");
    equal(session.execute("SELECT count(*) FROM " + KS + ".pages").one().getLong(0), 10000L, "count");
    ok("paging");
  }

  private void batches() {
    run("CREATE TABLE " + KS + ".b (k int PRIMARY KEY, v int)");
    run("CREATE TABLE " + KS + ".counts (k int PRIMARY KEY, n counter)");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".b (k, v) VALUES (?, ?)");
    int mark = 0;
    for (DefaultBatchType type : new DefaultBatchType[] {DefaultBatchType.LOGGED, DefaultBatchType.UNLOGGED}) {
      mark++;
      BatchStatementBuilder batch = BatchStatement.builder(type);
      for (int k = 0; k < 10; k++) batch.addStatement(insert.bind(k, mark));
      batch.addStatement(SimpleStatement.newInstance("INSERT INTO " + KS + ".b (k, v) VALUES (?, ?)", 99, mark));
      session.execute(batch.build());
      int found = 0;
      for (Row r : session.execute("SELECT v FROM " + KS + ".b")) if (r.getInt(0) == mark) found++;
      equal(found, 11, "rows of a batch");
    }
    PreparedStatement add = session.prepare("UPDATE " + KS + ".counts SET n = n + ? WHERE k = ?");
    BatchStatementBuilder batch = BatchStatement.builder(DefaultBatchType.COUNTER);
    for (long n = 1; n < 5; n++) batch.addStatement(add.bind(n, 1));
    session.execute(batch.build());
    equal(session.execute("SELECT n FROM " + KS + ".counts WHERE k = 1").one().getLong(0), 10L, "counter");
    ok("batches");
  }

  private void types() throws Exception {
    Map<String, List<Object>> columns = new LinkedHashMap<>();
    columns.put("a ascii", Arrays.asList("x", ""));
    columns.put("b bigint", Arrays.asList(0L, Long.MAX_VALUE, Long.MIN_VALUE));
    columns.put("c blob", Arrays.asList(ByteBuffer.allocate(0), ByteBuffer.wrap(new byte[100000])));
    columns.put("d boolean", Arrays.asList(true, false));
    columns.put("e date", Arrays.asList(LocalDate.ofEpochDay(0), LocalDate.ofEpochDay(Integer.MIN_VALUE), LocalDate.ofEpochDay(Integer.MAX_VALUE)));
    columns.put("f decimal", Arrays.asList(BigDecimal.ZERO, new BigDecimal("-1.50"), new BigDecimal("1E+20"), new BigDecimal("1234567890123456789012345678901234567890.5")));
    columns.put("g double", Arrays.asList(0.0, Double.MAX_VALUE, Double.MIN_VALUE, Double.NEGATIVE_INFINITY, Double.NaN));
    columns.put("h duration", Arrays.asList(CqlDuration.newInstance(0, 0, 0), CqlDuration.newInstance(-1, -2, -3), CqlDuration.newInstance(Integer.MAX_VALUE, Integer.MAX_VALUE, Long.MAX_VALUE)));
    columns.put("i float", Arrays.asList(0f, 1.5f, Float.MAX_VALUE, Float.NaN));
    columns.put("j inet", Arrays.asList(InetAddress.getByName("127.0.0.1"), InetAddress.getByName("::1")));
    columns.put("k1 int", Arrays.asList(0, Integer.MAX_VALUE, Integer.MIN_VALUE));
    columns.put("l smallint", Arrays.asList((short) 0, Short.MAX_VALUE, Short.MIN_VALUE));
    columns.put("m text", Arrays.asList("", "caf\u00e9 \u4e2d \ud83d\ude00"));
    columns.put("n time", Arrays.asList(LocalTime.MIDNIGHT, LocalTime.MAX));
    columns.put("o timestamp", Arrays.asList(Instant.EPOCH, Instant.ofEpochMilli(Long.MAX_VALUE), Instant.ofEpochMilli(Long.MIN_VALUE)));
    columns.put("p timeuuid", Arrays.asList(UUID.fromString("de3e12ba-e5f0-11f1-a71b-15da588fdeae")));
    columns.put("q tinyint", Arrays.asList((byte) 0, Byte.MAX_VALUE, Byte.MIN_VALUE));
    columns.put("r uuid", Arrays.asList(new UUID(0, 0), UUID.fromString("6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47")));
    columns.put("t varint", Arrays.asList(BigInteger.ZERO, BigInteger.valueOf(-129), BigInteger.ONE.shiftLeft(200).negate()));
    columns.put("u list<int>", Arrays.asList(Arrays.asList(1, 2, 3), Arrays.asList(5, 5)));
    columns.put("v set<text>", Arrays.asList(new LinkedHashSet<>(Arrays.asList("", "a", "z"))));
    columns.put("w map<text, int>", Arrays.asList(new HashMap<>(Map.of("a", 1, "b", -1))));
    TupleType tuple = DataTypes.tupleOf(DataTypes.INT, DataTypes.TEXT, DataTypes.BOOLEAN);
    tuple.attach(session.getContext());
    columns.put("y tuple<int, text, boolean>", Arrays.asList(tuple.newValue(1, "a", true), tuple.newValue(null, "a", null)));
    UserDefinedType address = session.getMetadata().getKeyspace(KS).get().getUserDefinedType("address").get();
    columns.put("x frozen<address>", Arrays.asList(address.newValue("s", 1), address.newValue(null, 2)));
    columns.put("x2 address", Arrays.asList(address.newValue("s", 1), address.newValue("t", null)));
    columns.put("z vector<float, 3>", Arrays.asList(CqlVector.newInstance(1f, -2.5f, 0f)));
    run("CREATE TABLE " + KS + ".types (k int PRIMARY KEY, " + String.join(", ", columns.keySet()).replace("address>", KS + ".address>").replace(" address", " " + KS + ".address") + ")");
    for (Map.Entry<String, List<Object>> column : columns.entrySet()) {
      String name = column.getKey().split(" ")[0];
      PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".types (k, " + name + ") VALUES (:k, :v)");
      PreparedStatement select = session.prepare("SELECT " + name + " FROM " + KS + ".types WHERE k = ?");
      for (Object v : column.getValue()) {
        session.execute(insert.bind(1, v));
        Object got = session.execute(select.bind(1)).one().getObject(0);
        equal(got, v, column.getKey());
      }
      BoundStatement unset = insert.boundStatementBuilder().setInt("k", 1).build();
      session.execute(unset);
      check(!session.execute(select.bind(1)).one().isNull(0), column.getKey() + ": unset erased the value");
      session.execute(insert.boundStatementBuilder().setInt("k", 1).setToNull("v").build());
      check(session.execute(select.bind(1)).one().isNull(0), column.getKey() + ": null");
    }
    ok("types");
  }

  /** The value of no bytes, of every type that has one, is neither null nor lost; empty collections are. */
  private void emptyValues() {
    String[] scalars = {"ascii", "bigint", "blob", "boolean", "decimal", "double", "float", "inet", "int", "text", "timestamp", "timeuuid", "uuid", "varint"};
    StringBuilder columns = new StringBuilder();
    for (String t : scalars) columns.append(t).append("_ ").append(t).append(", ");
    run("CREATE TABLE " + KS + ".empties (k int PRIMARY KEY, " + columns + "l list<int>, fl frozen<list<int>>, fm frozen<map<int, int>>, "
        + "t tuple<int, text>)");
    for (String t : scalars) {
      PreparedStatement raw = session.prepare("INSERT INTO " + KS + ".empties (k, " + t + "_) VALUES (1, ?)");
      session.execute(raw.boundStatementBuilder().setBytesUnsafe(0, ByteBuffer.allocate(0)).build());
      Row row = session.execute("SELECT " + t + "_ FROM " + KS + ".empties WHERE k = 1").one();
      equal(row.getBytesUnsafe(0).remaining(), 0, "empty " + t);
      Object seen = row.getObject(0);
      check(seen == null || seen.equals("") || seen.equals(ByteBuffer.allocate(0)), "empty " + t + " as the driver sees it: " + seen);
    }
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".empties (k, l, fl, fm, t) VALUES (3, ?, ?, ?, ?)");
    TupleType tuple = DataTypes.tupleOf(DataTypes.INT, DataTypes.TEXT);
    tuple.attach(session.getContext());
    TupleValue nulls = tuple.newValue(null, null);
    session.execute(insert.bind(Collections.emptyList(), Collections.emptyList(), Collections.emptyMap(), nulls));
    Row row = session.execute("SELECT l, fl, fm, t FROM " + KS + ".empties WHERE k = 3").one();
    check(row.isNull(0) && !row.isNull(1) && !row.isNull(2), "empty collections");
    equal(row.getList(1, Integer.class), Collections.emptyList(), "empty list");
    equal(row.getMap(2, Integer.class, Integer.class), Collections.emptyMap(), "empty map");
    equal(row.getTupleValue(3), nulls, "tuple of nulls");
    ok("empty_values");
  }

  private void errors() {
    fails(SyntaxError.class, "SELEKT * FROM x");
    fails(InvalidQueryException.class, "SELECT nosuch FROM " + KS + ".b");
    fails(InvalidQueryException.class, "SELECT * FROM " + KS + ".nosuch");
    fails(AlreadyExistsException.class, "CREATE TABLE " + KS + ".b (k int PRIMARY KEY)");
    fails(AlreadyExistsException.class, "CREATE KEYSPACE " + KS + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    fails(InvalidConfigurationInQueryException.class, "CREATE KEYSPACE drv_bad WITH replication = {'class': 'NoSuch'}");
    fails(InvalidConfigurationInQueryException.class, "CREATE TABLE " + KS + ".bad (k int PRIMARY KEY) WITH gc_grace_seconds = -1");
    run("DROP KEYSPACE IF EXISTS drv_java3");
    run("CREATE KEYSPACE drv_java3 WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3}");
    run("CREATE TABLE drv_java3.t (k int PRIMARY KEY, v int)");
    for (String cql : new String[] {"INSERT INTO drv_java3.t (k, v) VALUES (1, 1)", "SELECT * FROM drv_java3.t WHERE k = 1"}) {
      try {
        session.execute(SimpleStatement.newInstance(cql).setConsistencyLevel(DefaultConsistencyLevel.THREE));
        throw new AssertionError("three replicas of one node");
      } catch (AllNodesFailedException all) {
        UnavailableException e = (UnavailableException) all.getAllErrors().values().iterator().next().get(0);
        equal(e.getRequired() + " " + e.getAlive() + " " + e.getConsistencyLevel(), "3 1 THREE", "unavailable");
      }
    }
    run("DROP KEYSPACE drv_java3");
    fails(UnauthorizedException.class, "DROP TABLE system.local");
    ok("errors");
  }

  /** A read over too many tombstones warns, and one over far too many fails. */
  private void tombstones() {
    run("CREATE TABLE " + KS + ".graves (k int, c int, v int, PRIMARY KEY (k, c))");
    PreparedStatement delete = session.prepare("DELETE FROM " + KS + ".graves WHERE k = ? AND c = ?");
    for (int c = 0; c < 200; c++) session.execute(delete.bind(1, c));
    for (int c = 0; c < 1200; c++) session.execute(delete.bind(2, c));
    List<String> warnings = session.execute("SELECT * FROM " + KS + ".graves WHERE k = 1").getExecutionInfo().getWarnings();
    check(warnings.stream().anyMatch(w -> w.contains("200 tombstone cells")), "warnings: " + warnings);
    try {
      session.execute("SELECT * FROM " + KS + ".graves WHERE k = 2");
      throw new AssertionError("a read over 1200 tombstones");
    } catch (ReadFailureException e) {
      equal(e.getReceived() + " " + e.getBlockFor() + " " + e.getNumFailures(), "0 1 1", "read failure");
      // Which node failed for which reason, the driver can tell since v5.
      if (session.getContext().getProtocolVersion() == DefaultProtocolVersion.V5) {
        equal(e.getReasonMap().values().toString(), "[1]", "the reason: too many tombstones");
      }
    }
    ok("tombstones");
  }

  /** The slow server writes, and says so too late. */
  private void timeouts(String slow) {
    try (CqlSession s = connect(slow, "V5", "none", false)) {
      s.execute("CREATE KEYSPACE " + KS + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      s.execute("CREATE TABLE " + KS + ".t (k int PRIMARY KEY, v text)");
      PreparedStatement insert = s.prepare("INSERT INTO " + KS + ".t (k, v) VALUES (?, ?)");
      String value = "\\".repeat(20000);
      List<CompletionStage<AsyncResultSet>> open = new ArrayList<>();
      for (int k = 0; k < 1000; k++) open.add(s.executeAsync(insert.bind(k, value)));
      int late = 0;
      for (CompletionStage<AsyncResultSet> one : open) {
        try {
          one.toCompletableFuture().join(); // in time if it came right before the log was synced
        } catch (CompletionException e) {
          late++;
          check(e.getCause() instanceof WriteTimeoutException, "write timeout: " + e.getCause());
          WriteTimeoutException w = (WriteTimeoutException) e.getCause();
          equal(w.getReceived() + " " + w.getBlockFor() + " " + w.getWriteType(), "0 1 SIMPLE", "write timeout");
        }
      }
      check(late > 0, "all writes in time");
      try {
        s.execute("SELECT count(" + "toJson(".repeat(5) + "v" + ")".repeat(5) + ") FROM " + KS + ".t");
        throw new AssertionError("a long read that ends in time");
      } catch (ReadTimeoutException e) {
        equal(e.getReceived() + " " + e.getBlockFor() + " " + e.wasDataPresent(), "0 1 false", "read timeout");
      }
      equal(s.execute("SELECT k FROM " + KS + ".t WHERE k = 7").one().getInt(0), 7, "what timed out and was written");
      s.execute("DROP KEYSPACE " + KS);
    }
    ok("timeouts");
  }

  private void unprepared() {
    run("CREATE TABLE " + KS + ".again (k int PRIMARY KEY, v int)");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".again (k, v) VALUES (?, ?)");
    session.execute(insert.bind(1, 1));
    run("DROP TABLE " + KS + ".again");
    run("CREATE TABLE " + KS + ".again (k int PRIMARY KEY, v int)");
    session.execute(insert.bind(2, 2));
    equal(session.execute("SELECT k FROM " + KS + ".again").all().size(), 1, "rows");
    ok("unprepared");
  }

  private void events() throws Exception {
    run("DROP KEYSPACE IF EXISTS drv_announced");
    try (CqlSession watcher = connect(host, "V5", "none", true)) {
      told.clear();
      String[][] changes = {
        {"CREATE KEYSPACE drv_announced WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", "created drv_announced"},
        {"CREATE TABLE drv_announced.t (k int PRIMARY KEY)", "created t"},
        {"ALTER TABLE drv_announced.t ADD v int", "updated t"},
        {"CREATE TYPE drv_announced.u (a int)", "created u"},
        {"ALTER TYPE drv_announced.u ADD b int", "updated u"},
        {"DROP TYPE drv_announced.u", "dropped u"},
        {"DROP TABLE drv_announced.t", "dropped t"},
        {"ALTER KEYSPACE drv_announced WITH durable_writes = false", "updated drv_announced"},
        {"DROP KEYSPACE drv_announced", "dropped drv_announced"},
      };
      for (String[] change : changes) {
        run(change[0]);
        equal(told.poll(20, TimeUnit.SECONDS), change[1], change[0]);
      }
      check(!watcher.getMetadata().getKeyspace("drv_announced").isPresent(), "metadata by event");
    }
    ok("events");
  }

  private void run(String cql) {
    session.execute(cql);
  }

  private void fails(Class<? extends Exception> kind, String cql) {
    try {
      session.execute(cql);
    } catch (Exception e) {
      check(kind.isInstance(e), cql + ": " + e);
      return;
    }
    throw new AssertionError(cql + " did not fail");
  }

  private static void ok(String name) {
    System.out.println("ok " + name);
  }

  private static void check(boolean condition, String what) {
    if (!condition) throw new AssertionError(what);
  }

  private static void equal(Object got, Object want, String what) {
    check(Objects.equals(got, want), what + ": got " + got + ", want " + want);
  }
}
