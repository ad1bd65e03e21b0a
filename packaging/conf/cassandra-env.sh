# Read by bin/cassandra before the node starts, and by bin/nodetool. The node is no JVM: of JVM_OPTS
# and JVM_EXTRA_OPTS it takes the properties -Dcassandra.*, and MAX_HEAP_SIZE is its memory_budget.

#MAX_HEAP_SIZE="4G"
#JVM_OPTS="$JVM_OPTS -Dcassandra.ring_delay_ms=30000"

# Properties may stand in these files too, one a line.
for options in "$CASSANDRA_CONF/jvm-server.options" "$CASSANDRA_CONF"/jvm1[17]-server.options; do
    if [ -r "$options" ]; then
        for option in $(grep '^-D' "$options"); do
            JVM_OPTS="$JVM_OPTS $option"
        done
    fi
done

# By this port nodetool knows that this node is meant.
JMX_PORT="7199"
