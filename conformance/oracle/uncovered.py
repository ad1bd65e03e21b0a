"""Why lines of Cassandra are not run by the corpus: by the kind of method, or by class."""

# A reason, and the pattern of the methods (Class.method) that it is meant for.
KINDS = {
    'messages between nodes: read and written only where another node coordinates or answers':
        r'\.(serialize|deserialize|serializedSize|readFrom|writeTo)\w*$|Serializer|Deserializer',
    'texts for logs, traces and debuggers': r'\.toString$|\.toCQLString\w*$|\.toDebugString$|ToStringHelper',
    'what the audit log asks for, which is off': r'AuditLog',
    'equality and hash that nothing asks for': r'\.(equals|hashCode|compareTo)$',
}
# A reason for what else is missed of a source file.
REASONS = {}
