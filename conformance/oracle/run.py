"""Runs corpus steps on one server and turns each answer into plain JSON that two servers can be compared by."""

import copy
import re
import time

import wire
from corpus import BATCH_KINDS, encode_value, words

SETTLE_SECONDS = 20
EVENT_SECONDS = 2.0
MAX_PAGES = 2000
SELECTS = re.compile(r'\s*SELECT\b', re.IGNORECASE)
ONE_REPLICA = re.compile(r"('replication_factor'\s*:\s*'?)1(?=\D)", re.IGNORECASE)


class Server:
    """One server under test: a connection per protocol version, one more for events."""

    level = 'ONE'
    wanted = None  # the event that the other server sent for the statement

    def __init__(self, host, port=9042, login=None):
        self.login = dict(zip(('user', 'password'), login.split(':', 1))) if login else {}
        self.host, self.port, self.connections, self.listener = host, port, {}, None
        self.keyspace = None

    def connection(self, version):
        found = self.connections.get(version)
        if found is None:
            found = self.connections[version] = wire.Connection(self.host, self.port, version, **self.login)
            if self.keyspace:
                found.query(f'USE {self.keyspace}')
        return found

    def close(self):
        for c in list(self.connections.values()) + ([self.listener] if self.listener else []):
            c.close()
        self.connections, self.listener, self.keyspace = {}, None, None

    def clean(self):
        """Forget the connections, drop what corpus files leave behind: keyspaces whose name begins with cf_ (any case)."""
        self.close()
        c = self.connection(4)
        answer = c.query('SELECT keyspace_name FROM system_schema.keyspaces')
        for row in answer.get('rows', []):
            name = row[0].decode()
            if name.lower().startswith('cf_'):
                dropped = c.query(f'DROP KEYSPACE "{name}"')
                if dropped['kind'] == 'error':
                    raise RuntimeError(f'cannot drop {name}: {dropped}')
        self.close()

    def listen(self):
        if self.listener is None:
            self.listener = wire.Connection(self.host, self.port, 5, **self.login)
            self.listener.register('SCHEMA_CHANGE')

    def run(self, step):
        """All answers to a step, as a list of JSON objects."""
        if step.sticky.get('events'):
            self.listen()
        version = step.sticky['protocol']
        try:
            answers = self._run(self.connection(version), step)
        except (wire.Closed, OSError) as e:
            self.close()
            answers = [dict(kind='closed', message=str(e))]
        if step.sticky.get('events') and answers[-1]['kind'] == 'schema_change':
            answers.append(dict(kind='event', event=self.event()))
        for a in answers:
            if a['kind'] == 'set_keyspace':
                self.keyspace = '"' + a['keyspace'].replace('"', '""') + '"'
                for v in [v for v in self.connections if v != version]:
                    self.connections.pop(v).close()
        return answers

    def event(self):
        """The event that follows a change of the schema."""
        return self.listener.wait_event(EVENT_SECONDS)

    def _options(self, step, **more):
        opts = dict(consistency=step.get('consistency', self.level), serial=step.get('serial'), now=step.sticky.get('now'),
                    keyspace=step.get('keyspace'), **more)
        if step.get('timestamp'):
            opts['timestamp'] = int(step.get('timestamp'))
        if step.get('skip_metadata') is not None:
            opts['skip_metadata'] = True
        return opts

    def _run(self, c, step):
        if step.batch is not None:
            return [plain(self._batch(c, step))]
        if 'prepare' in step.directives or 'bind' in step.directives:
            return self._prepared(c, step)
        if 'page' in step.directives:
            sizes = [int(n) for n in words(step.get('page'))]
            return [self._pages(step, n, lambda o: c.query(step.cql, o)) for n in sizes]
        opts = self._options(step)
        if 'values' in step.directives:
            opts['values'] = [encode_value(w) for w in words(step.get('values'))]
        if 'names' in step.directives:
            pairs = [w.partition('=')[::2] for w in words(step.get('names'))]
            opts['names'] = [k for k, _ in pairs]
            opts['values'] = [encode_value(v) for _, v in pairs]
        answer = c.query(step.cql, wire.Options(**opts))
        if 'settle' in step.directives:
            end = time.monotonic() + SETTLE_SECONDS
            while (answer['kind'] == 'error' or answer.get('rows') == []) and time.monotonic() < end:
                time.sleep(0.2)
                answer = c.query(step.cql, wire.Options(**opts))
        return [plain(answer, step)]

    def _prepared(self, c, step):
        prepared = c.prepare(step.cql, step.get('keyspace') if step.sticky['protocol'] >= 5 else None)
        answers = [plain(prepared)]
        if prepared['kind'] != 'prepared':
            return answers
        for line in step.directives.get('bind', []):
            values = [encode_value(w) for w in words(line)]
            if 'page' in step.directives:
                for n in words(step.get('page')):
                    answers.append(self._pages(step, int(n), lambda o: c.execute(prepared, o), values=values))
            else:
                answers.append(plain(c.execute(prepared, wire.Options(**self._options(step, values=values))), step))
        return answers

    def _batch(self, c, step):
        statements = []
        for s in step.batch:
            what, values = s.cql, []
            if 'bind' in s.directives:
                what = c.prepare(s.cql)
                if what['kind'] != 'prepared':
                    return what
                values = [encode_value(w) for w in words(s.get('bind'))]
            elif 'values' in s.directives:
                values = [encode_value(w) for w in words(s.get('values'))]
            statements.append((what, values))
        return c.batch(BATCH_KINDS[step.get('kind')], statements, wire.Options(**self._options(step)))

    def _pages(self, step, size, ask, **more):
        """All pages as one answer: the rows of each page apart."""
        pages, states, state, first = [], [], None, None
        for _ in range(MAX_PAGES):
            answer = ask(wire.Options(**self._options(step, page_size=size, paging_state=state, **more)))
            if answer['kind'] != 'rows':
                return plain(answer, step)
            page = plain(answer, step)
            first = first or page
            pages.append(page['rows'])
            state = answer['metadata'].get('paging_state')
            if state is None:
                break
            states.append(state.hex())
        first = dict(first)
        first.update(kind='pages', size=size, pages=pages)
        if step.sticky.get('states'):
            first['states'] = states
        del first['rows']
        first.pop('more', None)
        return first


class Replicated(Server):
    """A server in a ring: what files keep once is kept so many times, and all replicas are asked where a file does not say how many."""

    level = 'ALL'
    reads = None  # at this level, if at another
    replicas = 1

    def __init__(self, *args):
        super().__init__(*args)
        self.heard = []

    def run(self, step):
        if step.cql:
            step = copy.copy(step)
            if self.reads and SELECTS.match(step.cql):
                step.directives = {'consistency': [self.reads], **step.directives}
            step.cql = ONE_REPLICA.sub(lambda once: f'{once[1]}{self.replicas}', step.cql)
        answers = super().run(step)
        if any(answer['kind'] == 'schema_change' for answer in answers):
            self.agree()
        return answers

    def close(self):
        super().close()
        self.heard = []

    def event(self):
        """The event that follows a change of the schema: one that was heard before, and is not wanted now, does not count, for nodes of Cassandra
        say some of theirs twice, in a ring of their own too."""
        end, event = time.monotonic() + EVENT_SECONDS, None
        while (left := end - time.monotonic()) > 0:
            again, event = event, self.listener.wait_event(left)
            if event is None:
                return again
            if event == self.wanted or event not in self.heard:
                self.heard.append(event)
                return event
        return event

    def agree(self):
        """Waits until all nodes say the same version of the schema, as drivers do."""
        c, end = self.connection(4), time.monotonic() + wire.Connection.patience
        while time.monotonic() < end:
            asked = [c.query(f'SELECT schema_version FROM system.{table}') for table in ('local', 'peers_v2')]
            if len({row[0] for answer in asked for row in answer['rows']}) == 1:
                return
            time.sleep(0.02)
        raise RuntimeError('the nodes do not agree on a schema')


def plain(answer, step=None):
    """An answer without what may rightly differ, in JSON's types."""
    kind = answer['kind']
    out = dict(kind=kind)
    if kind == 'error':
        out.update(code=f"{answer['code']:04x}", message=answer['message'])
        if 'detail' in answer:
            out['detail'] = answer['detail']
            if isinstance(out['detail'][-2:][0], list):  # failures: the reasons, without the replicas' addresses
                out['detail'] = out['detail'][:3] + [[code for _, code in out['detail'][3]]] + out['detail'][4:]
    elif kind == 'set_keyspace':
        out['keyspace'] = answer['keyspace']
    elif kind == 'schema_change':
        out['change'] = answer['change']
    elif kind == 'prepared':
        out.update(id=answer['id'].hex(), metadata_id=answer['metadata_id'].hex(),
                   bind=metadata(answer['bind']), result=metadata(answer['result']))
    elif kind == 'rows':
        m = answer['metadata']
        out.update(metadata(m))
        if 'paging_state' in m:
            out['more'] = True
        ignored = set(words(step.get('ignore', ''))) if step else set()
        rows = answer['rows']
        if 'rows' in ignored:
            rows = []
        hidden = [i for i, col in enumerate(m.get('columns', [])) if col[2] in ignored]
        rows = [['*' if i in hidden else None if v is None else v.hex() for i, v in enumerate(row)] for row in rows]
        if step and 'unordered' in step.directives:
            rows.sort(key=str)
        out['rows'] = rows
    for name in ('warnings',):
        if answer.get(name):
            out[name] = answer[name]
    if 'trailing' in answer:
        out['trailing'] = answer['trailing'].hex()
    if answer.get('payload'):
        out['payload'] = {k: v and v.hex() for k, v in sorted(answer['payload'].items())}
    return out


def metadata(m):
    out = dict(columns=[f'{ks}.{table}.{name} {kind}' for ks, table, name, kind in m['columns']] if 'columns' in m
               else f"{m['count']} columns without metadata")
    if 'pk' in m:
        out['pk'] = m['pk']
    if 'new_id' in m:
        out['new_id'] = m['new_id'].hex()
    return out
