"""Functions that are not pure, wherever they may stand: each statement is bound once, so that there are as many rows as acknowledgements,
each found by its key, and alike on all replicas."""

import struct

import wire
from corpus import BATCH_KINDS
from places_of_functions import all_cases
from reads import SIZES

KEYSPACE = 'cf_impure'
DROP_SECONDS = 600
WAYS = ('literal', 'prepared', 'prepared with a value', 'unlogged', 'logged', 'prepared in a batch', 'batch of CQL', 'if', 'prepared if', 'batch with a condition')


class Wrong(Exception):
    """What does not hold of a case."""


class Told:
    """A case on the nodes of a layout."""

    def __init__(self, case, table, running, level):
        self.case, self.table, self.level = case, table, level
        self.connections = [server.connection(5) for server in running.servers]
        self.columns = []

    def ask(self, connection, text, **options):
        return self.good(connection.query(text, wire.Options(consistency=self.level, **options)), text)

    @staticmethod
    def good(answer, text):
        if answer['kind'] == 'error':
            raise Wrong(f"{text}: {answer['message']}")
        return answer

    def text(self, template, n):
        return template.format(t=f'{KEYSPACE}.{self.table}', n=n, third=n % 3)

    def write(self, count):
        """So many statements, each another way, each through another node."""
        for n in range(count):
            connection = self.connections[n % len(self.connections)]
            if self.case.first:
                self.ask(connection, self.text(self.case.first, n))
        self.number_written = count
        ways = [way for way in WAYS if self.is_possible(way)]
        for n in range(count):
            # neither every node nor every way always meets the same other
            self.one(ways[n // len(self.connections) % len(ways)], self.connections[n % len(self.connections)], n)

    def is_possible(self, way):
        conditional = self.case.is_insert() and self.case.conditions
        return conditional if way in ('if', 'prepared if', 'batch with a condition') else ' IF ' not in self.case.statement or way in (
            'literal', 'prepared', 'prepared with a value', 'unlogged', 'logged', 'batch of CQL')

    def one(self, way, connection, n):
        template, options = self.case.statement, wire.Options(consistency=self.level)
        if way in ('if', 'prepared if', 'batch with a condition'):
            template += ' IF NOT EXISTS'
        text = self.text(template, n)
        if way in ('literal', 'if'):
            answer = connection.query(text, options)
        elif way in ('prepared', 'prepared if'):
            answer = connection.execute(self.good(connection.prepare(text), text), options)
        elif way == 'prepared with a value':
            marked = template.format(t=f'{KEYSPACE}.{self.table}', n=':n', third=n % 3)
            prepared = self.good(connection.prepare(marked), marked)
            values = [struct.pack('>i', n)] * len(prepared['bind'].get('columns', []))
            answer = connection.execute(prepared, wire.Options(consistency=self.level, values=values))
        elif way in ('unlogged', 'logged'):
            answer = connection.batch(BATCH_KINDS[way], [(text, [])], options)
        elif way == 'prepared in a batch':
            answer = connection.batch(BATCH_KINDS['unlogged'], [(self.good(connection.prepare(text), text), [])], options)
        else:
            answer = connection.query(f'BEGIN BATCH {text}; APPLY BATCH', options)
        self.good(answer, f'{way}: {text}')
        if answer['kind'] == 'rows' and answer['rows'][0][0] != b'\x01':
            raise Wrong(f'{way}: {text}: not applied')

    def check(self):
        """Everything that must hold of what is there."""
        readers = self.readers()
        whole = self.rows(self.connections[0], None, self.level)
        wanted = self.number_written * (1 if self.case.first else self.case.rows)
        if len(whole) != wanted:
            raise Wrong(f'{len(whole)} rows after {self.number_written} acknowledgements, not {wanted}')
        self.check_values(whole)
        for where, connection in readers:
            for size in SIZES:
                got = self.rows(connection, size, 'ONE')
                if got != whole:
                    raise Wrong(f'other rows at ONE through {where}, pages of {size}: {len(got)} of {len(whole)}, {sum(r not in whole for r in got)} that are not there else')
        self.check_by_key(readers, whole)

    def readers(self):
        return [(str(i), connection) for i, connection in enumerate(self.connections)]

    def rows(self, connection, size, level):
        rows, state = [], None
        while True:
            text = f'SELECT * FROM {KEYSPACE}.{self.table}'
            answer = self.good(connection.query(text, wire.Options(consistency=level, page_size=size, paging_state=state)), text)
            self.columns = [c[2] for c in answer['metadata']['columns']]
            rows += answer['rows']
            state = answer['metadata'].get('paging_state')
            if state is None:
                return rows

    def check_values(self, rows):
        number = [row[self.columns.index('n')] for row in rows]
        per = 1 if self.case.first else self.case.rows
        missing = [n for n in range(self.number_written) if number.count(struct.pack('>i', n)) != per]
        if missing:
            raise Wrong(f'statements {missing[:5]} have not {per} rows')
        for i, name in enumerate(self.columns):
            cells = [row[i] for row in rows]
            if None in cells:
                raise Wrong(f'{name} is null in {cells.count(None)} rows')
            if name in self.case.fresh and len(set(cells)) != len(cells):
                raise Wrong(f'{len(cells) - len(set(cells))} values of {name} come twice')
            if name in self.case.sizes:
                sizes = {struct.unpack_from('>i', cell)[0] for cell in cells}
                if sizes != {self.case.sizes[name]}:
                    raise Wrong(f'{name} has {sorted(sizes)} elements, not {self.case.sizes[name]}')

    def check_by_key(self, readers, whole):
        """Each row is where its key says, on each replica."""
        answer = self.ask(self.connections[0], "SELECT column_name, kind FROM system_schema.columns "
                          f"WHERE keyspace_name = '{KEYSPACE}' AND table_name = '{self.table}'")
        keys = [row[0].decode() for row in answer['rows'] if row[1] in (b'partition_key', b'clustering')]
        text = f'SELECT * FROM {KEYSPACE}.{self.table} WHERE ' + ' AND '.join(f'{k} = ?' for k in keys)
        for where, connection in readers:
            prepared = self.good(connection.prepare(text), text)
            for row in whole:
                values = [row[self.columns.index(k)] for k in keys]
                got = self.good(connection.execute(prepared, wire.Options(consistency='ONE', values=values)), text)['rows']
                if got != [row]:
                    raise Wrong(f'by its key, through {where}: {got} for {row}')


class Impure:
    """All places of functions on the nodes of a layout."""

    def __init__(self, running, place, report, count):
        self.running, self.place, self.report, self.count = running, place, report, count

    def run(self, share):
        server = self.running.servers[0]
        for one in self.running.servers:
            one.close()
        self.clear(server)
        connection, replicas = server.connection(5), self.running.layout.replicas or 1
        for text in (f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}",
                     f'CREATE TYPE {KEYSPACE}.ut (a uuid, b int)'):
            Told.good(connection.query(text), text)
        cases = [Told(case, f't{i}', self.running, 'ALL') for i, case in enumerate(all_cases()) if share.has(case.name)]
        for told in cases:
            text = f'CREATE TABLE {KEYSPACE}.{told.table} ({told.case.columns})'.replace('ut>', f'{KEYSPACE}.ut>').replace(' ut', f' {KEYSPACE}.ut')
            Told.good(connection.query(text), text)
        if hasattr(server, 'agree'):
            server.agree()
        written = [told for told in cases if self.holds(told, lambda: told.write(self.count), 'when written')]
        checked = [told for told in written if self.holds(told, told.check, 'in memory')]
        self.place.all('flush')
        for told in checked:
            self.holds(told, told.check, 'flushed')
        for told in cases:
            self.report.asked['functions'] += self.count
            self.report.statements.add(('functions', told.case.name))
        self.clear(server)

    @staticmethod
    def clear(server):
        """Drops the keyspace, which takes a Cassandra a while."""
        c = wire.Connection(server.host, server.port, timeout=DROP_SECONDS)
        c.query(f'DROP KEYSPACE IF EXISTS {KEYSPACE}')
        c.close()

    def holds(self, told, do, when):
        try:
            do()
            return True
        except Wrong as e:
            self.report.differ('functions', told.case.name, when, told.case.statement, str(e))
            return False
