"""Faults planted between the driver and the nodes: what is asked or answered is changed as a faulty node would. Each must be found.

A plant is a class with what it changes: `asks` (the statement and its options before they are sent), `answers` (what comes back), or `sends`
(the whole exchange)."""

import contextlib
import copy
import re

import nodes
import wire

LIMIT = re.compile(r'(?<!PARTITION)\s+LIMIT\s+\d+', re.IGNORECASE)
PER_PARTITION = re.compile(r'\s+PER\s+PARTITION\s+LIMIT\s+\d+', re.IGNORECASE)


class Request:
    """A QUERY, an EXECUTE or a BATCH: its text, and whether it was prepared."""

    def __init__(self, connection, text, options, prepared=None, batch=None):
        self.connection, self.text, self.options, self.prepared, self.batch = connection, text, options, prepared, batch


class Plant:
    """Changes nothing yet."""

    part, files, what = 'reads', ('select', 'aggregates', 'gen_paging'), ''
    place, ring = 'memory', 0

    def prepares(self, text):
        return text

    def asks(self, request):
        return request

    def answers(self, request, answer):
        return answer

    def sends(self, request, send):
        return self.answers(request, send(self.asks(request)))

    def flushed(self):
        pass


PLANTED = []


def planted(plant):
    PLANTED.append(plant)
    return plant


def has_more(answer):
    return answer['kind'] == 'rows' and answer['metadata'].get('paging_state') is not None and bool(answer['rows'])


@planted
class GroupDropped(Plant):
    what = 'a page that drops a group'

    def answers(self, request, answer):
        if 'GROUP BY' in request.text and has_more(answer):
            answer['rows'].pop()
        return answer


@planted
class LimitRestarted(Plant):
    what = 'a limit that is restarted on each page: the rows of all pages are not limited'

    def asks(self, request):
        if request.prepared is None and request.options.page_size:
            request.text = LIMIT.sub('', request.text)
        return request


@planted
class PartitionLimitForgotten(Plant):
    what = 'a limit of a partition that the second page does not know'

    def asks(self, request):
        if request.prepared is None and request.options.paging_state:
            request.text = PER_PARTITION.sub('', request.text)
        return request


@planted
class StaticRowLost(Plant):
    what = 'a row of statics alone that is lost at the end of a page'

    def answers(self, request, answer):
        if has_more(answer) and request.text.startswith('SELECT *') and None in answer['rows'][-1]:
            answer['rows'].pop()
        return answer


@planted
class RowAtBothPages(Plant):
    what = 'the last row of a page that comes first on the next, backwards'
    last = None

    def answers(self, request, answer):
        if 'DESC' in request.text and answer['kind'] == 'rows':
            if request.options.paging_state and self.last:
                answer['rows'].insert(0, self.last)
            self.last = answer['rows'][-1] if has_more(answer) else None
        return answer


@planted
class NamesIgnored(Plant):
    what = 'values by name that are taken in their order'
    files = ('bind', 'select', 'aggregates')

    def asks(self, request):
        if request.options.names is not None:
            request.options.names = None
        return request


@planted
class FirstValuesKept(Plant):
    what = 'a prepared statement that keeps the values of its first execution'
    files = ('select', 'gen_paging')

    def __init__(self):
        self.first = {}

    def asks(self, request):
        if request.prepared is not None and request.options.values:
            request.options.values = self.first.setdefault(request.prepared['id'], request.options.values)
        return request


@planted
class OldVersionStops(Plant):
    what = 'a second page that versions before 5 are not told of'

    def answers(self, request, answer):
        if request.connection.version < 5 and request.options.paging_state and has_more(answer):
            del answer['metadata']['paging_state']
        return answer


@planted
class ListBoundAsOne(Plant):
    what = 'a list of values that is bound as one and has its last value lost'
    files = ('select', 'gen_restrictions')

    def answers(self, request, answer):
        if request.prepared is not None and ' IN ?' in request.text and answer['kind'] == 'rows':
            answer['rows'] = answer['rows'][:-1]
        return answer


@planted
class FlushLosesRow(Plant):
    what = 'the row that is last in an SSTable is not read'
    place, is_flushed = 'one', False

    def flushed(self):
        self.is_flushed = True

    def answers(self, request, answer):
        if self.is_flushed and 'system' not in request.text and answer['kind'] == 'rows' and not has_more(answer) and len(answer['rows']) > 2:
            answer['rows'].pop()
        return answer


@planted
class NoReplicaCoordinates(Plant):
    what = 'a coordinator that is no replica, and takes itself for one'
    ring, files = 1, ('select',)

    def answers(self, request, answer):
        last = request.connection.socket.getpeername()[0].rpartition('.')[2]
        if int(last) % 3 == 0 and answer['kind'] == 'rows' and 'system' not in request.text and answer['rows']:
            answer['rows'].pop(0)
        return answer


@planted
class BatchWithoutTime(Plant):
    part, files = 'writes', ('dml', 'ttl')
    what = "a batch that does not know its request's time"

    def asks(self, request):
        if request.batch:
            request.options.timestamp = None
        return request


@planted
class LastOfABatch(Plant):
    part, files = 'writes', ('dml', 'collections')
    what = 'a batch whose last statement is lost'

    def asks(self, request):
        if request.batch and len(request.batch) > 1:
            request.batch = request.batch[:-1]
        return request


@planted
class UnsetIsNull(Plant):
    part, files = 'writes', ('dml', 'collections', 'udt', 'gen_tables')
    what = 'JSON that nulls what it does not name'

    def asks(self, request):
        request.text = request.text.replace(' DEFAULT UNSET', ' DEFAULT NULL') if ' JSON ' in request.text else request.text
        return request


@planted
class AlwaysApplied(Plant):
    part, files = 'writes', ('dml', 'select')
    what = 'a condition that is said to hold when it does not'

    def answers(self, request, answer):
        if answer['kind'] == 'rows' and ' IF EXISTS' in request.text or ' IF NOT EXISTS' in request.text and answer['kind'] == 'rows':
            answer['rows'][0][0] = b'\x01'
        return answer


@planted
class BoundTtlLost(Plant):
    part, files = 'writes', ('ttl', 'gen_merge')
    what = 'a time to live that is bound and not heeded'

    def asks(self, request):
        if request.prepared is not None and request.options.values:
            values = [None if column[2] == '[ttl]' else v for column, v in zip(request.prepared['bind']['columns'], request.options.values)]
            request.options.values = values if request.options.names is None else request.options.values
        return request


class OfFunctions(Plant):
    part = 'functions'

    def __init__(self):
        self.number = 0

    def is_fourth(self, request, word):
        self.number += request.text.startswith('INSERT') and word in request.text
        return request.text.startswith('INSERT') and word in request.text and self.number % 4 == 0


@planted
class KeyBoundTwice(OfFunctions):
    what = 'a key that is bound twice: at two places'

    def sends(self, request, send):
        if self.is_fourth(request, 'uuid()'):
            send(copy.copy(request))
        return send(request)


@planted
class AcknowledgedOnly(OfFunctions):
    what = 'an acknowledgement of a row that is nowhere'

    def sends(self, request, send):
        if self.is_fourth(request, 'IF NOT EXISTS'):
            return dict(kind='rows', metadata={}, rows=[[b'\x01']])
        return send(request)


@planted
class OnceForAll(OfFunctions):
    what = 'a function that is run when a statement is prepared, not when it is executed'

    def prepares(self, text):
        return text.replace('uuid()', '6ab09bec-e68e-48d9-a5f8-97e6fb4c9b47') if text.startswith(('INSERT', 'UPDATE')) else text


@planted
class ReplicasDiffer(OfFunctions):
    what = 'a value that is another one on each replica'
    ring = 3

    def answers(self, request, answer):
        last = request.connection.socket.getpeername()[0].rpartition('.')[2]
        if int(last) % 3 == 0 and answer['kind'] == 'rows' and 'cf_impure' in request.text and answer['rows'] and request.text.startswith('SELECT *'):
            answer['rows'] = [[cell[:-1] + b'\x00' if cell and len(cell) == 16 else cell for cell in row] for row in answer['rows']]
        return answer


@planted
class ElsewhereThanItsKey(OfFunctions):
    what = 'a row that is where another key belongs: seen in a scan, not found by its key'

    def answers(self, request, answer):
        if answer['kind'] == 'rows' and 'cf_impure' in request.text and ' WHERE ' in request.text:
            self.number += 1
            answer['rows'] = answer['rows'] if self.number % 50 else []
        return answer


def name(plant):
    """`group_dropped` of GroupDropped."""
    return re.sub(r'(?<!^)(?=[A-Z])', '_', plant.__name__).lower()


@contextlib.contextmanager
def between(plant):
    """Has a plant between all connections and their nodes."""
    kept = {name: getattr(wire.Connection, name) for name in ('query', 'execute', 'batch', 'prepare')}
    nodetool = nodes.Node.nodetool
    texts = {}

    def query(self, cql, options=None):
        request = Request(self, cql, copy.copy(options or wire.Options()))
        return plant.sends(request, lambda r: kept['query'](self, r.text, r.options))

    def prepare(self, cql, keyspace=None):
        answer = kept['prepare'](self, plant.prepares(cql), keyspace)
        if answer['kind'] == 'prepared':
            texts[answer['id']] = cql
        return answer

    def execute(self, prepared, options):
        request = Request(self, texts.get(prepared['id'], ''), copy.copy(options), prepared=prepared)
        return plant.sends(request, lambda r: kept['execute'](self, r.prepared, r.options))

    def batch(self, kind, statements, options=None):
        first = statements[0][0]
        text = texts.get(first['id'], '') if isinstance(first, dict) else first
        request = Request(self, text, copy.copy(options or wire.Options()), batch=statements)
        return plant.sends(request, lambda r: kept['batch'](self, kind, r.batch, r.options))

    def told(self, *words):
        answer = nodetool(self, *words)
        if words[0] == 'flush':
            plant.flushed()
        return answer

    for word, function in dict(query=query, execute=execute, batch=batch, prepare=prepare).items():
        setattr(wire.Connection, word, function)
    nodes.Node.nodetool = told
    try:
        yield
    finally:
        for word, function in kept.items():
            setattr(wire.Connection, word, function)
        nodes.Node.nodetool = nodetool
