"""Differences planted in answers on their way from the server to the comparison: the corpus must find each.

Each is a function that takes an answer's bytes apart, changes one kind of thing as a faulty server would, and puts them
together again; `None` leaves the answer alone. The server under test knows nothing of it.
"""

import struct

from wire import EVENT, ERROR, EXECUTE, PREPARED, QUERY, RESULT, ROWS, SCHEMA_CHANGE, Reader, string, value

WARNINGS, GLOBAL, MORE, NO_METADATA, NEW_ID = 0x08, 1, 2, 4, 8


class Rows:
    """A ROWS result: metadata as far as it is changed here, the rest raw."""

    def __init__(self, body):
        r = Reader(body)
        r.i32()
        self.flags, self.count = r.i32(), r.i32()
        self.state = r.bytes() if self.flags & MORE else None
        self.new_id = r.short_bytes() if self.flags & NEW_ID else None
        self.spec, self.columns = b'', []
        if not self.flags & NO_METADATA:
            at = r.at
            if self.flags & GLOBAL:
                r.string(), r.string()
            self.spec = body[at:r.at]
            for _ in range(self.count):
                at = r.at
                if not self.flags & GLOBAL:
                    r.string(), r.string()
                prefix, name = body[at:r.at], r.string()
                at = r.at
                text = r.type()
                self.columns.append([prefix, name, body[at:r.at], text])
        self.rows = [[r.bytes() for _ in range(self.count)] for _ in range(r.i32())]
        self.rest = body[r.at:]

    def encode(self):
        out = struct.pack('>iii', ROWS, self.flags, self.count)
        if self.flags & MORE:
            out += value(self.state)
        if self.flags & NEW_ID:
            out += struct.pack('>H', len(self.new_id)) + self.new_id
        out += self.spec + b''.join(prefix + string(name) + kind for prefix, name, kind, _ in self.columns)
        out += struct.pack('>i', len(self.rows)) + b''.join(value(cell) for row in self.rows for cell in row)
        return out + self.rest

    def cells(self, kind, change, named=''):
        """Replaces the cells of columns of a type whose name begins so, where `change` answers something."""
        done = False
        for i, (_, name, _, text) in enumerate(self.columns):
            if text.startswith(kind) and name.startswith(named):
                for row in self.rows:
                    new = row[i] and change(row[i])
                    done, row[i] = done or bool(new), new or row[i]
        return done


def rows(change):
    """A difference in rows: `change(rows, query)` says whether it changed any."""
    def apply(answer, query):
        if answer.opcode != RESULT or struct.unpack_from('>i', answer.body)[0] != ROWS:
            return None
        found = Rows(answer.body)
        return found.encode() if change(found, query) else None
    return apply


def wrong_order(found, query):
    if 'DESC' not in query or len(found.rows) < 2 or found.rows[0] == found.rows[1]:
        return False
    found.rows[0], found.rows[1] = found.rows[1], found.rows[0]
    return True


def missing_static_row(found, query):
    """Rows that have nothing but a key and statics: the second cell of all columns, a clustering, is null."""
    if not query.startswith('SELECT *') or found.count < 3:
        return False
    kept = [row for row in found.rows if row[1] is not None]
    changed, found.rows = len(kept) < len(found.rows), kept
    return changed


def empty_for_null(found, _):
    changed = False
    for i, column in enumerate(found.columns):
        for row in found.rows:
            if column[3] == 'varchar' and row[i] is None:
                row[i], changed = b'', True
    return changed


def null_for_empty(found, _):
    changed = False
    for row in found.rows:
        for i, cell in enumerate(row):
            if cell == b'':
                row[i], changed = None, True
    return changed


def metadata_left_out(found, _):
    if found.flags & NO_METADATA or not found.flags & MORE:
        return False
    found.flags, found.spec, found.columns = found.flags | NO_METADATA & ~GLOBAL, b'', []
    return True


def more_pages_untold(found, _):
    if not found.flags & MORE:
        return False
    found.flags, found.state = found.flags & ~MORE, None
    return True


def row_lost_at_a_page(found, _):
    if not found.flags & MORE or not found.rows:
        return False
    found.rows.pop()
    return True


def row_twice(found, query):
    if ' IN ' not in query or not found.rows:
        return False
    found.rows.append(found.rows[-1])
    return True


def limit_short_by_one(found, query):
    if ' LIMIT ' not in query or not found.rows:
        return False
    found.rows.pop()
    return True


def number(form, add):
    return lambda cell: struct.pack(form, struct.unpack(form, cell)[0] + add) if len(cell) == struct.calcsize(form) else None


def ttl_off_by_one(found, _):
    return found.cells('int', number('>i', -1), named='ttl(')


def writetime_of_a_collection(found, _):
    """Only the first of its elements' times."""
    return found.cells('list<bigint>', lambda cell: struct.pack('>i', 1) + cell[4:16] if cell[:4] > struct.pack('>i', 1) else None, named='writetime(')


def set_out_of_order(found, _):
    def swap(cell):
        r = Reader(cell)
        items = [r.bytes() for _ in range(r.i32())]
        return struct.pack('>i', len(items)) + b''.join(value(i) for i in reversed(items)) if len(items) > 1 else None
    return found.cells('set<', swap)


def decimal_scale_lost(found, _):
    def strip(cell):
        scale, digits = struct.unpack_from('>i', cell)[0], int.from_bytes(cell[4:], 'big', signed=True)
        if scale <= 0 or digits % 10:
            return None
        digits //= 10
        return struct.pack('>i', scale - 1) + digits.to_bytes((digits if digits >= 0 else ~digits).bit_length() // 8 + 1, 'big', signed=True)
    return found.cells('decimal', strip)


def count_off_by_one(found, _):
    return found.cells('bigint', number('>q', 1), named='count')


def negative_zero_lost(found, _):
    return found.cells('float', lambda cell: bytes(4) if cell == b'\x80\0\0\0' else None)


def alias_lost(found, query):
    if ' AS ' not in query:
        return False
    for column in found.columns:
        column[1] = 'x'
    return bool(found.columns)


def applied_untrue(found, _):
    return found.cells('boolean', lambda cell: bytes([1 - cell[0]]), named='[applied]')


def json_unquoted(found, _):
    return found.cells('varchar', lambda cell: cell.replace(b': "', b': ').replace(b'",', b',') if b': "' in cell else None, named='[json]')


def missing_warning(answer, _):
    if not answer.flags & WARNINGS:
        return None
    answer.flags &= ~WARNINGS
    return answer.body  # the warnings' bytes were taken off before


def wrong_error_code(answer, _):
    """INVALID for what already exists."""
    if answer.opcode != ERROR or struct.unpack_from('>i', answer.body)[0] != 0x2400:
        return None
    return struct.pack('>i', 0x2200) + answer.body[4:]


def syntax_as_invalid(answer, _):
    if answer.opcode != ERROR or struct.unpack_from('>i', answer.body)[0] != 0x2000:
        return None
    return struct.pack('>i', 0x2200) + answer.body[4:]


def failure_for_success(answer, query):
    """A write that is refused for no reason, when its table has another primary key than usual."""
    if answer.opcode != RESULT or not query.startswith('DELETE') or ' IN ' not in query:
        return None
    answer.opcode = ERROR
    return struct.pack('>i', 0x2200) + string('not supported yet')


def created_for_updated(answer, _):
    if answer.opcode != RESULT or struct.unpack_from('>i', answer.body)[0] != SCHEMA_CHANGE:
        return None
    return answer.body.replace(string('UPDATED'), string('CREATED')) if string('UPDATED') in answer.body else None


def event_of_another_kind(answer, _):
    if answer.opcode != EVENT:
        return None
    return answer.body.replace(string('DROPPED'), string('UPDATED')) if string('DROPPED') in answer.body else None


def partition_key_untold(answer, _):
    """A PREPARED whose markers of the partition key are not named."""
    if answer.opcode != RESULT or struct.unpack_from('>i', answer.body)[0] != PREPARED or answer.version < 4:
        return None
    r = Reader(answer.body)
    r.i32(), r.short_bytes()
    if answer.version >= 5:
        r.short_bytes()
    r.i32(), r.i32()
    at, keys = r.at, r.i32()
    if keys == 0:
        return None
    return answer.body[:at] + struct.pack('>i', 0) + answer.body[at + 4 + 2 * keys:]


class PagingState:
    """The second page's state is the first's: rows come again."""

    def __init__(self):
        self.first = None

    def __call__(self, answer, _):
        if answer.opcode != RESULT or struct.unpack_from('>i', answer.body)[0] != ROWS:
            return None
        found = Rows(answer.body)
        if not found.flags & MORE:
            self.first = None
            return None
        if self.first is None:
            self.first = found.state
            return None
        found.state, self.first = self.first, None
        return found.encode()


# name -> (a maker of it, what it is)
PLANTED = {
    'wrong_order': (rows(wrong_order), 'the first two rows of a descending order change places'),
    'missing_static_row': (rows(missing_static_row), 'a partition that has only statics has no row'),
    'empty_for_null': (rows(empty_for_null), 'an empty text for a null'),
    'null_for_empty': (rows(null_for_empty), 'a null for an empty value'),
    'metadata_left_out': (rows(metadata_left_out), 'a page without metadata that was asked for with it'),
    'more_pages_untold': (rows(more_pages_untold), 'the last page there is, it says, and is not'),
    'row_lost_at_a_page': (rows(row_lost_at_a_page), 'a page too short: its last row is on no page'),
    'paging_state_of_before': (PagingState(), 'the paging state of the page before'),
    'row_twice': (rows(row_twice), 'the last row of an IN comes twice'),
    'limit_short_by_one': (rows(limit_short_by_one), 'a LIMIT that gives one row too few'),
    'ttl_off_by_one': (rows(ttl_off_by_one), 'a ttl one second too short'),
    'writetime_of_a_collection': (rows(writetime_of_a_collection), 'the write time of one element for that of all'),
    'set_out_of_order': (rows(set_out_of_order), 'the elements of a set in another order'),
    'decimal_scale_lost': (rows(decimal_scale_lost), '1.5 for 1.50'),
    'negative_zero_lost': (rows(negative_zero_lost), '0.0 for -0.0'),
    'count_off_by_one': (rows(count_off_by_one), 'a count too high by one'),
    'alias_lost': (rows(alias_lost), 'a column not named as its alias says'),
    'json_unquoted': (rows(json_unquoted), 'a text in JSON without its quotes'),
    'missing_warning': (missing_warning, 'an answer without its warnings'),
    'wrong_error_code': (wrong_error_code, 'ALREADY_EXISTS with the code of INVALID'),
    'syntax_as_invalid': (syntax_as_invalid, 'SYNTAX_ERROR with the code of INVALID'),
    'failure_for_success': (failure_for_success, 'a DELETE with IN refused after it was done'),
    'created_for_updated': (created_for_updated, 'a schema change of another kind'),
    'event_of_another_kind': (event_of_another_kind, 'an event of another kind'),
    'partition_key_untold': (partition_key_untold, 'PREPARED without the indexes of the partition key'),
    'applied_untrue': (rows(applied_untrue), '[applied] turned around'),
}


class Answer:
    """What a difference sees and may change: the body is without tracing id, warnings and payload."""

    def __init__(self, version, opcode, flags, body):
        self.version, self.opcode, self.flags, self.body = version, opcode, flags, body


class Planter:
    """Stands between a connection and its bytes."""

    def __init__(self, name):
        self.change, self.planted, self.texts, self.query = PLANTED[name][0], 0, {}, ''

    def asked(self, opcode, body):
        """Remembers which statement the next answer is to."""
        r = Reader(body)
        if opcode == QUERY:
            self.query = r.take(r.i32()).decode('utf-8', 'replace')
        elif opcode == EXECUTE:
            self.query = self.texts.get(r.short_bytes(), '')
        else:
            self.query = r.take(r.i32()).decode('utf-8', 'replace') if opcode == 9 else ''

    def answered(self, version, opcode, flags, body):
        """The answer as it arrives at the comparison: (opcode, flags, body)."""
        r = Reader(body)
        if flags & 0x02:
            r.take(16)
        head = r.at
        if flags & WARNINGS:
            r.strings()
        tail = r.at
        if flags & 0x04:
            for _ in range(r.u16()):
                r.string(), r.bytes()
        answer = Answer(version, opcode, flags, body[r.at:])
        if opcode == RESULT and struct.unpack_from('>i', answer.body)[0] == PREPARED:
            self.texts[Reader(answer.body[4:]).short_bytes()] = self.query
        changed = self.change(answer, self.query)
        if changed is None:
            return opcode, flags, body
        self.planted += 1
        kept = body[:r.at] if answer.flags & WARNINGS or not flags & WARNINGS else body[:head] + body[tail:r.at]
        return answer.opcode, answer.flags, kept + changed
