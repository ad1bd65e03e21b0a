"""Why lines of Cassandra are not run by the corpus: by the kind of method, or by class."""

# A reason, and the pattern of the methods (Class.method) that it is meant for.
KINDS = {
    'messages between nodes: only where another node coordinates or answers':
        r'\.(serialize|deserialize|serializedSize|readFrom|writeTo|writeType|readType|sizeOf)\w*$|Serializer|Deserializer|forShortReadRetry'
        r'|\$Kind\.fromOrdinal$|\.computeBitSet$',
    'texts for logs, traces and debuggers': r'\.toString$|\.toCQLString\w*$|\.toDebugString$|\.lambda\$toString|ToStringHelper|SelectStatement\.asCQL$',
    'what the audit log asks for, which is off': r'AuditLog|\.obfuscatePassword$',
    'equality and hash that nothing asks for': r'\.(equals|hashCode|compareTo)$',
    'statements of Cassandra itself (executeInternal, executeLocally), and what only views ask':
        r'Statement(\$\w+)?\.(executeLocally|executeInternal\w*|executeRawInternal|getQuery)$'
        r'|\.(forInternalQuery|internalReadForView|clusteringIndexFilterAsSlices|rowFilterForInternalCalls|nonPKRestrictedColumns|notNullColumns|isRestricted)$'
        r'|InternalPager|\.(fetchPageInternal|fetchPageUnfiltered)$|(Aggregation|MultiPartition)\w*Pager(\$1)?\.executionController$'
        r'|AggregationQueryPager\$\w+\.(<init>|fetchSubPage)$|MultiPartitionPager\$PagersIterator\.computeNext$'
        r'|RowFilter\.(isSatisfiedBy|\w+RestrictionsAreSatisfiedBy)$|SliceFilter\.requestedSlices$|PropertyDefinitions\.getInt$'
        r'|CreateTableStatement\$Raw\.(keyspace|table)$',
    'user functions: refused by default': r'\.(typesMatch|argumentsList|newInstanceForUdf|referencesUserType)$'
        r'|AbstractFunction\.(elementKeyspace|elementName|lambda\$elementName)|BatchStatement\.getFunctions$',
    'storage-attached and custom indexes, LIKE, ANN': r'findSupportingIndex|IndexColumnComparator|LikeRestriction|AnnRestriction|processCustomIndexExpressions'
        r'|CustomExpression|UserExpression|addCustomIndexExpression|validateForIndexing|StatementRestrictions\.lambda\$new|needsFiltering|isSupportedBy'
        r'|RowFilter\.(withoutExpressions|hasStaticExpression)$|RowFilter\$Expression\.isUserDefined$|MapEqualityExpression\.getIndexValue$',
    'IS NOT NULL: only in views': r'NotNullRestriction',
    'materialized views: refused by default': r'DropTableStatement\.apply$',
    'DROP COMPACT STORAGE: refused by default': r'DropCompactStorage',
    'transient replication: refused by default': r'validateTransientReplication',
    'the row cache, which is off': r'\.(isFullyCoveredBy|isHeadFilter|hasEnoughLiveData|filterNotIndexed)$|FilterNotIndexed\.',
    'replicas that differ in a cell of a collection: those of the ring never do': r'ColumnFilter\$\w+\.fetchedCellIsQueried$',
    'nothing calls them: overridden, or asked only of others of their kind':
        r'AbstractFunction\.getCompatibleTypeIfKnown$|Arguments\.getAs\w+$|RestrictionSet\.get(First|Last)Column$'
        r'|RestrictionSetWrapper\.(addToRowFilter|getFirstColumn|getLastColumn|hasSlice)$|TokenFilter\.(hasContains|getFirstColumn|getLastColumn|size)$'
        r'|TokenRestriction\.(getLastColumn|hasUnrestrictedPartitionKeyComponents)$|TokenRestriction\$\w+\.hasContains$'
        r'|(List|Set|Tuple|Vector|UserType|Term|Map|WritetimeOrTTL)Selector(\$\d+)?\.(getType|getReturnType)$|ColumnTimestamps\.type$'
        r'|Selection\.getColumnMapping$|\.numberOfFetchedColumns$|Selection\$\w+\$1\.isAggregate$|ColumnCondition\$Raw\.getValue$'
        r'|ModificationStatement\.allOperations$'
        r'|MutationBuilder\.(key|isEmpty|getKeyspaceName)$|PropertyDefinitions\.getDouble$|TableAttributes\.validKeywords$'
        r'|CreateTypeStatement\$Raw\.addToRawBuilder$|AlterRoleStatement\.<init>$|GroupMaker\.new\w+GroupMaker$|SelectorGroupMaker\.<init>$'
        r'|ColumnFilter\.selection$'
        r'|GroupByRowIterator\.(metadata|isReverseOrder|columns|isEmpty)$|AggregationQueryPager\.maxRemaining$|RowFilter\.without$'
        r'|DataLimits(\$1)?\.filter$|CQLLimits\.isDistinct$|RowFilter\$Expression\.isContains(Key)?$|CollectionFcts\.<init>$'
        r'|Selectable\$With(List|Vector)\.(selectColumns|(lambda\$)?getCompatibleTypeIfKnown\S*)$',
    'cannot happen: for kinds that there are not, or for what was refused before':
        r'ColumnCondition\$MultiCellCollectionBound\.(isEmpty|valueAppliesTo)$|ColumnCondition\.(containsAppliesTo|evaluateComparisonWithOperator)$'
        r'|CollectionFcts\.(getSumFunction|getAvgFunction|elementsType|makeCollection\w+)$|(Single|Multi)ColumnRestriction\$SliceRestriction\.appendTo$'
        r'|ContainsRestriction\.(toMultiColumnRestriction|appendTo|appendBoundTo|hasBound|isInclusive)$'
        r'|TokenRestriction\.(addToRowFilter|toPartitionKeyRestrictions)$'
        r'|TokenRestriction\$SliceRestriction\.values$|ColumnTimestamps\$1\.|ColumnTimestamps\$MultipleTimestamps\.get$|Selectable\.specForElementOrSlice$'
        r'|Selectable\$WithFunction\$Raw\.prepare$|Selectable\$WithVector\.newSelectorFactory$|Selectable\$WithMapOrUdt\.new(Map|Udt)SelectorFactory$'
        r'|BatchUpdatesCollector\$\w+\.add$|PropertyDefinitions\.parse\w+$|TableAttributes\.(getString|getMap)$|FunctionCall\$Raw\.prepare$'
        r'|AggregationQueryPager\.withUpdatedLimit$|GroupByPartitionIterator\.next$|DataLimits\$CQL(GroupBy)?PagingLimits\.for\w*Paging$'
        r'|DataLimits\.forGroupByInternalPaging$'
        r'|QueryPager\$1\.withUpdatedLimit$|MapEqualityExpression\.isSatisfiedBy$|MultipleTimestamps\.slice$',
}
# A reason for what else is missed of a source file; coverage.py prints `not looked into` where there is none.
REASONS = {
    'cql3/conditions/ColumnCondition': 'a default of a switch over kinds of collections',
    'cql3/functions/PreComputedScalarFunction': 'functions of constants: made for each request and its version, never sent to other nodes',
    'cql3/restrictions/PartitionKeySingleRestrictionSet': 'bounds of keys in order: without token() a range of keys is the whole ring',
    'cql3/restrictions/StatementRestrictions': 'bounds of keys in order: no partitioner but Murmur3; indexes',
    'cql3/selection/Selection': 'reachable, not in the corpus: an order by a masked column, where dynamic data masking is on',
    'cql3/statements/AlterRoleStatement': 'reachable, not in the corpus: ACCESS TO DATACENTERS of one that there is, which the default authorizer refuses',
    'cql3/statements/BatchStatement':
        'requests without a consistency level, which the protocol does not have; reachable, not in the corpus: a batch of DELETEs from caches in system_views',
    'cql3/statements/CreateRoleStatement': 'network authorizers that keep datacenters, and authorizers that cannot grant: neither is set up',
    'cql3/statements/DescribeStatement': 'user functions, aggregates and views; errors of a byte stream in memory; a snitch or partitioner that is not of Cassandra',
    'cql3/statements/ModificationStatement':
        'guardrail of full disks; views; callers within Cassandra; reachable, not in the corpus: DELETE from caches in system_views',
    'cql3/statements/PropertyDefinitions': 'obsolete options, of which 5.0 has none',
    'cql3/statements/RequestValidations': 'overloads that nothing calls; user functions that are found',
    'cql3/statements/SelectStatement': 'views and callers within Cassandra; ANN; '
        'reachable, not in the corpus: GROUP BY of a function of two columns, conditions on masked columns without SELECT_MASKED',
    'cql3/statements/TruncateStatement': 'views; nodes that are down',
    'cql3/statements/schema/AlterKeyspaceStatement': 'nodes that join or leave',
    'cql3/statements/schema/AlterTableStatement': 'views of the table; a column to rename that was found before; transient replication',
    'cql3/statements/schema/AlterTypeStatement': 'aggregates of users',
    'cql3/statements/schema/CreateTableStatement': 'transient replication; a compact table without a column, refused before',
    'cql3/statements/schema/TableAttributes': 'automatic repair, off unless asked for at the start of the node',
    'db/filter/ClusteringIndexSliceFilter': 'pages that go on before the first row that is asked for: states of another statement',
    'db/filter/ColumnFilter': 'a filter of no column at all, which no statement builds',
    'db/filter/DataLimits': 'short reads from a replica, and groups over several ranges of tokens: the ring has neither; limits of no rows',
    'db/filter/RowFilter': 'LIKE, ANN and != as filters; operators that there are not',
    'db/filter/TombstoneOverwhelmingException': 'reachable, not in the corpus: too many tombstones in a table with a key of several columns',
    'service/pager/AbstractQueryPager': 'pages after the last, which no paging state of Cassandra asks for',
    'service/pager/MultiPartitionPager': 'states of another statement, and pages after the last, which no paging state of Cassandra asks for',
    'service/pager/PagingState': 'states that are refused: not made by Cassandra; the form of compact tables',
    'service/pager/QueryPager': 'reads of nothing: their pager is asked for its one empty page only',
}
