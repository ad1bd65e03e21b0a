#!/bin/sh
# Writes the variables CASSANDRA_* into the configuration, as the official image of Cassandra does,
# and starts what it is told to, as the user cassandra.
set -e

if [ "${1#-}" != "$1" ] || [ $# -eq 0 ]; then
    set -- cassandra -f "$@"
fi

# The node does not run as root. Under --user everything is the container's user's already.
if [ "$1" = cassandra ] && [ "$(id -u)" = 0 ]; then
    for folder in "$CASSANDRA_CONF" /var/lib/cassandra /var/log/cassandra; do
        find "$folder" ! -user cassandra -exec chown cassandra: '{}' + 2>/dev/null || true
    done
    exec setpriv --reuid cassandra --regid cassandra --init-groups "$0" "$@"
fi

# Gives a file a new text, if it has another one: it may be mounted, and not be writable.
# A file that is mounted cannot be replaced by a new one.
rewrite() { # FILE PROGRAM OF AWK
    new="$(awk "$2" "$1")"
    if [ "$new" != "$(cat "$1")" ]; then
        printf '%s\n' "$new" >"$1"
    fi
}

# Sets a key of cassandra.yaml, in its line or in a new one.
set_key() {
    key="$1" value="$2" rewrite "$CASSANDRA_CONF/cassandra.yaml" '
        BEGIN { key = ENVIRON["key"]; value = ENVIRON["value"] }
        !found && $0 ~ "^(# )?" key ":" { print key ": " value; found = 1; next }
        { print }
        END { if (!found) print key ": " value }'
}

set_property() {
    key="$1" value="$2" rewrite "$CASSANDRA_CONF/cassandra-rackdc.properties" '
        $0 ~ "^" ENVIRON["key"] "=" { print ENVIRON["key"] "=" ENVIRON["value"]; next }
        { print }'
}

# The first address that is not of loopback; a container without a network has none.
own_address() {
    own="$(hostname -I | cut -d ' ' -f 1)"
    printf '%s' "${own:-127.0.0.1}"
}

quoted() {
    case "$1" in
        \'* | \"*) printf '%s' "$1" ;;
        *) printf "'%s'" "$(printf '%s' "$1" | sed "s/'/''/g")" ;;
    esac
}

if [ "$1" = cassandra ]; then
    : "${CASSANDRA_RPC_ADDRESS:=0.0.0.0}"
    : "${CASSANDRA_LISTEN_ADDRESS:=auto}"
    if [ "$CASSANDRA_LISTEN_ADDRESS" = auto ]; then
        CASSANDRA_LISTEN_ADDRESS="$(own_address)"
    fi
    : "${CASSANDRA_BROADCAST_ADDRESS:=$CASSANDRA_LISTEN_ADDRESS}"
    if [ "$CASSANDRA_BROADCAST_ADDRESS" = auto ]; then
        CASSANDRA_BROADCAST_ADDRESS="$(own_address)"
    fi
    : "${CASSANDRA_BROADCAST_RPC_ADDRESS:=$CASSANDRA_BROADCAST_ADDRESS}"
    # the name of a linked container
    if [ -n "${CASSANDRA_NAME:-}" ]; then
        : "${CASSANDRA_SEEDS:=cassandra}"
    fi
    : "${CASSANDRA_SEEDS:=$CASSANDRA_BROADCAST_ADDRESS}"

    seeds="$CASSANDRA_SEEDS" rewrite "$CASSANDRA_CONF/cassandra.yaml" '
        /^ *- seeds:/ { sub(/seeds:.*/, ""); print $0 "seeds: \"" ENVIRON["seeds"] "\""; next }
        { print }'
    set_key listen_address "$CASSANDRA_LISTEN_ADDRESS"
    set_key broadcast_address "$CASSANDRA_BROADCAST_ADDRESS"
    set_key rpc_address "$CASSANDRA_RPC_ADDRESS"
    set_key broadcast_rpc_address "$CASSANDRA_BROADCAST_RPC_ADDRESS"
    if [ -n "$CASSANDRA_CLUSTER_NAME" ]; then
        set_key cluster_name "$(quoted "$CASSANDRA_CLUSTER_NAME")"
    fi
    if [ -n "$CASSANDRA_NUM_TOKENS" ]; then
        set_key num_tokens "$CASSANDRA_NUM_TOKENS"
    fi
    if [ -n "$CASSANDRA_ENDPOINT_SNITCH" ]; then
        set_key endpoint_snitch "$CASSANDRA_ENDPOINT_SNITCH"
    fi
    # CASSANDRA_START_RPC has had no effect since Cassandra 4
    if [ -n "$CASSANDRA_DC" ]; then
        set_property dc "$CASSANDRA_DC"
    fi
    if [ -n "$CASSANDRA_RACK" ]; then
        set_property rack "$CASSANDRA_RACK"
    fi
    # Cassandra's image serves everybody who reaches it. So does this one, unless it is told not to.
    if [ "$HELENUS_OPEN" != false ] \
        && ! grep -qs '^open_without_authentication *:' "$CASSANDRA_CONF/helenus.yaml"; then
        export HELENUS_ARGS="--set open_without_authentication=true $HELENUS_ARGS"
    fi
fi

exec "$@"
