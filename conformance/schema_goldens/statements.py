"""The statements, as the structure that crate `schema` takes; `cql` renders one as text."""
import re

S1 = {'class': 'SimpleStrategy', 'replication_factor': '1'}
OPS = []


def op(kind, ks, **more):
    OPS.append(dict(op=kind, ks=ks, **more))


def ident(x):
    reserved = 'select from order by table keyspace with add drop set where primary'.split()
    return x if re.fullmatch('[a-z][a-z0-9_]*', x) and x not in reserved else '"%s"' % x.replace('"', '""')


def lit(x):
    return "'%s'" % x.replace("'", "''")


def value(v):
    if isinstance(v, dict):
        return '{' + ', '.join('%s: %s' % (lit(a), lit(b)) for a, b in v.items()) + '}'
    return lit(v)


def props(pairs):
    return ' AND '.join('%s = %s' % (k, value(v)) for k, v in pairs)


def cql(o):
    k, ks = o['op'], ident(o['ks'])
    ine = 'IF NOT EXISTS ' if o.get('if_not_exists') else ''
    ie = 'IF EXISTS ' if o.get('if_exists') else ''
    if k == 'raw':
        return o['cql']
    if k == 'create_keyspace':
        return 'CREATE KEYSPACE %s%s WITH %s' % (ine, ks, props(o['with']))
    if k == 'alter_keyspace':
        return 'ALTER KEYSPACE %s%s WITH %s' % (ie, ks, props(o['with']))
    if k == 'drop_keyspace':
        return 'DROP KEYSPACE %s%s' % (ie, ks)
    if k == 'create_type':
        return 'CREATE TYPE %s%s.%s (%s)' % (ine, ks, ident(o['type']), ', '.join('%s %s' % (ident(n), t) for n, t in o['fields']))
    if k == 'drop_type':
        return 'DROP TYPE %s%s.%s' % (ie, ks, ident(o['type']))
    if k == 'alter_type':
        head = 'ALTER TYPE %s%s.%s ' % (ie, ks, ident(o['type']))
        if 'add' in o:
            return head + 'ADD %s%s %s' % (ine, ident(o['add'][0]), o['add'][1])
        if 'rename' in o:
            return head + 'RENAME %s' % ' AND '.join('%s TO %s' % (ident(a), ident(b)) for a, b in o['rename'])
        return head + 'ALTER %s TYPE int' % ident(o['alter'])
    if k == 'create_table':
        cols = ['%s %s%s' % (ident(c[0]), c[1], ' static' if len(c) > 2 else '') for c in o['columns']]
        pk = ', '.join(map(ident, o['pk']))
        keys = ', '.join(['(%s)' % pk] + [ident(c) for c in o.get('ck', [])])
        w = []
        if o.get('compact'):
            w.append('COMPACT STORAGE')
        if 'order' in o:
            w.append('CLUSTERING ORDER BY (%s)' % ', '.join('%s %s' % (ident(a), b) for a, b in o['order']))
        if 'with' in o:
            w.append(props(o['with']))
        return 'CREATE TABLE %s%s.%s (%s, PRIMARY KEY (%s))%s' % (
            ine, ks, ident(o['table']), ', '.join(cols), keys, ' WITH ' + ' AND '.join(w) if w else '')
    if k == 'drop_table':
        return 'DROP TABLE %s%s.%s' % (ie, ks, ident(o['table']))
    if k == 'alter_table':
        head = 'ALTER TABLE %s%s.%s ' % (ie, ks, ident(o['table']))
        if 'add' in o:
            return head + 'ADD %s(%s)' % (ine, ', '.join('%s %s%s' % (ident(c[0]), c[1], ' static' if len(c) > 2 else '') for c in o['add']))
        if 'drop' in o:
            ts = ' USING TIMESTAMP %d' % o['ts_given'] if 'ts_given' in o else ''
            ce = 'IF EXISTS ' if o.get('if_column_exists') else ''
            return head + 'DROP %s(%s)%s' % (ce, ', '.join(map(ident, o['drop'])), ts)
        if 'rename' in o:
            ce = 'IF EXISTS ' if o.get('if_column_exists') else ''
            return head + 'RENAME %s%s' % (ce, ' AND '.join('%s TO %s' % (ident(a), ident(b)) for a, b in o['rename']))
        if 'with' in o:
            return head + 'WITH ' + props(o['with'])
        if 'alter' in o:
            return head + 'ALTER %s TYPE int' % ident(o['alter'])
        return head + 'DROP COMPACT STORAGE'
    raise ValueError(k)


def keyspaces():
    ck = lambda ks, w, **m: op('create_keyspace', ks, **{'with': w}, **m)
    ak = lambda ks, w, **m: op('alter_keyspace', ks, **{'with': w}, **m)
    rep = lambda **m: [['replication', m]]
    ck('a1', [['replication', S1]])
    ck('a1', [['replication', S1]])
    ck('a1', [['replication', S1]], if_not_exists=True)
    ck('a2', [['replication', {'class': 'NetworkTopologyStrategy', 'datacenter1': '1'}]])
    ck('a3', [['replication', {'class': 'NetworkTopologyStrategy', 'replication_factor': '3'}], ['durable_writes', 'false']])
    ck('a4', [['replication', {'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': '2'}]])
    ck('a5', [['replication', {'class': 'NetworkTopologyStrategy'}]])
    ck('a6', [['replication', {'class': 'SimpleStrategy'}]])
    ck('Quoted1', [['replication', S1]])
    ck('e1', [['replication', {'replication_factor': '1'}]])
    ck('e1', [['durable_writes', 'true']])
    ck('e1', [['replication', {}]])
    ck('e1', [['replication', {'class': 'LocalStrategy'}]])
    ck('e1', [['replication', {'class': 'Nope', 'replication_factor': '1'}]])
    ck('e1', [['replication', {'class': 'SimpleStrategy', 'replication_factor': 'x'}]])
    ck('e1', [['replication', {'class': 'SimpleStrategy', 'replication_factor': '-1'}]])
    ck('e1', [['replication', {'class': 'SimpleStrategy', 'replication_factor': '3/1'}]])
    ck('e1', [['replication', {'class': 'SimpleStrategy', 'replication_factor': '1/2/3'}]])
    ck('e1', [['replication', {'class': 'SimpleStrategy', 'replication_factor': '1', 'dc1': '2'}]])
    ck('e1', [['replication', {'class': 'NetworkTopologyStrategy', 'dc7': '1'}]])
    ck('e1', [['replication', {'class': 'NetworkTopologyStrategy', 'datacenter1': 'y'}]])
    ck('e1', [['replication', {'class': 'NetworkTopologyStrategy', 'datacenter1': '0'}]])
    ck('e1', [['replication', {'class': 'OldNetworkTopologyStrategy', 'dc': '1'}]])
    ck('e1', [['replication', 'x']])
    ck('e1', [['replication', S1], ['durable_writes', 'perhaps']])
    ck('e1', [['replication', S1], ['nonsense', '1']])
    ck('e1', [['replication', S1], ['replication', S1]])
    ck('e-1', [['replication', S1]])
    ck('x' * 49, [['replication', S1]])
    ck('a7', [['replication', {'class': 'SimpleStrategy', 'replication_factor': '0'}]])
    ck('system', [['replication', S1]])
    ck('system_views', [['replication', S1]])
    ak('a1', [['durable_writes', 'false']])
    ak('a1', [['durable_writes', 'no']])
    ak('a1', [['replication', {'class': 'NetworkTopologyStrategy', 'datacenter1': '2'}]])
    ak('a1', [['replication', {'class': 'SimpleStrategy'}]])
    ak('a1', [['replication', {'class': 'SimpleStrategy', 'replication_factor': '3'}]])
    ak('a1', [['replication', {'class': 'NetworkTopologyStrategy'}]])
    ak('a2', [['replication', {'class': 'NetworkTopologyStrategy', 'replication_factor': '3'}]])
    ak('a2', [['replication', {'class': 'LocalStrategy'}]])
    ak('a2', [['replication', {'datacenter1': '1'}]])
    ak('a9', [['durable_writes', 'false']])
    ak('a9', [['durable_writes', 'false']], if_exists=True)
    ak('a9', [['what', 'false']], if_exists=True)
    ak('system', [['durable_writes', 'false']])
    ak('system_auth', [['replication', {'class': 'NetworkTopologyStrategy', 'datacenter1': '1'}]])
    ak('system_auth', [['replication', S1]])
    op('drop_keyspace', 'a3')
    op('drop_keyspace', 'a3')
    op('drop_keyspace', 'a3', if_exists=True)
    op('drop_keyspace', 'system_schema')
    op('drop_keyspace', 'system_virtual_schema')
    ck('a3', [['replication', S1]])


ALL_TYPES = 'ascii bigint blob boolean date decimal double duration float inet int smallint text time timestamp timeuuid tinyint uuid varchar varint'.split()


def tables():
    op('create_keyspace', 't', **{'with': [['replication', S1]]})
    ct = lambda name, cols, pk, ck=(), **m: op('create_table', 't', table=name, columns=cols, pk=list(pk), ck=list(ck), **m)
    two = [['k', 'int'], ['v', 'text']]
    three = [['k', 'int'], ['c', 'int'], ['v', 'text']]
    ct('plain', two, 'k')
    ct('plain', two, 'k')
    ct('plain', two, 'k', if_not_exists=True)
    ct('clustered', three, 'k', 'c', order=[['c', 'DESC']])
    ct('alltypes', [['k', 'int']] + [['c_' + t, t] for t in ALL_TYPES], 'k')
    ct('colls', [['k', 'uuid'], ['l', 'list<int>'], ['s', 'set<text>'], ['m', 'map<text, blob>'], ['fl', 'frozen<list<int>>'],
                 ['tu', 'tuple<int, text>'], ['ve', 'vector<float, 3>'], ['n', 'map<int, frozen<set<text>>>'], ['a', 'int']], 'k')
    ct('statics', [['k', 'int'], ['c', 'text'], ['s1', 'int', 1], ['s2', 'set<int>', 1], ['b', 'list<int>'], ['z', 'int']], 'k', 'c')
    ct('composite', [['k1', 'int'], ['k2', 'text'], ['c1', 'int'], ['c2', 'text'], ['v', 'int']], ['k1', 'k2'], ['c1', 'c2'],
       order=[['c1', 'ASC'], ['c2', 'DESC']])
    ct('keysonly', [['k', 'int'], ['c', 'int']], 'k', 'c')
    ct('counters', [['k', 'int'], ['c', 'int'], ['n', 'counter'], ['m', 'counter']], 'k', 'c')
    ct('Mixed Case', two, 'k')
    ct('MixedCase', [['K', 'int'], ['select', 'int'], ['v x', 'text'], ['a"b', 'text']], ['K'])
    ct('nopk', two, ['x'])
    ct('t_' * 30, two, 'k')
    ct('duppk', three, ['k'], ['c', 'c'])
    ct('collpk', [['k', 'list<int>'], ['v', 'int']], 'k')
    ct('frozenpk', [['k', 'frozen<list<int>>'], ['v', 'int']], 'k')
    ct('durpk', [['k', 'duration'], ['v', 'int']], 'k')
    ct('durck', [['k', 'int'], ['c', 'frozen<list<duration>>']], 'k', 'c')
    ct('counterpk', [['k', 'counter'], ['v', 'int']], 'k')
    ct('staticpk', [['k', 'int'], ['c', 'int', 1], ['v', 'int']], 'k', 'c')
    ct('staticnock', [['k', 'int'], ['v', 'int', 1]], 'k')
    ct('mix', [['k', 'int'], ['n', 'counter'], ['v', 'int']], 'k')
    ct('order1', three, 'k', 'c', order=[['v', 'DESC']])
    ct('order2', [['k', 'int'], ['c1', 'int'], ['c2', 'int']], 'k', ['c1', 'c2'], order=[['c2', 'DESC'], ['c1', 'ASC']])
    ct('order3', [['k', 'int'], ['c1', 'int'], ['c2', 'int']], 'k', ['c1', 'c2'], order=[['c2', 'DESC']])
    ct('order4', [['k', 'int'], ['c1', 'int'], ['c2', 'int']], 'k', ['c1', 'c2'], order=[['c1', 'DESC']])
    ct('counterttl', [['k', 'int'], ['n', 'counter']], 'k', **{'with': [['default_time_to_live', '100']]})
    op('create_table', 'nope', table='x', columns=two, pk=['k'])
    op('create_table', 'system', table='x', columns=two, pk=['k'])
    op('create_table', 'system_views', table='x', columns=two, pk=['k'])
    ct('compact1', [['k', 'int'], ['v', 'int'], ['w', 'text']], 'k', compact=True)
    ct('compact2', three, 'k', 'c', compact=True)
    ct('compact3', [['k', 'int'], ['c', 'int'], ['d', 'int']], 'k', ['c', 'd'], compact=True)
    ct('compact4', [['k', 'int'], ['c', 'int'], ['d', 'int'], ['e', 'int']], 'k', ['c'], compact=True)
    ct('compact5', [['k', 'int']], 'k', compact=True)
    ct('withid', two, 'k', **{'with': [['id', '5a1c395e-b41f-11e5-9f22-ba0be0483c18']]})
    ct('badid', two, 'k', **{'with': [['id', 'zzz']]})


def options():
    op('create_keyspace', 'o', **{'with': [['replication', S1]]})
    n = [0]

    def opt(*pairs):
        n[0] += 1
        op('create_table', 'o', table='t%d' % n[0], columns=[['k', 'int'], ['v', 'int']], pk=['k'], **{'with': [list(p) for p in pairs]})
    for pair in [
        ('comment', "it's a comment"), ('comment', {'a': 'b'}), ('gc_grace_seconds', '0'), ('gc_grace_seconds', '-1'),
        ('gc_grace_seconds', 'ten'), ('gc_grace_seconds', {'a': '1'}), ('default_time_to_live', '86400'), ('default_time_to_live', '-5'),
        ('default_time_to_live', '630720001'), ('bloom_filter_fp_chance', '0.1'), ('bloom_filter_fp_chance', '0'),
        ('bloom_filter_fp_chance', '1.5'), ('bloom_filter_fp_chance', 'abc'), ('bloom_filter_fp_chance', '1'), ('bloom_filter_fp_chance', '0.00001'),
        ('bloom_filter_fp_chance', '6.71e-5'),
        ('crc_check_chance', '0.5'), ('crc_check_chance', '2'), ('crc_check_chance', '-0.1'),
        ('min_index_interval', '64'), ('min_index_interval', '0'), ('max_index_interval', '100'), ('max_index_interval', '4096'),
        ('memtable_flush_period_in_ms', '1000'), ('memtable_flush_period_in_ms', '-1'),
        ('speculative_retry', '95p'), ('speculative_retry', '99.95PERCENTILE'), ('speculative_retry', '50ms'), ('speculative_retry', 'NONE'),
        ('speculative_retry', 'never'), ('speculative_retry', 'ALWAYS'), ('speculative_retry', 'MIN(99p,50ms)'), ('speculative_retry', 'max(10.5ms , 99.123456p)'),
        ('speculative_retry', 'MIN(99p,50p)'), ('speculative_retry', 'sometimes'), ('speculative_retry', '100p'), ('speculative_retry', '0p'),
        ('speculative_retry', '1.2.3ms'), ('speculative_retry', 'MIN(99x,50ms)'), ('additional_write_policy', '75p'), ('additional_write_policy', 'bad'),
        ('read_repair', 'NONE'), ('read_repair', 'blocking'), ('read_repair', 'x'), ('cdc', 'true'), ('cdc', 'maybe'),
        ('allow_auto_snapshot', 'false'), ('incremental_backups', 'false'), ('allow_auto_snapshot', 'x'), ('memtable', 'default'), ('memtable', 'nope'),
        ('caching', {'keys': 'NONE', 'rows_per_partition': '100'}), ('caching', {'keys': 'all', 'rows_per_partition': 'ALL'}), ('caching', {'rows_per_partition': '5'}),
        ('caching', {'keys': 'some'}), ('caching', {'rows_per_partition': 'x'}), ('caching', {'foo': 'x'}), ('caching', {}), ('caching', 'ALL'),
        ('compression', {'class': 'LZ4Compressor'}), ('compression', {'class': 'SnappyCompressor', 'chunk_length_in_kb': '32'}),
        ('compression', {'class': 'DeflateCompressor', 'min_compress_ratio': '1.5'}), ('compression', {'class': 'ZstdCompressor', 'compression_level': '5'}),
        ('compression', {'class': 'LZ4Compressor', 'lz4_compressor_type': 'high', 'lz4_high_compressor_level': '3'}),
        ('compression', {'class': 'LZ4Compressor', 'lz4_compressor_type': 'slow'}), ('compression', {'class': 'LZ4Compressor', 'lz4_high_compressor_level': '77', 'lz4_compressor_type': 'high'}),
        ('compression', {'class': 'ZstdCompressor', 'compression_level': '99'}), ('compression', {'class': 'ZstdCompressor', 'compression_level': 'x'}),
        ('compression', {'class': 'NoopCompressor'}), ('compression', {'enabled': 'false'}), ('compression', {}), ('compression', {'enabled': 'false', 'class': 'LZ4Compressor'}),
        ('compression', {'chunk_length_in_kb': '4'}), ('compression', {'class': ''}), ('compression', {'class': 'Nope'}), ('compression', {'class': 'LZ4Compressor', 'chunk_length_in_kb': '3'}),
        ('compression', {'class': 'LZ4Compressor', 'chunk_length_in_kb': '0'}), ('compression', {'class': 'LZ4Compressor', 'chunk_length_in_kb': 'x'}),
        ('compression', {'class': 'LZ4Compressor', 'min_compress_ratio': '0.5'}), ('compression', {'class': 'LZ4Compressor', 'bogus': '1'}), ('compression', {'sstable_compression': 'LZ4Compressor'}),
        ('compression', {'class': 'SnappyCompressor', 'bogus': '1'}), ('compression', {'class': 'DeflateCompressor', 'bogus': '1'}), ('compression', {'class': 'LZ4Compressor', 'crc_check_chance': '0.5'}),
        ('compression', {'class': 'LZ4Compressor', 'min_compress_ratio': '-1'}), ('compression', {'class': 'LZ4Compressor', 'chunk_length_in_kb': '3000000'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy'}), ('compaction', {'class': 'LeveledCompactionStrategy'}), ('compaction', {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '100', 'fanout_size': '8'}),
        ('compaction', {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': '2'}), ('compaction', {'class': 'UnifiedCompactionStrategy'}),
        ('compaction', {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'L8, T4, N', 'target_sstable_size': '512MiB', 'base_shard_count': '8'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy', 'min_threshold': '2', 'max_threshold': '64', 'enabled': 'false'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'min_threshold': '1'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy', 'min_threshold': '40'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 'x'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'max_threshold': '0'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy', 'bogus': '1'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'bucket_low': '2', 'bucket_high': '1'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'bucket_low': 'x'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy', 'min_sstable_size': '-1'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'tombstone_threshold': '-1'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'tombstone_threshold': 'x'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy', 'tombstone_compaction_interval': '-1'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'unchecked_tombstone_compaction': 'x'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'log_all': 'maybe'}),
        ('compaction', {'class': 'SizeTieredCompactionStrategy', 'only_purge_repaired_tombstones': 'x'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'provide_overlapping_tombstones': 'row'}), ('compaction', {'class': 'SizeTieredCompactionStrategy', 'provide_overlapping_tombstones': 'x'}),
        ('compaction', {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '0'}), ('compaction', {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 'x'}), ('compaction', {'class': 'LeveledCompactionStrategy', 'fanout_size': '0'}), ('compaction', {'class': 'LeveledCompactionStrategy', 'min_threshold': '4'}),
        ('compaction', {'class': 'LeveledCompactionStrategy', 'single_sstable_uplevel': 'x'}), ('compaction', {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'YEARS'}), ('compaction', {'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '0'}), ('compaction', {'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': 'x'}),
        ('compaction', {'class': 'TimeWindowCompactionStrategy', 'timestamp_resolution': 'x'}), ('compaction', {'class': 'TimeWindowCompactionStrategy', 'expired_sstable_check_frequency_seconds': '-1'}), ('compaction', {'class': 'TimeWindowCompactionStrategy', 'unsafe_aggressive_sstable_expiration': 'true'}),
        ('compaction', {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'Q'}), ('compaction', {'class': 'UnifiedCompactionStrategy', 'base_shard_count': '0'}), ('compaction', {'class': 'UnifiedCompactionStrategy', 'target_sstable_size': '1'}), ('compaction', {'class': 'UnifiedCompactionStrategy', 'bogus': '1'}),
        ('compaction', {'class': 'UnifiedCompactionStrategy', 'sstable_growth': '0.333', 'min_sstable_size': '100MiB', 'overlap_inclusion_method': 'TRANSITIVE', 'flush_size_override': '50MiB', 'max_sstables_to_compact': '10', 'expired_sstable_check_frequency_seconds': '600'}),
        ('compaction', {'class': 'UnifiedCompactionStrategy', 'sstable_growth': '2'}), ('compaction', {'class': 'UnifiedCompactionStrategy', 'overlap_inclusion_method': 'x'}),
        ('compaction', {'class': 'Nope'}), ('compaction', {}), ('compaction', {'min_threshold': '4'}), ('compaction', 'x'), ('compaction', {'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy'}),
        ('compaction', {'class': 'DateTieredCompactionStrategy'}), ('nonsense', '1'), ('read_repair_chance', '0.1'), ('extensions', {'a': '0x01'}), ('auto_repair', {'full_enabled': 'true'}),
    ]:
        opt(pair)
    opt(('comment', 'a'), ('comment', 'b'))
    opt(('comment', 'several'), ('gc_grace_seconds', '5'), ('compaction', {'class': 'LeveledCompactionStrategy'}), ('default_time_to_live', '9'), ('bloom_filter_fp_chance', '0.2'), ('crc_check_chance', '0.25'))
    at = lambda w, **m: op('alter_table', 'o', table='t1', **{'with': [list(p) for p in w]}, **m)
    at([('comment', 'changed')])
    at([('comment', 'changed')])
    at([('compaction', {'class': 'LeveledCompactionStrategy'})])
    at([('bloom_filter_fp_chance', '0.5'), ('gc_grace_seconds', '77')])
    at([('compaction', {'class': 'SizeTieredCompactionStrategy'})])
    at([('id', '5a1c395e-b41f-11e5-9f22-ba0be0483c19')])
    at([('nonsense', '1')])
    at([('max_index_interval', '1')])
    at([('min_index_interval', '4000')])
    at([('gc_grace_seconds', '-4')])
    at([('compression', {'enabled': 'false'})])
    at([('compression', {'class': 'ZstdCompressor'})])
    at([('cdc', 'false')])
    at([('caching', {'keys': 'ALL', 'rows_per_partition': '10'})])
    at([('speculative_retry', '10ms')])
    op('alter_table', 'o', table='zz', **{'with': [['comment', 'x']]})
    op('alter_table', 'o', table='zz', if_exists=True, **{'with': [['comment', 'x']]})
    op('alter_table', 'o', table='zz', if_exists=True, **{'with': [['foo', 'x']]})


def alters():
    op('create_keyspace', 'b', **{'with': [['replication', S1]]})
    op('create_type', 'b', type='addr', fields=[['street', 'text'], ['zip', 'int']])
    op('create_type', 'b', type='addr', fields=[['street', 'text']])
    op('create_type', 'b', type='addr', fields=[['street', 'text']], if_not_exists=True)
    op('create_type', 'b', type='nest', fields=[['a', 'frozen<addr>'], ['l', 'list<int>'], ['m', 'map<text, frozen<list<int>>>']])
    op('create_type', 'b', type='bad', fields=[['a', 'addr']])
    op('create_type', 'b', type='bad', fields=[['a', 'counter']])
    op('create_type', 'b', type='bad', fields=[['a', 'int'], ['a', 'text']])
    op('create_type', 'b', type='Up', fields=[['X y', 'int']])
    op('create_type', 'nope', type='x', fields=[['a', 'int']])
    op('create_table', 'b', table='t', columns=[['k', 'int'], ['c', 'int'], ['v', 'int'], ['s', 'int', 1], ['l', 'list<int>'], ['u', 'addr'], ['fu', 'frozen<addr>']], pk=['k'], ck=['c'])
    op('create_table', 'b', table='p', columns=[['k', 'int'], ['v', 'int']], pk=['k'])
    op('create_table', 'b', table='cnt', columns=[['k', 'int'], ['n', 'counter'], ['m', 'counter']], pk=['k'])
    op('create_table', 'b', table='udtpk', columns=[['k', 'frozen<nest>'], ['v', 'int']], pk=['k'])
    op('create_table', 'b', table='nfu', columns=[['k', 'int'], ['v', 'nest']], pk=['k'])
    op('create_table', 'b', table='nfpk', columns=[['k', 'addr'], ['v', 'int']], pk=['k'])
    at = lambda t, **m: op('alter_table', 'b', table=t, **m)
    at('t', add=[['v2', 'text']])
    at('t', add=[['v2', 'text']])
    at('t', add=[['v2', 'text']], if_not_exists=True)
    at('t', add=[['v3', 'text'], ['s3', 'set<int>', 1]])
    at('p', add=[['s', 'int', 1]])
    at('cnt', add=[['x', 'int']])
    at('cnt', add=[['x', 'counter']])
    at('p', add=[['x', 'counter']])
    at('p', add=[['x', 'nest']])
    at('t', drop=['v2'])
    at('t', drop=['v2'])
    at('t', drop=['v2'], if_column_exists=True)
    at('t', drop=['k'])
    at('t', drop=['c'])
    at('t', drop=['u'])
    at('t', drop=['fu'])
    at('t', drop=['v3', 's'], ts_given=1700000000123456)
    at('t', drop=['l'])
    at('t', add=[['v2', 'int']])
    at('t', add=[['v2', 'blob']])
    at('t', add=[['v3', 'text', 1]])
    at('t', add=[['s', 'int', 1]])
    at('t', add=[['fu', 'frozen<addr>']])
    at('t', add=[['l', 'list<int>']])
    at('t', drop=['l'])
    at('cnt', drop=['m'])
    at('cnt', add=[['m', 'counter']])
    at('t', rename=[['k', 'key']])
    at('t', rename=[['v', 'w']])
    at('t', rename=[['nope', 'w']])
    at('t', rename=[['key', 'c']])
    at('t', rename=[['key', 'Key X'], ['c', 'cc']])
    at('t', alter='v')
    at('t', drop_compact=True)
    at('nope', add=[['x', 'int']])
    at('nope', add=[['x', 'int']], if_exists=True)
    op('alter_table', 'system', table='local', add=[['x', 'int']])
    op('alter_table', 'system_auth', table='roles', add=[['x', 'int']])
    ty = lambda t, **m: op('alter_type', 'b', type=t, **m)
    ty('addr', add=['city', 'text'])
    op('create_type', 'b', type='free', fields=[['a', 'int'], ['b', 'int']])
    op('create_table', 'b', table='usesfree', columns=[['k', 'int'], ['v', 'free'], ['w', 'frozen<free>'], ['x', 'list<frozen<free>>']], pk=['k'])
    ty('free', add=['c', 'text'])
    ty('free', add=['c', 'text'])
    ty('free', add=['c', 'text'], if_not_exists=True)
    ty('free', add=['d', 'counter'])
    ty('free', add=['d', 'addr'])
    ty('free', add=['d', 'frozen<free>'])
    ty('free', add=['d', 'frozen<addr>'])
    ty('free', rename=[['a', 'aa'], ['b', 'bb']])
    ty('free', rename=[['zz', 'aa']])
    ty('free', rename=[['aa', 'bb']])
    ty('free', alter='aa')
    ty('gone', add=['c', 'text'])
    ty('gone', add=['c', 'text'], if_exists=True)
    op('drop_type', 'b', type='addr')
    op('drop_type', 'b', type='nest')
    op('drop_type', 'b', type='free')
    op('drop_type', 'b', type='Up')
    op('drop_type', 'b', type='Up')
    op('drop_type', 'b', type='Up', if_exists=True)
    op('drop_table', 'b', table='usesfree')
    op('drop_table', 'b', table='usesfree')
    op('drop_table', 'b', table='usesfree', if_exists=True)
    op('drop_type', 'b', type='free')
    op('drop_table', 'b', table='t')
    op('create_table', 'b', table='t', columns=[['k', 'int'], ['v', 'int']], pk=['k'])
    op('drop_table', 'system', table='local')
    op('drop_table', 'nope', table='local')


def others():
    op('create_keyspace', 'x', **{'with': [['replication', S1]]})
    op('create_table', 'x', table='t', columns=[['k', 'int'], ['c', 'int'], ['v', 'int'], ['m', 'map<text, int>']], pk=['k'], ck=['c'])
    raw = lambda q: op('raw', 'x', cql=q)
    raw('CREATE INDEX i1 ON x.t (v)')
    raw('CREATE INDEX ON x.t (keys(m))')
    raw("CREATE CUSTOM INDEX i3 ON x.t (c) USING 'sai'")
    raw('CREATE MATERIALIZED VIEW x.mv AS SELECT * FROM x.t WHERE k IS NOT NULL AND c IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k, c) WITH CLUSTERING ORDER BY (k DESC, c ASC)')
    raw("CREATE FUNCTION x.f (a int, b text) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'")
    raw("CREATE FUNCTION x.st (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return b;'")
    raw('CREATE AGGREGATE x.ag (int) SFUNC st STYPE int INITCOND 0')
    op('alter_table', 'x', table='t', drop=['v'])
    op('alter_table', 'x', table='t', drop=['m'])
    op('alter_table', 'x', table='t', **{'with': [['gc_grace_seconds', '0']]})
    op('alter_table', 'x', table='t', **{'with': [['comment', 'has indexes']]})
    op('alter_table', 'x', table='mv', add=[['x', 'int']])
    op('alter_table', 'x', table='t', rename=[['c', 'cx']])
    op('drop_table', 'x', table='mv')
    op('drop_table', 'x', table='t')
    op('create_type', 'x', type='ut', fields=[['a', 'int']])
    raw("CREATE FUNCTION x.g (a ut) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return 1;'")
    op('drop_type', 'x', type='ut')
    raw('DROP MATERIALIZED VIEW x.mv')
    op('alter_table', 'x', table='t', **{'with': [['gc_grace_seconds', '0']]})
    op('drop_table', 'x', table='t')
    raw('ALTER TABLE o.t1 ALTER v MASKED WITH DEFAULT')
    op('drop_keyspace', 'x')


def combinations():
    """Statements that all change something: nested types, renames and options of every kind, over tables that change often."""
    ks = 'g'
    op('create_keyspace', ks, **{'with': [['replication', {'class': 'NetworkTopologyStrategy', 'datacenter1': '1'}]]})
    fields = [[['n', 'int'], ['t', 'text']], [['p', 'frozen<u0>'], ['l', 'frozen<list<u0>>']], [['m', 'map<text, frozen<u1>>'], ['v', 'vector<int, 4>'], ['x', 'tuple<u0, inet>']]]
    for i, f in enumerate(fields):
        op('create_type', ks, type='u%d' % i, fields=f)
    held = ['frozen<u0>', 'u1', 'map<timeuuid, frozen<u2>>', 'list<frozen<map<int, frozen<u0>>>>', 'set<inet>', 'tuple<int, tuple<text, u0>>',
            'vector<frozen<list<int>>, 2>', 'frozen<map<frozen<set<int>>, duration>>', 'vector<text, 3>', 'frozen<tuple<u1, u0>>', 'decimal', 'varint']
    keys = ['int', 'uuid', 'frozen<u0>', 'frozen<set<text>>', 'tuple<int, text>', 'date', 'inet', 'vector<float, 2>', 'blob', 'timeuuid', 'boolean', 'decimal']
    for i, (h, k) in enumerate(zip(held, keys)):
        columns = [['a', k], ['b', keys[(i + 1) % 12]], ['c', keys[(i + 5) % 12]], ['d', 'text'], ['h', h], ['s', 'set<int>' if i % 2 else 'int', 1], ['z', held[(i + 3) % 12]]]
        cut = 1 + i % 2
        op('create_table', ks, table='w%d' % i, columns=columns, pk=['a', 'b'][:cut], ck=['a', 'b', 'c', 'd'][cut:3 + i % 2],
           order=[['b' if cut == 1 else 'c', 'DESC' if i % 3 else 'ASC']] if 3 + i % 2 - cut == 1 else [])
        if not OPS[-1]['order']:
            del OPS[-1]['order']
    changed = [
        [('comment', 'second'), ('gc_grace_seconds', '3600')], [('compaction', {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '64'})],
        [('compression', {'class': 'ZstdCompressor', 'compression_level': '7', 'chunk_length_in_kb': '64'})], [('caching', {'keys': 'NONE', 'rows_per_partition': 'ALL'})],
        [('speculative_retry', 'MIN(95p,20ms)'), ('additional_write_policy', 'NEVER')], [('default_time_to_live', '1000'), ('memtable_flush_period_in_ms', '60000')],
        [('compaction', {'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', 'compaction_window_size': '2'})], [('bloom_filter_fp_chance', '0.02'), ('crc_check_chance', '0.9')],
        [('compaction', {'class': 'UnifiedCompactionStrategy', 'scaling_parameters': 'T4, L8, N'})], [('min_index_interval', '256'), ('max_index_interval', '512')],
        [('read_repair', 'NONE'), ('allow_auto_snapshot', 'false')], [('compression', {'enabled': 'false'}), ('incremental_backups', 'false')],
    ]
    for i, w in enumerate(changed):
        table = 'w%d' % i
        at = lambda **m: op('alter_table', ks, table=table, **m)
        at(**{'with': [list(x) for x in w]})
        at(add=[['n1', held[(i + 7) % 12]], ['n2', 'set<int>' if i % 2 else 'bigint', 1]])
        at(drop=['z' if i % 3 else 'n1'])
        at(rename=[['a', 'A%d' % i]] if i % 4 else [['a', 'a_%d' % i], ['b', 'b_%d' % i]])
        if i % 3 == 1:
            at(add=[['z', held[(i + 3) % 12]]])
    op('alter_type', ks, type='u2', add=['late', 'frozen<list<frozen<u0>>>'])
    op('alter_type', ks, type='u2', rename=[['late', 'later'], ['m', 'M']])
    op('alter_type', ks, type='u0', add=['again', 'duration'])
    op('alter_keyspace', ks, **{'with': [['durable_writes', 'false']]})
    for i in (0, 3, 5):
        op('drop_table', ks, table='w%d' % i)
    op('create_table', ks, table='w3', columns=[['k', 'int'], ['h', 'u2']], pk=['k'])


for part in (keyspaces, tables, options, alters, others, combinations):
    part()
