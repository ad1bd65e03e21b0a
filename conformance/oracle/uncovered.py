"""Why lines of Cassandra are not run by the corpus: by the kind of method, or by class."""

# A reason, and the pattern of the methods (Class.method) that it is meant for.
KINDS = {
    'messages between nodes: only where another node coordinates or answers':
        r'\.(serialize|deserialize|serializedSize|readFrom|writeTo|writeType|readType|sizeOf)\w*$|Serializer|Deserializer|forShortReadRetry',
    'texts for logs, traces and debuggers': r'\.toString$|\.toCQLString\w*$|\.toDebugString$|\.lambda\$toString|ToStringHelper',
    'what the audit log asks for, which is off': r'AuditLog',
    'equality and hash that nothing asks for': r'\.(equals|hashCode|compareTo)$',
    'statements of Cassandra itself (executeInternal, executeLocally), and what only views ask':
        r'\.(executeLocally|executeInternal\w*|executeRawInternal|forInternalQuery|internalReadForView|clusteringIndexFilterAsSlices'
        r'|rowFilterForInternalCalls|nonPKRestrictedColumns|notNullColumns|isRestricted|getQuery)$|InternalPager',
    'user functions: refused by default': r'\.(typesMatch|argumentsList|newInstanceForUdf|referencesUserType)$'
        r'|AbstractFunction\.(elementKeyspace|elementName|lambda\$elementName)',
    'storage-attached and custom indexes, LIKE, ANN': r'findSupportingIndex|IndexColumnComparator|LikeRestriction|AnnRestriction|processCustomIndexExpressions'
        r'|CustomExpression|UserExpression|addCustomIndexExpression|validateForIndexing|StatementRestrictions\.lambda\$new|needsFiltering|isSupportedBy',
    'IS NOT NULL: only in views': r'NotNullRestriction',
    'DROP COMPACT STORAGE: refused by default': r'DropCompactStorage',
    'transient replication: refused by default': r'validateTransientReplication',
    'the row cache, which is off': r'\.(isFullyCoveredBy|isHeadFilter|hasEnoughLiveData)$',
}
# A reason for what else is missed of a source file, as far as somebody has looked.
REASONS = {
    'cql3/restrictions/StatementRestrictions': 'bounds of keys in order: no partitioner but Murmur3; indexes',
    'cql3/statements/ModificationStatement': 'guardrail of full disks; callers within Cassandra',
    'cql3/statements/SelectStatement': 'views and callers within Cassandra; orders that need an index',
    'cql3/statements/DescribeStatement': 'user functions and aggregates; errors of a byte stream in memory',
    'cql3/statements/schema/AlterTableStatement': 'views of the table, compact tables',
    'cql3/statements/schema/AlterKeyspaceStatement': 'nodes that join or leave',
    'cql3/statements/schema/AlterTypeStatement': 'aggregates of users',
    'service/pager/PagingState': 'states that are refused: not made by Cassandra; the form of compact tables',
}
