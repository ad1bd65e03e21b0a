# Read by /usr/sbin/cassandra and /usr/bin/nodetool.
if [ -z "$CASSANDRA_HOME" ]; then
    CASSANDRA_HOME=/usr/share/cassandra
fi
if [ -z "$CASSANDRA_CONF" ]; then
    CASSANDRA_CONF=/etc/cassandra
fi
if [ -z "$CASSANDRA_LOG_DIR" ]; then
    CASSANDRA_LOG_DIR=/var/log/cassandra
fi
