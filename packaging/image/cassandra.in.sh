# Read by cassandra and nodetool of the image.
if [ -z "$CASSANDRA_HOME" ]; then
    CASSANDRA_HOME=/opt/cassandra
fi
if [ -z "$CASSANDRA_CONF" ]; then
    CASSANDRA_CONF=/etc/cassandra
fi
if [ -z "$CASSANDRA_LOG_DIR" ]; then
    CASSANDRA_LOG_DIR=/var/log/cassandra
fi
