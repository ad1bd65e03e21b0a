"""Decodes a SCHEMA_PULL answer into rows: {keyspace: {table: {'del': .., 'rows': {clustering: row}}}}.

row = {'d': [ts, ldt] of the row's deletion, 't': liveness ts, 'c': {column: [ts, value hex | None]}}.
"""
import hashlib, os, sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'hostile'))

from internode import Cursor  # noqa: E402

FIXED = dict(boolean=1, double=8, int=4, uuid=16, timestamp=8)
COMMON = dict(allow_auto_snapshot='boolean', bloom_filter_fp_chance='double', caching='', comment='',
              compaction='', compression='', memtable='', crc_check_chance='double',
              dclocal_read_repair_chance='double', default_time_to_live='int', extensions='',
              gc_grace_seconds='int', incremental_backups='boolean', id='uuid', max_index_interval='int',
              memtable_flush_period_in_ms='int', min_index_interval='int', read_repair_chance='double',
              speculative_retry='', additional_write_policy='', cdc='boolean', read_repair='')
TABLES = {
    'keyspaces': (0, dict(durable_writes='boolean', replication='')),
    'tables': (1, dict(COMMON, flags='')),
    'columns': (2, dict(clustering_order='', column_name_bytes='', kind='', position='int', type='')),
    'column_masks': (2, dict(function_keyspace='', function_name='', function_argument_types='',
                             function_argument_values='', function_argument_nulls='')),
    'dropped_columns': (2, dict(dropped_time='timestamp', kind='', type='')),
    'triggers': (2, dict(options='')),
    'views': (1, dict(COMMON, base_table_id='uuid', base_table_name='', where_clause='',
                      include_all_columns='boolean')),
    'indexes': (2, dict(kind='', options='')),
    'types': (1, dict(field_names='', field_types='')),
    'functions': (2, dict(argument_names='', body='', language='', return_type='',
                          called_on_null_input='boolean')),
    'aggregates': (2, dict(final_func='', initcond='', return_type='', state_func='', state_type='')),
}
MASK = (1 << 64) - 1


def table_id(name):
    h = bytearray(hashlib.md5(('system_schema' + name).encode()).digest())
    h[6], h[8] = h[6] & 0x0F | 0x30, h[8] & 0x3F | 0x80
    return bytes(h)


BY_ID = {table_id(t): t for t in TABLES}


def signed(v):
    v &= MASK
    return v - (1 << 64) if v >> 63 else v


def decode(data):
    r, out = Cursor(data), {}
    for _ in range(r.i32()):
        for _ in range(r.uvint()):
            update(r, out)
    assert r.at == len(data)
    return out


def update(r, out):
    table = BY_ID[r.take(16)]
    arity, types = TABLES[table]
    key = r.vbytes().decode()
    flags = r.u8()
    part = out.setdefault(key, {}).setdefault(table, {'rows': {}})
    if flags & 1:
        return
    min_ts, min_del, min_ttl = r.uvint() + 1442880000000000, r.uvint() + 1442880000, r.uvint()
    assert not flags & 8
    columns = [r.vbytes().decode() for _ in range(r.uvint())]
    ts = lambda: signed(r.uvint() + min_ts)
    ldt = lambda: (r.uvint() + min_del) & 0xFFFFFFFF
    if flags & 4:
        part['del'] = [ts(), ldt()]
    if flags & 0x10:
        r.uvint()
    while True:
        f = r.u8()
        if f & 1:
            return
        assert not f & 2 and not f & 0x80
        clustering = []
        header = r.uvint() if arity else 0
        for i in range(arity):
            clustering.append('' if header >> 2 * i & 1 else r.vbytes().hex())
        row = {}
        if f & 4:
            row['t'] = ts()
        assert not f & 8
        if f & 0x10:
            row['d'] = [ts(), ldt()]
        present = columns
        if not f & 0x20:
            bits = r.uvint()
            if len(columns) < 64:
                present = [c for i, c in enumerate(columns) if not bits >> i & 1]
        cells = {}
        for c in present:
            cf = r.u8()
            cts = row['t'] if cf & 8 else ts()
            if cf & 1:
                r_ldt = ldt()
            assert not cf & 2
            value = b'' if cf & 4 else r.take(FIXED[types[c]]) if types[c] in FIXED else r.vbytes()
            cells[c] = [cts, None if cf & 1 else value.hex()]
        if cells:
            row['c'] = cells
        part['rows'][' '.join(clustering)] = row
