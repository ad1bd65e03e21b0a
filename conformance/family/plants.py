"""Mistakes of a writer of SSTables, made on purpose in copies: verifier and comparison must find each."""

import json
import os
import shutil
import struct
import zlib

from exports import base, differences, names_in

STATS, HEADER = 2, 3
NOTES = 'planted.json'


class Unfit(Exception):
    """This SSTable has nothing to make that mistake in."""


def uvint(data, at):
    """(value, place after it)."""
    first = data[at]
    more = 8 - (first ^ 0xFF).bit_length()
    value = first & (0xFF >> more)
    for byte in data[at + 1:at + 1 + more]:
        value = value << 8 | byte
    return value, at + 1 + more


def edit(path, change):
    with open(path, 'rb') as f:
        data = bytearray(f.read())
    change(data)
    with open(path, 'wb') as f:
        f.write(data)


def of_statistics(kind, change):
    """Changes a component of Statistics.db in place; its checksum is right."""
    def edited(path):
        def all_of(data):
            count = struct.unpack_from('>i', data)[0]
            places = dict(struct.unpack_from('>ii', data, 8 + 8 * n) for n in range(count))
            start = places[kind]
            end = min([p for p in places.values() if p > start] + [len(data)]) - 4
            part = bytearray(data[start:end])
            change(part)
            assert len(part) == end - start
            data[start:end] = part
            struct.pack_into('>I', data, end, zlib.crc32(part))
        edit(path + '-Statistics.db', all_of)
    return edited


def later_base(header):
    _, end = uvint(header, 0)
    if header[end - 1] == 0xFF:
        raise Unfit
    header[end - 1] += 1


def static_flag(header):
    at = 0
    for _ in range(3):
        _, at = uvint(header, at)
    size, at = uvint(header, at)
    at += size
    count, at = uvint(header, at)
    for _ in range(count):
        size, at = uvint(header, at)
        at += size
    statics_at = at
    statics, at = uvint(header, at)
    if not statics:
        raise Unfit
    for _ in range(statics):
        last = at
        for _ in range(2):
            size, at = uvint(header, at)
            at += size
    moved = header[last:at]
    header[statics_at] -= 1
    header[at] += 1
    header[last:at + 1] = header[at:at + 1] + moved


def timestamps_at(stats):
    at = 0
    for _ in range(2):
        at += 4 + 16 * struct.unpack_from('>i', stats, at)[0]
    return at + 12


def newest(stats):
    at = timestamps_at(stats) + 8
    struct.pack_into('>q', stats, at, struct.unpack_from('>q', stats, at)[0] - 1)


def covered(stats):
    at = timestamps_at(stats) + 16 + 16 + 8
    at += 8 + 16 * struct.unpack_from('>i', stats, at + 4)[0] + 12
    count, = struct.unpack_from('>i', stats, at)
    size, = struct.unpack_from('>H', stats, at + 4) if count else (0,)
    if not size:
        raise Unfit
    stats[at + 5 + size] ^= 1


def block(data):
    """The offset of the second block of a partition's index, one byte further."""
    at = 0
    while at < len(data):
        at += 2 + struct.unpack_from('>H', data, at)[0]
        _, at = uvint(data, at)
        size, at = uvint(data, at)
        if size:
            end = at + size
            _, inside = uvint(data, at)
            count, inside = uvint(data, inside + 12)
            places = struct.unpack_from(f'>{count}i', data, end - 4 * count)
            after = places[2] + inside if count > 2 else end - 4 * count
            # offset (2 bytes), width (3 bytes), no marker that is open
            if data[after - 1] or data[after - 5] == 0xFF or data[after - 6] & 0xC0 != 0x80:
                raise Unfit
            data[after - 5] += 1
            return
        at += size
    raise Unfit


def flipped(data):
    data[len(data) // 2] ^= 1


def digest(data):
    data[0] = data[0] ^ 1


def chunk(data):
    if len(data) < 8:
        raise Unfit
    data[-1] += 1


def no_bits(data):
    data[8:] = bytes(len(data) - 8)


def in_file(component, change):
    def edited(path):
        if not os.path.exists(f'{path}-{component}'):
            raise Unfit
        edit(f'{path}-{component}', change)
    return edited


KINDS = {
    'the base of timestamps': of_statistics(HEADER, later_base),
    'a static column that is said to be regular': of_statistics(HEADER, static_flag),
    'the newest timestamp': of_statistics(STATS, newest),
    'the clusterings that are covered': of_statistics(STATS, covered),
    'the place of a block of the promoted index': in_file('Index.db', block),
    'a bit of the data': in_file('Data.db', flipped),
    'the checksum of the data': in_file('Digest.crc32', digest),
    'the place of a chunk': in_file('CompressionInfo.db', chunk),
    'an empty filter': in_file('Filter.db', no_bits),
    'a bit of the summary': in_file('Summary.db', flipped),
}


def plant(exports, folder):
    """Each mistake in a copy of another table's SSTable, of those that `exports` is of."""
    names = [n for n in names_in(exports) if '/flushed-' in n]
    taken, found = set(), {}
    for kind, mistake in KINDS.items():
        for name in names:
            table = name.split('/')[0]
            if table in taken:
                continue
            path = base(os.path.join(exports, name))
            copy = os.path.join(folder, os.path.basename(os.path.dirname(path)))
            os.makedirs(copy)
            for file in os.listdir(os.path.dirname(path)):
                if file.startswith(os.path.basename(path) + '-'):
                    shutil.copy(os.path.join(os.path.dirname(path), file), copy)
            try:
                mistake(os.path.join(copy, os.path.basename(path)))
            except Unfit:
                shutil.rmtree(copy)
                continue
            taken.add(table)
            found[table] = (kind, name)
            break
        else:
            raise SystemExit(f'no SSTable to plant {kind} in')
    with open(os.path.join(folder + '-' + NOTES), 'w', encoding='ascii') as f:
        json.dump(found, f, indent=0)
    print(f'{len(found)} mistakes planted')


def found(folder, planted, exports):
    """`planted`: what Examine.java wrote of the copies; `exports`: of Cassandra's own."""
    with open(os.path.join(folder + '-' + NOTES), encoding='ascii') as f:
        mistakes = json.load(f)
    missed = 0
    for table, (kind, name) in mistakes.items():
        ours = os.path.join(planted, table, 'planted-0')
        rows, described = differences(ours, os.path.join(exports, name), False)
        by = [what for what, is_so in (('the verifier', os.path.exists(ours + '.failed')), ('the export', rows), ('the metadata', described)) if is_so]
        missed += not by
        print(f"{kind}: found by {', '.join(by) or 'nothing'}")
    print(f'{len(mistakes)} planted, {missed} missed')
    return 1 if missed or not mistakes else 0
