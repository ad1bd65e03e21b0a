"""A SELECT in all its forms: written out, prepared by position and by name, in pages of each size, in the other order, in each version of
the protocol. All must give the rows of the statement as it stands."""

import copy
import json
import zlib

import cql
import run
import wire
from corpus import encode_value, words
from names import name as form_name
from values import CannotEncode, literal
from wire import UNSET

SIZES = (None, 1, 2, 3, 7, 100)
SIZES_OF_ERRORS = (None, 2)
VERSIONS = (5, 4, 3)
# Of reads through each node of a ring, in which writes are at ALL.
LEVELS = ('ONE', 'QUORUM', 'ALL')
MAX_PAGES = 2000
STYLES = ('position', 'name', 'inside', 'list')


class Writing:
    """One way to write a statement, and its values."""

    def __init__(self, name, cql, values=None, names=None, prepared=False):
        self.name, self.cql, self.values, self.names, self.prepared = name, cql, values, names, prepared

    def ask(self, connection, prepared, options):
        if prepared is not None:
            return connection.execute(prepared, options)
        return connection.query(self.cql, options)


class Cannot(Exception):
    """A statement that has no such form: the reason is the text."""


def prepared_writing(connection, encoder, text, style, keyspace=None):
    """A literal statement with markers for its terms. Where a server cannot tell the type of a marker, arguments stay as they are."""
    for careful in (False, True):
        marked, literals = cql.marked(text, style, careful)
        if not literals:
            raise Cannot('nothing to bind')
        answer = connection.prepare(marked, keyspace)
        if answer['kind'] != 'prepared':
            reason = f"{answer['code']:04x}"
            continue
        columns = answer['bind'].get('columns', [])
        if len(columns) != len(literals):
            raise Cannot('other markers than were set')
        try:
            values = [encoder.bytes(connection, c[3], term) for c, term in zip(columns, literals)]
        except CannotEncode:
            reason = 'no value'
            continue
        if style != 'name':
            return Writing(style, marked, values, prepared=True)
        # in another order than the statement's: a name is what counts
        return Writing(style, marked, values[::-1], [c[2] for c in columns][::-1], prepared=True)
    raise Cannot(reason)


def binds(step):
    """The values that a step is run with: (values, names or None) each; of a literal one, none."""
    if 'bind' in step.directives:
        return [([encode_value(w) for w in words(line)], None) for line in step.directives['bind']]
    if 'values' in step.directives:
        return [([encode_value(w) for w in words(step.get('values'))], None)]
    if 'names' in step.directives:
        pairs = [w.partition('=')[::2] for w in words(step.get('names'))]
        return [([encode_value(v) for _, v in pairs], [name for name, _ in pairs])]
    return [(None, None)]


class Asked:
    """A SELECT of a file with one set of values."""

    level = None  # in place of the server's, where the file does not say which

    def __init__(self, server, step, number, values, names):
        self.server, self.step, self.number, self.values, self.names = server, step, number, values, names
        self.version = step.sticky['protocol']
        self.keyspace = step.get('keyspace')
        self.base_writing = Writing('file', step.cql, values, names, prepared='bind' in step.directives)

    def connection(self, version=None):
        return self.server.connection(version or self.version)

    def options(self, version, writing, size=None, state=None):
        opts = self.server._options(self.step)
        opts.pop('skip_metadata', None)
        if self.level and not self.step.get('consistency'):
            opts['consistency'] = self.level
        if version < 5:
            opts.pop('now'), opts.pop('keyspace')
        return wire.Options(**opts, values=writing.values, names=writing.names, page_size=size, paging_state=state)

    def can_be_of(self, version):
        """Some options are of version 5 alone; an unset value is of 4."""
        if version < 5 and (self.step.sticky.get('now') is not None or self.keyspace):
            return False
        return version > 3 or UNSET not in (self.values or [])

    def whole(self, writing, version, size, coordinators=None):
        """The answer with the rows of all pages, and the most rows of a page."""
        try:
            return self._whole(writing, version, size, coordinators)
        except (wire.Closed, OSError) as e:
            for server in coordinators or [self.server]:
                keyspace = server.keyspace
                server.close()
                server.keyspace = keyspace
            return dict(kind='closed', message=str(e)), 0

    def _whole(self, writing, version, size, coordinators):
        servers = coordinators or [self.server]
        rows, most, state, first, at = [], 0, None, None, 0
        prepared = {}
        for _ in range(MAX_PAGES):
            server = servers[at % len(servers)]
            at += 1
            connection = server.connection(version)
            if writing.prepared and server not in prepared:
                prepared[server] = connection.prepare(writing.cql, self.keyspace if version >= 5 else None)
                if prepared[server]['kind'] != 'prepared':
                    return run.plain(prepared[server], self.step), 0
            answer = writing.ask(connection, prepared.get(server), self.options(version, writing, size, state))
            state = answer.get('metadata', {}).get('paging_state')
            page = run.plain(answer, self.step)
            if answer['kind'] != 'rows':
                return page, 0
            first = first or page
            rows += page['rows']
            most = max(most, len(page['rows']))
            if state is None:
                break
        else:
            raise RuntimeError(f'more than {MAX_PAGES} pages: {writing.cql}')
        return dict(first, rows=rows), most

    def writings(self, encoder):
        """All ways to write it, and why the others are none: (writings, {name: reason})."""
        found, missing = [], {}
        connection = self.connection()
        if self.values is None:
            found.append(Writing('literal', self.step.cql))
            seen = set()
            for style in STYLES:
                try:
                    writing = prepared_writing(connection, encoder, self.step.cql, style, self.keyspace if self.version >= 5 else None)
                except Cannot as e:
                    missing[style] = str(e)
                    continue
                if writing.cql not in seen:
                    found.append(writing)
                seen.add(writing.cql)
                if style == 'position':
                    found.append(Writing('values', writing.cql, writing.values))
            return found, missing
        prepared = connection.prepare(self.step.cql, self.keyspace if self.version >= 5 else None)
        if prepared['kind'] != 'prepared':
            return [self.base_writing], {'prepared': f"{prepared.get('code', 0):04x}"}
        columns = prepared['bind']['columns']
        by_name = dict(zip(self.names, self.values)) if self.names else {}
        values = [by_name.get(c[2]) for c in columns] if self.names else self.values
        found.append(Writing('position', self.step.cql, values, prepared=True))
        found.append(Writing('values', self.step.cql, values))
        named = cql.named_markers(self.step.cql)
        if named and len(named[1]) == len(values):
            found.append(Writing('name', named[0], values[::-1], named[1][::-1], prepared=True))
        else:
            missing['name'] = 'names of its own'
        terms = [literal(c[3], v) for c, v in zip(columns, values)]
        try:
            if None in terms or len(terms) != len(values):
                raise ValueError
            found.append(Writing('literal', cql.filled(self.step.cql, terms)))
        except (ValueError, IndexError):
            missing['literal'] = 'values that no literal is'
        return found, missing


def reversed_writing(writing, clusterings):
    other = cql.mirrored(writing.cql, clusterings)
    if other is None:
        return None
    return Writing(writing.name, other, writing.values, writing.names, writing.prepared)


class Outcome:
    """How a form's answer stands to that of the statement as it is in the file: nothing, or the deviation in a word."""

    def __init__(self, base, unordered):
        self.base, self.unordered = base, unordered

    def of(self, answer, most, size, same_version, mirror=False, ties=False):
        base = self.base
        if answer['kind'] == 'error' or base['kind'] == 'error':
            ours, theirs = answer.get('code', 'rows'), base.get('code', 'rows')
            return None if ours == theirs else str(ours)
        if answer['kind'] != base['kind']:
            return answer['kind']
        if size is not None and most > size:
            return 'more rows than the page'
        mine, wanted = answer['rows'], base['rows'][::-1] if mirror else base['rows']
        if self.unordered or ties:
            mine, wanted = sorted(mine, key=str), sorted(wanted, key=str)
        if mine != wanted:
            return 'rows'
        if same_version and answer['columns'] != base['columns']:
            return 'columns'
        return None


class Share:
    """Which forms are asked: one in `of`, those always that are asked most; which, hangs on the statement and on `salt` alone."""

    def __init__(self, of, salt=''):
        self.of, self.salt = of, salt

    def has(self, *what):
        return self.of <= 1 or zlib.crc32(json.dumps([self.salt, *what]).encode()) % self.of == 0


class Tables:
    """The clustering columns of tables, as the server under test has them in its schema."""

    def __init__(self):
        self.known = {}

    def clusterings(self, connection, table):
        if table not in self.known:
            keyspace, name = table
            answer = connection.query("SELECT column_name, position, clustering_order FROM system_schema.columns "
                                      f"WHERE keyspace_name = '{keyspace}' AND table_name = '{name}'")
            found = [(row[1], row[0].decode(), row[2] == b'desc') for row in answer.get('rows', []) if row[2] != b'none']
            self.known[table] = [(name, down) for _, name, down in sorted(found)]
        return self.known[table]


class Reads:
    """Asks the SELECTs of files in all their forms."""

    def __init__(self, report, encoder, share, servers=None):
        self.report, self.encoder, self.share = report, encoder, share
        self.servers, self.tables = servers, Tables()

    def ask(self, server, path, step, recorded=None):
        """All forms of a SELECT: `recorded` are Cassandra's answers to it."""
        if 'prepare' in step.directives and 'bind' not in step.directives or step.get('ignore') == 'rows':
            self.report.leave_out('only prepared' if 'prepare' in step.directives else 'rows that change by themselves')
            return
        step = copy.copy(step)
        for number, (values, names) in enumerate(binds(step)):
            asked = Asked(server, step, number, values, names)
            self._one(path, asked, recorded)

    def _one(self, path, asked, recorded):
        base, _ = asked.whole(asked.base_writing, asked.version, None)
        outcome = Outcome(base, 'unordered' in asked.step.directives)
        title = (path, asked)
        self._against_recorded(title, outcome, asked, recorded)
        writings, missing = asked.writings(self.encoder)
        for name, reason in missing.items():
            self.report.not_written(title, name, reason)
        for writing in writings:
            for version in VERSIONS:
                for size in SIZES if base['kind'] == 'rows' else SIZES_OF_ERRORS:
                    self._form(title, outcome, asked, writing, version, size)
        if base['kind'] == 'rows':
            self._mirrored(title, outcome, asked, writings)
            if self.servers:
                self._through_others(title, outcome, asked, writings)

    def _against_recorded(self, title, outcome, asked, recorded):
        """The statement without pages against what Cassandra answered, in pages too."""
        if recorded is None:
            return
        answers = [a for a in recorded if a['kind'] != 'prepared']
        if 'page' in asked.step.directives:
            sizes = len(words(asked.step.get('page')))
            answers = answers[asked.number * sizes:(asked.number + 1) * sizes]
        else:
            answers = answers[asked.number:asked.number + 1]
        for answer in answers:
            if answer['kind'] == 'pages':
                rows = [row for page in answer['pages'] for row in page]
                deviation = outcome.of(dict(answer, kind='rows', rows=rows), 0, None, True)
                self.report.count(title, f"recorded {answer['size']}", deviation, asked, outcome.base, dict(kind='rows', rows=rows))

    def _form(self, title, outcome, asked, writing, version, size, mirror=False, ties=False):
        name = form_name(writing.name, version, mirror, size)
        plain = writing.name in ('literal', 'position') and version == asked.version and not mirror
        if not plain and not self.share.has(asked.step.title(), asked.number, name):
            return
        if not asked.can_be_of(version):
            self.report.leave_out('options or values that an older version has not')
            return
        answer, most = asked.whole(writing, version, size)
        deviation = outcome.of(answer, most, size, version == asked.version, mirror, ties)
        self.report.count(title, name, deviation, asked, outcome.base, answer)

    def _mirrored(self, title, outcome, asked, writings):
        found = cql.tokens(asked.step.cql)
        if cql.outer(found, 'FROM') is None:
            return
        keyspace = (asked.server.keyspace or '').strip('"')
        clusterings = self.tables.clusterings(asked.connection(), cql.table(asked.step.cql, asked.keyspace or keyspace))
        first = reversed_writing(writings[0], clusterings)
        if first is None:
            self.report.leave_out('no other order: limits, groups, no clustering or no partition')
            return
        # rows of several partitions that are equal in the order may come in any
        answer, most = asked.whole(first, asked.version, None)
        ties = ' IN ' in asked.step.cql.upper()
        deviation = outcome.of(answer, most, None, True, True, ties)
        self.report.count(title, 'mirrored', deviation, asked, outcome.base, answer)
        if answer['kind'] != 'rows':
            return
        for writing in writings:
            other = reversed_writing(writing, clusterings)
            for version in VERSIONS:
                for size in SIZES:
                    self._form(title, outcome, asked, other, version, size, True, ties)

    def _through_others(self, title, outcome, asked, writings):
        """Through each node of the ring, and each page through another."""
        for number, server in enumerate(self.servers):
            other = copy.copy(asked)
            other.server, other.level = server, LEVELS[number % len(LEVELS)]
            for writing in writings:
                for size in SIZES:
                    if self.share.has(asked.step.title(), 'through', number, writing.name, size):
                        self._through(title, outcome, other, writing, size, f'through {number}')
        for size in SIZES[1:]:
            self._through(title, outcome, asked, writings[0], size, 'each page through another', self.servers)

    def _through(self, title, outcome, asked, writing, size, how, servers=None):
        answer, most = asked.whole(writing, asked.version, size, servers)
        name = form_name(writing.name, asked.version, False, size)
        self.report.count(title, f'{name}, {how}', outcome.of(answer, most, size, True), asked, outcome.base, answer, name)
