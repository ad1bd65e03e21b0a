"""Compares what Examine.java wrote of two makes' SSTables of the same statements."""

import json
import os

SHOWN = 20
HIDDEN_VALUE = 'regular column value'
TEXT_SHOWN = 300
# Follow the place in the file.
PLACES = {'position'}
# Of a counter: all its times, and its context, which sstabledump shows as if it were a number.
CLOCKED = {'tstamp', 'marked_deleted', 'value'}
# Of what is in the tables this is not part.
EXPIRED = {'expired'}
# Of counters all times follow the clock, and so do the sizes of what is told from the least of them.
CLOCKED_METADATA = {'timestamps', 'encoding', 'partition sizes', 'uncompressed length', 'index', 'local deletion times', 'drop times'}
COMPONENTS = ['Data.db', 'Index.db', 'Filter.db', 'Summary.db', 'Statistics.db', 'CompressionInfo.db', 'CRC.db', 'Digest.crc32', 'TOC.txt']
# Told from the keys alone, where their number is known.
ALIKE_FLUSHED = ['Filter.db', 'Summary.db']
# Sizes are those of the columns that the file's header names.
SIZES = {'partition sizes', 'uncompressed length', 'index'}
LIST, COUNTER = ('org.apache.cassandra.db.marshal.' + name for name in ('ListType(', 'CounterColumnType'))


def plain(found, counter, lists):
    """Without what may differ; cells of lists keep their order and lose their paths."""
    if isinstance(found, list):
        return [plain(f, counter, lists) for f in found]
    if not isinstance(found, dict):
        return found
    left_out = PLACES | EXPIRED | (CLOCKED if counter else set())
    kept = {name: plain(v, counter, lists) for name, v in found.items() if name not in left_out}
    if 'path' in kept and kept.get('name') in lists:
        del kept['path']
    return kept


def metadata(path):
    with open(path, encoding='utf-8') as f:
        return dict(line.rstrip('\n').split('\t', 1) for line in f)


def columns_of(fields, marker):
    """Names as the export may quote them, of columns whose type begins so."""
    found = {name.split(' column ')[1] for name, text in fields.items() if ' column ' in name and text.startswith(marker)}
    return found | {f'"{name}"' for name in found}


def unlike(fields, other, counter, compacted):
    """Names of the metadata that differ and should not."""
    left_out = set(CLOCKED_METADATA) if counter else set()
    # Cassandra's flushes name only columns that were written, and its compactions still those that were dropped.
    more, fewer = (other, fields) if compacted else (fields, other)
    names = {k.split(' column ')[1] for k in fewer if ' column ' in k}
    unnamed = {k for k in more if ' column ' in k and k.split(' column ')[1] not in names}
    left_out |= unnamed | (SIZES if unnamed else set())
    # What COMPACT STORAGE hides beside static columns is never written: Cassandra's files do not name it.
    hidden = {k for k in fields if k == HIDDEN_VALUE and k not in other}
    left_out |= hidden | (SIZES if hidden else set())
    return [k for k in sorted(set(fields) | set(other)) if k not in left_out and fields.get(k) != other.get(k)]


def load(path):
    with open(path, encoding='utf-8') as f:
        return json.load(f)


def different(ours, theirs, at=''):
    """The first place where two values differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        pairs = [(f'{at}.{k}', ours[k], theirs[k]) for k in ours]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(f'{at}[{i}]', a, b) for i, (a, b) in enumerate(zip(ours, theirs))]
    else:
        return f'{at}\n    {str(ours)[:TEXT_SHOWN]}\n    {str(theirs)[:TEXT_SHOWN]}'
    return next((different(a, b, where) for where, a, b in pairs if a != b), at)


def base(name):
    """Where the SSTable is, up to the names of its components."""
    with open(name + '.path', encoding='utf-8') as f:
        return f.read()


SEAL = b'HELSEAL'


def same_bytes(ours, theirs, component):
    paths = [f'{path}-{component}' for path in (ours, theirs)]
    if not all(os.path.exists(p) for p in paths):
        return None
    a, b = (open(p, 'rb').read() for p in paths)
    # behind our summaries lies their checksum, which Cassandra never reads (crates/sstable/src/seal.rs)
    return a == b or (component == 'Summary.db' and a.startswith(b) and SEAL in a[len(b):])


def names_in(folder):
    return sorted(os.path.relpath(os.path.join(at, file[:-5]), folder)
                  for at, _, files in os.walk(folder) for file in files if file.endswith('.path'))


def differences(ours, theirs, compacted):
    """What differs between two SSTables' exports, and between their metadata; each a list of texts."""
    missing = [p for p in (ours + '.json', theirs + '.json') if not os.path.exists(p) or not os.path.getsize(p)]
    if missing:
        return [f'no export in {missing}'], []
    fields, other = metadata(ours + '.meta'), metadata(theirs + '.meta')
    counter, lists = bool(columns_of(other, COUNTER)), columns_of(other, LIST)
    try:
        left, right = (plain(load(p + '.json'), counter, lists) for p in (ours, theirs))
    except json.JSONDecodeError as e:
        return [f'an export that is not whole: {e}'], []
    rows = [] if left == right else [different(left, right)]
    show = lambda text: str(text)[:TEXT_SHOWN]
    described = [f'{k}\n    {show(fields.get(k))}\n    {show(other.get(k))}' for k in unlike(fields, other, counter, compacted)]
    for component in ALIKE_FLUSHED:
        if not compacted and same_bytes(base(ours), base(theirs), component) is False:
            described.append(component)
    return rows, described


def compare_exports(a, b):
    names = sorted(set(names_in(a)) | set(names_in(b)))
    told, differ, described = [], 0, 0
    identical = {c: [0, 0] for c in COMPONENTS}
    for name in names:
        ours, theirs = (os.path.join(f, name) for f in (a, b))
        rows, about = differences(ours, theirs, '/live-' in name)
        told += [f'{name}: {text}' for text in rows + about]
        differ += bool(rows)
        described += bool(about)
        if os.path.exists(ours + '.path') and os.path.exists(theirs + '.path'):
            for component in COMPONENTS:
                same = same_bytes(base(ours), base(theirs), component)
                if same is not None:
                    identical[component][0] += same
                    identical[component][1] += 1
    print('\n'.join(told[:SHOWN]))
    for component, (same, of) in identical.items():
        print(f'{component}: {same} of {of} the same to the byte')
    print(f'{len(names)} SSTables compared, {differ} differ, of {described} the metadata')
    return 1 if differ or described or not names else 0
