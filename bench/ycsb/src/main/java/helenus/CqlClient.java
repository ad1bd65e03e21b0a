package helenus;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BoundStatementBuilder;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB on a CQL server through the Java driver 4: one session for all threads, every statement prepared once.
 *
 * <p>Properties: host (127.0.0.1), port (9042), datacenter (datacenter1), connections (1), consistency (ONE), keyspace (ycsb),
 * replication (a map as CQL writes it; one replica).
 */
public final class CqlClient extends DB {
  private static CqlSession session;
  private static int users;
  private static Map<String, PreparedStatement> statements;
  private static DefaultConsistencyLevel consistency;
  private static String table;

  @Override
  public void init() throws DBException {
    synchronized (CqlClient.class) {
      if (users++ > 0) return;
      consistency = DefaultConsistencyLevel.valueOf(property("consistency", "ONE"));
      String keyspace = property("keyspace", "ycsb");
      table = keyspace + ".usertable";
      statements = new ConcurrentHashMap<>();
      DriverConfigLoader config = DriverConfigLoader.programmaticBuilder()
          .withString(DefaultDriverOption.LOAD_BALANCING_LOCAL_DATACENTER, property("datacenter", "datacenter1"))
          .withInt(DefaultDriverOption.CONNECTION_POOL_LOCAL_SIZE, Integer.parseInt(property("connections", "1")))
          .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
          .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
          .withDuration(DefaultDriverOption.METADATA_SCHEMA_REQUEST_TIMEOUT, Duration.ofSeconds(20))
          .build();
      session = CqlSession.builder()
          .withConfigLoader(config)
          .addContactPoint(new InetSocketAddress(property("host", "127.0.0.1"), Integer.parseInt(property("port", "9042"))))
          .build();
      String replication = property("replication", "{'class': 'SimpleStrategy', 'replication_factor': 1}");
      session.execute("CREATE KEYSPACE IF NOT EXISTS " + keyspace + " WITH replication = " + replication);
      session.execute("CREATE TABLE IF NOT EXISTS " + table + " (y_id varchar PRIMARY KEY, field0 varchar, field1 varchar, "
          + "field2 varchar, field3 varchar, field4 varchar, field5 varchar, field6 varchar, field7 varchar, field8 varchar, field9 varchar)");
    }
  }

  @Override
  public void cleanup() {
    synchronized (CqlClient.class) {
      if (--users == 0) session.close();
    }
  }

  @Override
  public Status read(String name, String key, Set<String> fields, Map<String, ByteIterator> result) {
    return guarded(() -> {
      Row row = session.execute(bind("SELECT " + columns(fields) + " FROM " + table + " WHERE y_id = ?").setString(0, key).build()).one();
      if (row == null) return Status.NOT_FOUND;
      collect(row, result);
      return Status.OK;
    });
  }

  @Override
  public Status scan(String name, String startkey, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return guarded(() -> {
      String cql = "SELECT " + columns(fields) + " FROM " + table + " WHERE token(y_id) >= token(?) LIMIT ?";
      for (Row row : session.execute(bind(cql).setString(0, startkey).setInt(1, count).build())) {
        HashMap<String, ByteIterator> one = new HashMap<>();
        collect(row, one);
        result.add(one);
      }
      return Status.OK;
    });
  }

  @Override
  public Status update(String name, String key, Map<String, ByteIterator> values) {
    return guarded(() -> {
      TreeSet<String> names = new TreeSet<>(values.keySet());
      BoundStatementBuilder bound = bind("UPDATE " + table + " SET " + String.join(" = ?, ", names) + " = ? WHERE y_id = ?");
      int at = 0;
      for (String column : names) bound.setString(at++, values.get(column).toString());
      session.execute(bound.setString(at, key).build());
      return Status.OK;
    });
  }

  @Override
  public Status insert(String name, String key, Map<String, ByteIterator> values) {
    return guarded(() -> {
      TreeSet<String> names = new TreeSet<>(values.keySet());
      BoundStatementBuilder bound = bind("INSERT INTO " + table + " (" + String.join(", ", names) + ", y_id) VALUES ("
          + "?, ".repeat(names.size()) + "?)");
      int at = 0;
      for (String column : names) bound.setString(at++, values.get(column).toString());
      session.execute(bound.setString(at, key).build());
      return Status.OK;
    });
  }

  @Override
  public Status delete(String name, String key) {
    return guarded(() -> {
      session.execute(bind("DELETE FROM " + table + " WHERE y_id = ?").setString(0, key).build());
      return Status.OK;
    });
  }

  private BoundStatementBuilder bind(String cql) {
    return statements.computeIfAbsent(cql, session::prepare).boundStatementBuilder().setConsistencyLevel(consistency);
  }

  private static String columns(Set<String> fields) {
    return fields == null ? "*" : String.join(", ", new TreeSet<>(fields));
  }

  private static void collect(Row row, Map<String, ByteIterator> result) {
    for (int i = 0; i < row.size(); i++) {
      String value = row.getString(i);
      if (value != null) result.put(row.getColumnDefinitions().get(i).getName().asInternal(), new StringByteIterator(value));
    }
  }

  private interface Operation {
    Status run();
  }

  private static Status guarded(Operation operation) {
    try {
      return operation.run();
    } catch (RuntimeException e) {
      if (System.getProperty("show.errors") != null) e.printStackTrace();
      return Status.ERROR;
    }
  }

  private String property(String name, String fallback) {
    return getProperties().getProperty(name, fallback);
  }
}
