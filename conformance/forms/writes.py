"""The modifications of a story in another form: afterwards all its SELECTs must answer as Cassandra did."""

import collections
import copy
import json
import re

import cql
import run
import wire
from corpus import BATCH_KINDS
from reads import Cannot, Writing, binds, prepared_writing
from values import literal

COUNTER = 'counter'
TOGETHER = 6  # statements of a batch
WRITTEN = re.compile(r'\b(?:writetime|maxwritetime|ttl)\s*\(', re.IGNORECASE)
TIMESTAMP = re.compile(r'\b(?:USING|AND)\s+TIMESTAMP\b', re.IGNORECASE)


def is_done(recorded):
    """Did Cassandra do a modification without an error?"""
    return all(a['kind'] in ('void', 'rows', 'prepared') for a in recorded)


def has_conditions(text):
    found = cql.tokens(text)
    return any(t.word == 'IF' for t in found)


def tables(step):
    """The names of tables that a modification, or each of a batch, is about, without their keyspaces."""
    names = set()
    for text in [s.cql for s in step.batch] if step.batch is not None else [step.cql]:
        found = cql.tokens(text)
        for i, t in enumerate(found[:-1]):
            if t.word in ('INTO', 'UPDATE', 'FROM'):
                last = i + 3 if i + 3 < len(found) and found[i + 2].text == '.' else i + 1
                names.add(found[last].text.strip('"').lower())
    return names


class Writes:
    """One way to write modifications. `run` answers as Server.run does, or None where there is nothing to compare."""

    name = ''
    deviates = False  # does Cassandra do something else than with the statement as it stands, sometimes?

    def __init__(self, report, encoder, running):
        self.report, self.encoder, self.running = report, encoder, running
        self.number, self.spoiled = 0, set()

    def begin(self, story):
        self.story, self.spoiled = story, set()

    def modify(self, server, story, at):
        step = story.steps[at]
        if not is_done(story.recorded[at]):
            return server.run(step)
        self.number += 1
        return self.write(self.coordinator(server), step, story.recorded[at])

    def coordinator(self, server):
        """Through each node in turn."""
        servers = self.running.servers
        return servers[self.number % len(servers)]

    def plain(self, server, step, reason):
        """As the file has it."""
        self.report.leave_out(f'{self.name}: {reason}')
        return server.run(step)

    def done(self, step, ours, recorded):
        """Compares what matters of the answers: that it was done, and what a condition said."""
        self.report.wrote(self.story.path, step, self.name)
        theirs = [a for a in recorded if a['kind'] != 'prepared']
        pairs = [(self.said(a), self.said(b)) for a, b in zip(ours, theirs)]
        if len(ours) != len(theirs) or any(a != b for a, b in pairs):
            said = ' '.join(a.get('message', a['kind']) for a in ours)
            self.report.differ(self.story.path, step.line, self.name, step.title(), said, *(dict(rows=[r for a in s for r in a.get('rows', [])]) for s in (theirs, ours)))

    def said(self, answer):
        return answer['kind'], answer.get('rows')

    def settled(self, server):
        """Before something is read: whatever waits is written."""

    def hides(self, step):
        """Is a read one whose answer rightly differs?"""
        return False


def options(server, step, **more):
    opts = server._options(step, **more)
    opts.pop('skip_metadata', None)
    return wire.Options(**opts)


class Bound(Writes):
    """Prepared with markers of a style; or with values, unprepared."""

    def __init__(self, name, style, prepared, *args):
        super().__init__(*args)
        self.name, self.style, self.prepared = name, style, prepared

    def write(self, server, step, recorded):
        if step.batch is not None:
            return self.plain(server, step, 'a BATCH message')
        connection, answers = server.connection(step.sticky['protocol']), []
        try:
            writings = [self._writing(connection, step, values, names) for values, names in binds(step)]
        except Cannot as e:
            return self.plain(server, step, str(e))
        for writing in writings:
            opts = options(server, step, values=writing.values, names=writing.names)
            if self.prepared:
                prepared = connection.prepare(writing.cql, step.get('keyspace') if step.sticky['protocol'] >= 5 else None)
                answer = connection.execute(prepared, opts) if prepared['kind'] == 'prepared' else prepared
            else:
                answer = connection.query(writing.cql, opts)
            answers.append(run.plain(answer, step))
        self.done(step, answers, recorded)
        return None

    def _writing(self, connection, step, values, names):
        if values is None:
            return prepared_writing(connection, self.encoder, step.cql, self.style)
        if names is not None:
            raise Cannot('names of its own')
        if self.style != 'name':
            return Writing('bound', step.cql, values)
        named = cql.named_markers(step.cql)
        if named is None or len(named[1]) != len(values):
            raise Cannot('names of its own')
        return Writing('name', named[0], values[::-1], named[1][::-1])


class WrittenOut(Writes):
    """What a file binds, written out."""

    name = 'written out'

    def write(self, server, step, recorded):
        if step.batch is not None or step.get('values') is None and 'bind' not in step.directives:
            return self.plain(server, step, 'nothing bound')
        connection, answers = server.connection(step.sticky['protocol']), []
        prepared = connection.prepare(step.cql, step.get('keyspace') if step.sticky['protocol'] >= 5 else None)
        columns = prepared.get('bind', {}).get('columns', [])
        texts = []
        for values, _ in binds(step):
            terms = [literal(c[3], v) for c, v in zip(columns, values)]
            if None in terms or len(values) != len(columns):
                return self.plain(server, step, 'values that no literal is')
            texts.append(cql.filled(step.cql, terms))
        for text in texts:
            answers.append(run.plain(connection.query(text, options(server, step)), step))
        self.done(step, answers, recorded)
        return None


class Batched(Writes):
    """Alone in a batch: a message, its statement written out or prepared; or a statement of CQL."""

    def __init__(self, name, kind, prepared, *args):
        super().__init__(*args)
        self.name, self.kind, self.prepared = name, kind, prepared

    def write(self, server, step, recorded):
        if step.batch is not None or cql.verb(step.cql) == 'BEGIN':
            return self.plain(server, step, 'a batch')
        connection, answers = server.connection(step.sticky['protocol']), []
        for values, names in binds(step):
            if names is not None:
                return self.plain(server, step, 'names of its own')
            what = step.cql
            if values is None and self.prepared:
                try:
                    writing = prepared_writing(connection, self.encoder, step.cql, 'position')
                    what, values = writing.cql, writing.values
                except Cannot as e:
                    return self.plain(server, step, str(e))
            if self.prepared:
                what = connection.prepare(what)
            answer = connection.batch(BATCH_KINDS[self.kind], [(what, values or [])], options(server, step))
            if answer['kind'] == 'error' and COUNTER in answer['message'].lower():
                answer = connection.batch(BATCH_KINDS[COUNTER], [(what, values or [])], options(server, step))
            if answer['kind'] == 'error' and not answers:
                return self.plain(server, step, f"{answer['code']:04x}")
            answers.append(run.plain(answer, step))
        self.done(step, answers, recorded)
        return None

    def said(self, answer):
        # a batch tells the key beside whether it was done
        return answer['kind'], answer['rows'][0][0] if answer.get('rows') else None


class Text(Batched):
    """Alone in a batch of CQL."""

    def write(self, server, step, recorded):
        if step.batch is not None or cql.verb(step.cql) == 'BEGIN' or binds(step) != [(None, None)]:
            return self.plain(server, step, 'a batch, or bound')
        connection = server.connection(step.sticky['protocol'])
        for kind in (self.kind.upper(), COUNTER.upper()):
            answer = connection.query(f'BEGIN {kind} BATCH {step.cql}; APPLY BATCH', options(server, step)) if kind != 'LOGGED' else \
                connection.query(f'BEGIN BATCH {step.cql}; APPLY BATCH', options(server, step))
            if answer['kind'] != 'error' or COUNTER not in answer['message'].lower():
                break
        if answer['kind'] == 'error':
            return self.plain(server, step, f"{answer['code']:04x}")
        self.done(step, [run.plain(answer, step)], recorded)
        return None


def schema(connection, table):
    """The columns of a table's key, and its regular ones."""
    answer = connection.query("SELECT column_name, kind FROM system_schema.columns "
                              f"WHERE keyspace_name = '{table[0]}' AND table_name = '{table[1]}'")
    columns = collections.defaultdict(list)
    for name, kind in answer.get('rows', []):
        columns[kind].append(name.decode())
    return columns[b'partition_key'] + columns[b'clustering'], columns[b'regular']


def stored(column):
    """A column's name as it is stored, of what a statement calls it."""
    return column[1:-1].replace('""', '"') if column.startswith('"') else column.lower()


class Json(Writes):
    """INSERT of whole values as JSON."""

    name, deviates = 'json', True

    def write(self, server, step, recorded):
        inserted = cql.inserted(step.cql) if step.batch is None and binds(step) == [(None, None)] else None
        if inserted is None:
            return self.plain(server, step, 'no INSERT of literals')
        connection = server.connection(step.sticky['protocol'])
        head, columns, terms, tail = inserted
        keys, _ = schema(connection, cql.table(step.cql, (server.keyspace or '').strip('"')))
        if not set(keys) <= set(map(stored, columns)):
            return self.plain(server, step, 'statics alone')  # JSON has all columns, and a clustering cannot be unset
        marked, literals = cql.marked(f"{head} ({', '.join(columns)}) VALUES ({', '.join(terms)})", 'position')
        if len(literals) != len(columns) or cql.inserted(marked)[2] != ['?'] * len(columns):
            return self.plain(server, step, 'not whole values')
        prepared = connection.prepare(marked)
        if prepared['kind'] != 'prepared':
            return self.plain(server, step, f"{prepared['code']:04x}")
        kinds = [c[3] for c in prepared['bind']['columns']]
        values = [self.encoder.json(connection, kind, term) for kind, term in zip(kinds, literals)]
        # JSON has neither 1.50 nor NaN
        if any(v is None or 'decimal' in k or 'null' in v and t.upper() != 'NULL' for k, v, t in zip(kinds, values, literals)):
            return self.plain(server, step, 'no JSON of a value')
        document = '{' + ', '.join(f'{json.dumps(self._key(c))}: {v}' for c, v in zip(columns, values)) + '}'
        # what is not named stays as it is, as it does by an INSERT of values
        text = f"{head} JSON '{document.replace(chr(39), chr(39) * 2)}' DEFAULT UNSET {tail}".rstrip()
        self.done(step, [run.plain(connection.query(text, options(server, step)), step)], recorded)
        return None

    @staticmethod
    def _key(column):
        return column if column.startswith('"') else column.lower()


class Conditional(Writes):
    """With a condition that holds, where it does; done as it stands where it does not. What it answers must be what a read before says."""

    deviates = True

    def __init__(self, name, *args):
        super().__init__(*args)
        self.name, self.keys = name, {}

    def modify(self, server, story, at):
        step = story.steps[at]
        if TIMESTAMP.search(step.title()) or len(binds(step)) > 1 and step.get('timestamp'):
            self.spoiled |= tables(step)  # times of its own, or one time of several executions
        step = self.untimed(step)
        if not is_done(story.recorded[at]):
            return server.run(step)
        self.number += 1
        return self.write(self.coordinator(server), step, story.recorded[at])

    @staticmethod
    def untimed(step):
        """Without a time of the client's: that of a ballot would be later."""
        step = copy.copy(step)
        step.directives = {k: v for k, v in step.directives.items() if k != 'timestamp'}
        if step.batch is not None:
            step.batch = [Conditional.untimed(s) for s in step.batch]
        return step

    def hides(self, step):
        return bool(WRITTEN.search(step.title())) or bool(self.spoiled & tables(step))

    def write(self, server, step, recorded):
        verb = '' if step.batch is not None else cql.verb(step.cql)
        if verb not in ('INSERT', 'UPDATE', 'DELETE') or binds(step) != [(None, None)]:
            return self.plain(server, step, 'a batch, or bound')
        if has_conditions(step.cql):
            return self.plain(server, step, 'conditions of its own')
        connection = server.connection(step.sticky['protocol'])
        found = self._condition(server, connection, step, verb)
        if found is None:
            return self.plain(server, step, 'no row that can be asked for')
        text, values, holds = found
        answer = connection.query(text, options(server, step, values=values or None))
        if answer['kind'] != 'rows':
            return self.plain(server, step, f"{answer.get('code', 0):04x}")
        applied = answer['rows'][0][0] == b'\x01'
        self.report.wrote(self.story.path, step, self.name)
        if holds is not None and applied != holds:
            self.report.differ(self.story.path, step.line, self.name, text, f'[applied] {applied}, and before there was ' + ('a row' if holds != (verb == 'INSERT') else 'none'))
        return None if applied else self.untold(server, step)

    @staticmethod
    def untold(server, step):
        server.run(step)

    def _condition(self, server, connection, step, verb):
        where = self._where(server, connection, step, verb)
        if where is None:
            return None
        table, keyed, columns = where
        row = connection.query(f'SELECT {", ".join(columns) or "*"} FROM {table} WHERE {keyed}', options(server, self.read_of(server, step)))
        if row['kind'] != 'rows' or len(row['rows']) > 1:
            return None
        exists = bool(row['rows'])
        if verb == 'INSERT':
            found = cql.tokens(step.cql)
            at = cql.outer(found, 'USING') or len(found)
            return ' '.join(p for p in (cql.text(found[:at]), 'IF NOT EXISTS', cql.text(found[at:])) if p), [], not exists
        if self.name == 'if a value' and columns and exists:
            value = row['rows'][0][0]
            return f'{step.cql} IF {columns[0]} = ?', [value], True
        return f'{step.cql} IF EXISTS', [], exists

    @staticmethod
    def read_of(server, step):
        return Conditional.untimed(step)

    def _where(self, server, connection, step, verb):
        """The table, what names a whole row of it, and its first regular column."""
        keyspace = (server.keyspace or '').strip('"')
        table = cql.table(step.cql, keyspace)
        keys, regular = schema(connection, table)
        if not keys:
            return None
        name = '.'.join(map(cql.quoted, table))
        if verb == 'INSERT':
            inserted = cql.inserted(step.cql)
            if inserted is None:
                return None
            terms = {stored(c): t for c, t in zip(inserted[1], inserted[2])}
            if not set(keys) <= set(terms) or any('(' in terms[k] for k in keys):
                return None
            return name, ' AND '.join(f'{cql.quoted(k)} = {terms[k]}' for k in keys), []
        found = cql.tokens(step.cql)
        where = cql.outer(found, 'WHERE')
        return name, cql.text(found[where + 1:]), [cql.quoted(r) for r in regular[:1]]


class Together(Writes):
    """Several at once in a batch, each with its own time."""

    name = 'together'

    def __init__(self, kind, *args):
        super().__init__(*args)
        self.name, self.kind, self.waiting, self.like = f'together, {kind}', kind, [], None

    def begin(self, story):
        super().begin(story)
        self.waiting = []

    def modify(self, server, story, at):
        step = story.steps[at]
        text = self._timed(step) if is_done(story.recorded[at]) else None
        like = (step.sticky.get('now'), step.sticky['protocol'], step.get('consistency'), server.keyspace)
        if text is None or self.like != like or len(self.waiting) >= TOGETHER:
            self.settled(server)
        if text is None:
            return server.run(step) if not is_done(story.recorded[at]) else self.plain(server, step, 'no time of its own, or reads before it writes')
        self.like, self.number = like, self.number + 1
        self.waiting.append((step, text))
        return None

    def settled(self, server):
        if not self.waiting:
            return
        steps, self.waiting = self.waiting, []
        first = copy.copy(steps[0][0])
        first.directives = {k: v for k, v in first.directives.items() if k != 'timestamp'}
        server = self.coordinator(server)
        connection = server.connection(first.sticky['protocol'])
        answer = connection.batch(BATCH_KINDS[self.kind], [(text, []) for _, text in steps], options(server, first))
        if answer['kind'] == 'void':
            for step, _ in steps:
                self.report.wrote(self.story.path, step, self.name)
            return
        for step, _ in steps:  # one of them may be of a kind that no such batch has: counters, conditions
            self.plain(server, step, f"{answer.get('code', 0):04x}")

    @staticmethod
    def _timed(step):
        """The statement with the time that its request has; None if it has none, or reads before it writes."""
        if step.batch is not None or binds(step) != [(None, None)] or cql.verb(step.cql) == 'BEGIN' or has_conditions(step.cql):
            return None
        found, time = cql.tokens(step.cql), step.get('timestamp')
        verb = found[0].word
        if any(t.text == '[' and t.kind == 'op' and cql.is_named(found, i) or t.text == '-' and t.kind == 'op' for i, t in enumerate(found)):
            return None
        if TIMESTAMP.search(step.cql):
            return step.cql
        if time is None:
            return None
        using = cql.outer(found, 'USING')
        end = {'INSERT': len(found), 'UPDATE': cql.outer(found, 'SET'), 'DELETE': cql.outer(found, 'WHERE')}[verb]
        word = 'USING' if using is None else 'AND'
        return ' '.join(p for p in (cql.text(found[:end]), f'{word} TIMESTAMP {time}', cql.text(found[end:])) if p)


class AsTheyStand(Writes):
    """As the file has them, through each node in turn."""

    name = 'as they stand'

    def write(self, server, step, recorded):
        answers = server.run(step)
        self.report.wrote(self.story.path, step, self.name)
        return answers


def all_forms(*args):
    return [AsTheyStand(*args), Bound('by position', 'position', True, *args), Bound('by name', 'name', True, *args), Bound('with values', 'position', False, *args),
            Bound('inside', 'inside', True, *args), WrittenOut(*args), Batched('unlogged', 'unlogged', False, *args),
            Batched('logged, prepared', 'logged', True, *args), Text('unlogged text', 'unlogged', False, *args), Text('logged text', 'logged', False, *args),
            Json(*args), Conditional('if exists', *args), Conditional('if a value', *args), Together('unlogged', *args), Together('logged', *args)]

