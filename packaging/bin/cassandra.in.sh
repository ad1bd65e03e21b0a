# Read by bin/cassandra and bin/nodetool. Programs that make clusters, such as ccm, replace the
# lines that set CASSANDRA_HOME and CASSANDRA_CONF: each stands in a line of its own.
if [ -z "$CASSANDRA_HOME" ]; then
    CASSANDRA_HOME="$(dirname "$here")"
fi
if [ -z "$CASSANDRA_CONF" ]; then
    CASSANDRA_CONF="$CASSANDRA_HOME/conf"
fi
