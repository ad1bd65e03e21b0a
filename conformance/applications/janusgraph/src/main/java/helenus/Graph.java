package helenus;

import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.tinkerpop.gremlin.process.traversal.P;
import org.apache.tinkerpop.gremlin.process.traversal.dsl.graph.GraphTraversalSource;
import org.apache.tinkerpop.gremlin.structure.Vertex;
import org.janusgraph.core.Cardinality;
import org.janusgraph.core.JanusGraph;
import org.janusgraph.core.JanusGraphFactory;
import org.janusgraph.core.Multiplicity;
import org.janusgraph.core.PropertyKey;
import org.janusgraph.core.SchemaViolationException;
import org.janusgraph.core.schema.ConsistencyModifier;
import org.janusgraph.core.schema.JanusGraphIndex;
import org.janusgraph.core.schema.JanusGraphManagement;

/** A graph of people in a ring, written and read through JanusGraph: `Graph HOST PORT`. */
public final class Graph {
    private static final String KEYSPACE = "app_janusgraph";
    private static final int PEOPLE = 200;
    private static final int GROUPS = 4;

    private final String host;
    private final int port;

    private Graph(String host, int port) {
        this.host = host;
        this.port = port;
    }

    public static void main(String[] args) throws Exception {
        Graph run = new Graph(args[0], Integer.parseInt(args[1]));
        try (JanusGraph graph = run.open()) {
            run.schema(graph);
            run.write(graph);
            run.read(graph);
            run.change(graph);
        }
        // nothing of the first instance is remembered: its ids, its schema and all data come from the tables
        try (JanusGraph graph = run.open()) {
            run.readAgain(graph);
            JanusGraphFactory.drop(graph);
        }
        ok("the graph is dropped");
        System.exit(0);
    }

    private JanusGraph open() {
        return JanusGraphFactory.build()
            .set("storage.backend", "cql")
            .set("storage.hostname", host)
            .set("storage.port", port)
            .set("storage.cql.keyspace", KEYSPACE)
            .set("storage.cql.local-datacenter", "datacenter1")
            .set("storage.cql.request-timeout", 30000L)
            .set("schema.default", "none")
            .set("ids.block-size", 1000)
            .set("query.batch.enabled", true)
            .set("cache.db-cache", false)
            .open();
    }

    private void schema(JanusGraph graph) {
        JanusGraphManagement schema = graph.openManagement();
        PropertyKey name = schema.makePropertyKey("name").dataType(String.class).cardinality(Cardinality.SINGLE).make();
        PropertyKey group = schema.makePropertyKey("group").dataType(Integer.class).make();
        schema.makePropertyKey("since").dataType(Long.class).make();
        schema.makeVertexLabel("person").make();
        schema.makeEdgeLabel("knows").multiplicity(Multiplicity.MULTI).make();
        JanusGraphIndex byName = schema.buildIndex("byName", Vertex.class).addKey(name).unique().buildCompositeIndex();
        schema.setConsistency(byName, ConsistencyModifier.LOCK);
        schema.buildIndex("byGroup", Vertex.class).addKey(group).buildCompositeIndex();
        schema.commit();
        ok("a schema with a locked unique index");
    }

    private void write(JanusGraph graph) {
        GraphTraversalSource g = graph.traversal();
        List<Vertex> people = IntStream.range(0, PEOPLE)
            .mapToObj(i -> g.addV("person").property("name", "p" + i).property("group", i % GROUPS).next())
            .collect(Collectors.toList());
        for (int i = 0; i < PEOPLE; i++) {
            people.get(i).addEdge("knows", people.get((i + 1) % PEOPLE), "since", (long) i);
        }
        g.tx().commit();
        ok(PEOPLE + " vertices and as many edges in one transaction");
    }

    private void read(JanusGraph graph) {
        GraphTraversalSource g = graph.traversal();
        for (int i = 0; i < PEOPLE; i += 17) {
            same("p" + (i + 2) % PEOPLE, g.V().has("name", "p" + i).out("knows").out("knows").values("name").next());
        }
        ok("two steps from an index entry");
        same((long) PEOPLE / GROUPS, g.V().has("group", 3).count().next());
        same(5, g.V().has("group", 1).limit(5).toList().size());
        ok("an index with many entries, and the first of them");
        same((long) PEOPLE / GROUPS, g.V().has("group", 2).out("knows").has("group", 3).count().next());
        ok("the neighbours of many vertices at once");
        same((long) PEOPLE, g.V().count().next());
        same((long) PEOPLE, g.E().count().next());
        same(20L, g.E().has("since", P.lt(20L)).count().next());
        Set<Object> names = g.V().hasLabel("person").values("name").toSet();
        same(PEOPLE, names.size());
        ok("scans of all vertices and of all edges");
        g.tx().rollback();
    }

    private void change(JanusGraph graph) {
        GraphTraversalSource g = graph.traversal();
        try {
            g.addV("person").property("name", "p7").next();
            g.tx().commit();
            throw new IllegalStateException("a second p7");
        } catch (SchemaViolationException expected) {
            g.tx().rollback();
        }
        ok("the unique index refuses a second of a name");
        g.V().has("name", "p7").property("name", "seven").iterate();
        g.V().has("name", "p9").drop().iterate();
        g.tx().commit();
        same(false, g.V().has("name", "p7").hasNext());
        same("p8", g.V().has("name", "seven").out("knows").values("name").next());
        same(false, g.V().has("name", "p8").out("knows").hasNext());
        ok("a property changed, a vertex dropped with its edges");
        g.tx().rollback();
    }

    private void readAgain(JanusGraph graph) {
        GraphTraversalSource g = graph.traversal();
        same((long) PEOPLE - 1, g.V().count().next());
        same((long) PEOPLE - 2, g.E().count().next());
        same("p8", g.V().has("name", "seven").out("knows").values("name").next());
        g.addV("person").property("name", "late").property("group", 0).next();
        g.tx().commit();
        same(1L, g.V().has("name", "late").count().next());
        ok("opened again: the same graph, and a vertex with an id of the next block");
    }

    private static void same(Object wanted, Object found) {
        if (!wanted.equals(found)) {
            throw new IllegalStateException("wanted " + wanted + ", found " + found);
        }
    }

    private static void ok(String what) {
        System.out.println("ok " + what);
    }
}
