# Read by bin/cassandra and bin/nodetool, once CASSANDRA_HOME and CASSANDRA_CONF are set.

# A word for JVM_OPTS: in quotes if it has blanks.
quoted() {
    case "$1" in
        *[[:blank:]]*) printf '"%s"' "$1" ;;
        *) printf '%s' "$1" ;;
    esac
}

# Does helenus.yaml set a key?
is_own_key() {
    grep -q "^$1[[:blank:]]*:" "$CASSANDRA_CONF/helenus.yaml" 2>/dev/null
}

# The value of a key of helenus.yaml.
own_key() {
    sed -n "s/^$1[[:blank:]]*:[[:blank:]]*//p" "$CASSANDRA_CONF/helenus.yaml" | plain
}

# A scalar of YAML without its comment and quotes.
plain() {
    sed -e 's/[[:blank:]]#.*$//' -e 's/[[:blank:]]*$//' \
        -e 's/^"\(.*\)"$/\1/' -e "s/^'\(.*\)'\$/\1/" | head -n 1
}

# The first of data_file_directories in cassandra.yaml: as a list of lines, or between brackets.
first_data_directory() {
    awk '
        found && /^[ \t]*-/ { sub(/^[ \t]*-[ \t]*/, ""); print; exit }
        found && /^[^ \t#]/ { exit }
        /^data_file_directories[ \t]*:/ {
            found = 1
            sub(/^[^:]*:[ \t]*/, "")
            if (sub(/^\[[ \t]*/, "")) { sub(/[ \t]*[],].*$/, ""); print; exit }
        }' "$CASSANDRA_CONF/cassandra.yaml" 2>/dev/null | plain
}

# The value of a property among the options of a JVM, if it is there; the last one counts.
property() {
    value=
    # shellcheck disable=SC2086 # the options are several words
    for word in $JVM_OPTS $JVM_EXTRA_OPTS $properties; do
        case "$word" in
            "-D$1="*) value="${word#*=}" ;;
        esac
    done
    printf '%s' "$value"
}

# Where the node's own files go: its socket, and whatever has no directory of its own. Nodes that
# share an installation have each a data directory: the folder above it is theirs alone.
data_directory() {
    value="$(property cassandra.storagedir)"
    if [ -n "$value" ]; then
        printf '%s' "$value"
    elif is_own_key data_dir; then
        own_key data_dir
    elif [ -n "$cassandra_storagedir" ]; then
        printf '%s' "$cassandra_storagedir"
    else
        value="$(first_data_directory)"
        if [ -n "$value" ]; then
            dirname "$value"
        else
            printf '%s' "$CASSANDRA_HOME/data"
        fi
    fi
}

# The same for JVM_OPTS, which are over the files: nothing where they say it themselves.
storage_property() {
    if ! is_own_key data_dir; then
        quoted "-Dcassandra.storagedir=$(data_directory)"
    fi
}

# Where logs go.
log_directory() {
    value="$(property cassandra.logdir)"
    if is_own_key log_directory; then
        own_key log_directory
    else
        printf '%s' "${value:-${CASSANDRA_LOG_DIR:-$CASSANDRA_HOME/logs}}"
    fi
}
