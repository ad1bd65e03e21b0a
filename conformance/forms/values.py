"""Values for markers: literals as bytes, and bytes as literals. The server under test encodes; that it does so as Cassandra does is what the
literal form of the same statement shows."""

import re
import struct
import uuid

from wire import UNSET

WHOLE = {'tinyint': '>b', 'smallint': '>h', 'int': '>i', 'bigint': '>q', 'counter': '>q'}
CAST = 'SELECT ({}) {} AS x FROM system.local'
VECTOR = re.compile(r"'org\.apache\.cassandra\.db\.marshal\.VectorType\((.*)\)'")
UDT = re.compile(r'udt ([^.<]+)\.([^<]+)<')
NATIVE = {'ascii', 'bigint', 'blob', 'boolean', 'decimal', 'double', 'duration', 'float', 'int', 'text', 'timestamp', 'uuid', 'varchar', 'varint',
          'timeuuid', 'inet', 'date', 'time', 'smallint', 'tinyint'}


class CannotEncode(Exception):
    """A literal that does not stand for a value of a type by itself."""


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def named(kind):
    """The type as CQL writes it, of what the protocol calls it: names of a user's types stand for themselves."""
    out, at = '', 0
    while at < len(kind):
        user = UDT.match(kind, at)
        if not user:
            out += kind[at]
            at += 1
            continue
        depth = 1
        at = user.end()
        while depth:
            depth += (kind[at] == '<') - (kind[at] == '>')
            at += 1
        out += f'frozen<{quoted(user[1])}.{quoted(user[2])}>'
    return 'bigint' if out == 'counter' else out


class Encoder:
    """Literals as bytes, by a server."""

    def __init__(self):
        self.known = {}

    def bytes(self, connection, kind, literal):
        if literal.upper() == 'NULL':
            return None
        key = (kind, literal)
        if key not in self.known:
            # the oldest version of the protocol that has all types: what is encoded is the same in all
            answer = connection.query(CAST.format(named(kind), literal))
            if answer['kind'] != 'rows' or len(answer['rows']) != 1:
                raise CannotEncode(f"({named(kind)}) {literal}: {answer.get('message', answer['kind'])}")
            self.known[key] = answer['rows'][0][0]
        return self.known[key]

    def json(self, connection, kind, literal):
        """What a literal is in JSON, as text; None if the server cannot say."""
        if literal.upper() == 'NULL':
            return 'null'
        answer = connection.query(f'SELECT to_json(({named(kind)}) {literal}) AS x FROM system.local')
        return answer['rows'][0][0].decode() if answer['kind'] == 'rows' else None


def literal(kind, value):
    """Bytes of a type as a term; None where there is none that stands for them."""
    if value is None:
        return 'null'
    if value is UNSET:
        return None
    if kind in WHOLE and len(value) == struct.calcsize(WHOLE[kind]):
        return str(struct.unpack(WHOLE[kind], value)[0])
    if kind in ('uuid', 'timeuuid') and len(value) == 16:
        return str(uuid.UUID(bytes=value))
    if kind == 'boolean' and len(value) == 1:
        return 'true' if value[0] else 'false'
    if kind in ('varchar', 'text', 'ascii'):
        try:
            return "'" + value.decode().replace("'", "''") + "'"
        except UnicodeDecodeError:
            return None
    if kind == 'blob':
        return '0x' + value.hex()
    if kind in NATIVE:
        return f'blob_as_{kind}(0x{value.hex()})'
    return None
