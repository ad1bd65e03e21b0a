"""Pages of random reads of random tables on two servers, the second one a Cassandra.

    pages.py HOST HOST_B [--seed N] [--tables N] [--reads N] [--flush] [--replicas N] [--level CL] [--protocol N]

Each read is asked without pages and in pages of 1, 2, 3, 7 and 100 rows. The rows of the pages are those of the whole result; both servers end
their pages at the same rows and hand out the same paging states, byte for byte; and a read whose pages come from both in turn is no other.
With --replicas both are nodes of one ring, and what the second one keeps is what the first one keeps. `HOST -` asks one server alone.
Where the rows of Cassandra's own pages are others than those of its whole result, only the pages are compared.
"""

import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'oracle'))
import wire  # noqa: E402

SIZES = [1, 2, 3, 7, 100]
MOST_PAGES = 400
KEYSPACE = 'cf_pages'
REFUSED = 0x2200
# With deletions of ranges Cassandra's own pages of groups end in failures, and in states that it does not read back.
MISTAKES = (0x0000, 0x000a, 0x1300)


class Table:
    """A random table and what happens to it."""

    def __init__(self, r, name):
        self.r, self.name = r, name
        self.keys = ['k', 'l'][:r.choice([1, 1, 1, 2])]
        self.clustering = ['a', 'b', 'c'][:r.choice([0, 1, 1, 2, 2, 3])]
        self.orders = {c: r.choice(['ASC', 'ASC', 'DESC']) for c in self.clustering}
        self.statics = ['s'] if self.clustering and r.random() < 0.6 else []
        self.values = ['v', 'w']
        self.width = r.randint(2, 5)
        self.heights = {c: r.randint(1, 5) for c in self.clustering}

    def create(self):
        columns = [f'{c} int' for c in self.keys + self.clustering + self.values] + [f'{c} int static' for c in self.statics]
        key = f'({", ".join(self.keys)})' + ''.join(f', {c}' for c in self.clustering)
        order = ', '.join(f'{c} {self.orders[c]}' for c in self.clustering)
        order = f' WITH CLUSTERING ORDER BY ({order})' if order else ''
        return f'CREATE TABLE {self.name} ({", ".join(columns)}, PRIMARY KEY ({key})){order}'

    def key(self):
        return {c: self.r.randrange(self.width) for c in self.keys}

    def row(self):
        return {c: self.r.randrange(self.heights[c]) for c in self.clustering}

    def writes(self, first):
        """Statements, the later with the higher timestamp."""
        r, out = self.r, []
        for at in range(first, first + r.randint(10, 60)):
            kind, place = r.random(), {**self.key(), **self.row()}
            using = f'USING TIMESTAMP {at}'
            only = {c: place[c] for c in self.keys}
            if kind < 0.68 or not self.clustering and kind < 0.8:
                columns = dict(place)
                for c in self.values + self.statics:
                    if r.random() < 0.5:
                        columns[c] = r.choice(['null', 0, 1, 2]) if r.random() < 0.9 else 'null'
                out.append(f'INSERT INTO {self.name} ({", ".join(columns)}) VALUES ({", ".join(map(str, columns.values()))}) {using}')
            elif kind < 0.76 and self.statics:
                out.append(f'UPDATE {self.name} {using} SET s = {r.choice([0, 1, 2, "null"])} WHERE {same(only)}')
            elif kind < 0.84:
                out.append(f'UPDATE {self.name} {using} SET v = {r.choice([0, 1, 2, "null"])} WHERE {same(place)}')
            elif kind < 0.92:
                depth = r.randint(1, len(self.clustering)) if self.clustering else 0
                part = {**only, **{c: place[c] for c in self.clustering[:depth]}}
                out.append(f'DELETE FROM {self.name} {using} WHERE {same(part)}')
            elif kind < 0.96 and self.clustering:
                out.append(f'DELETE FROM {self.name} {using} WHERE {same(only)} AND {self.clustering[0]} > {place[self.clustering[0]]}')
            else:
                out.append(f'DELETE FROM {self.name} {using} WHERE {same(only)}')
        return out

    def read(self):
        r, where, tail, orders = self.r, [], '', ''
        groups, select, distinct = [], '*', False
        kind = r.choice(['all', 'all', 'all', 'token', 'key', 'in', 'in'])
        filtering = False
        if kind == 'token':
            token = f'token({", ".join(self.keys)})'
            where.append(f'{token} {r.choice([">", ">=", "<", "<="])} {r.choice([-4069959284402364209, 0, -3248873570005575792, 9010454139840013625])}')
        elif kind != 'all':
            for c in self.keys:
                some = r.sample(range(self.width + 1), r.randint(1, self.width)) if kind == 'in' else [r.randrange(self.width)]
                where.append(f'{c} IN ({", ".join(map(str, some))})' if kind == 'in' else f'{c} = {some[0]}')
        shape = r.random()
        if shape < 0.15 and (self.statics or kind in ('all', 'token')):
            distinct, select = True, ', '.join(self.keys + (self.statics if r.random() < 0.7 else []))
        elif shape < 0.4:
            groups = (self.keys + self.clustering)[:r.randint(len(self.keys), len(self.keys + self.clustering))]
            select = ', '.join(groups + r.sample(['count(*)', 'max(v)', 'sum(w)', 'v', 'count(v)'] + self.statics, 2))
        elif shape < 0.7:
            select = ', '.join(r.sample(self.keys + self.clustering + self.values + self.statics, r.randint(1, 3)))
        if not distinct and self.clustering and r.random() < 0.35:
            c, value = self.clustering[0], r.randrange(self.heights[self.clustering[0]])
            if r.random() < 0.3 and kind != 'token':
                where.append(f'{c} IN ({value}, {r.randrange(5)})')
            else:
                where.append(f'{c} {r.choice([">", ">=", "<", "="])} {value}')
            filtering |= kind in ('all', 'token')
        if not distinct and r.random() < 0.25:
            where.append(f'{r.choice(self.values + self.statics)} {r.choice([">", "=", ">="])} {r.choice([0, 1])}')
            filtering = True
        elif distinct and self.statics and r.random() < 0.3:
            where.append(f's {r.choice([">", "=", ">="])} {r.choice([0, 1])}')
            filtering = True
        if kind == 'key' and self.clustering and not distinct and r.random() < 0.4:
            orders = ' ORDER BY ' + ', '.join(f'{c} {"DESC" if self.orders[c] == "ASC" else "ASC"}' for c in self.clustering)
        if groups:
            tail += f' GROUP BY {", ".join(groups)}'
        tail += orders
        if not distinct and r.random() < 0.5:
            tail += f' PER PARTITION LIMIT {r.randint(1, 4)}'
        if r.random() < 0.3:
            tail += f' LIMIT {r.randint(1, 9)}'
        if filtering:
            tail += ' ALLOW FILTERING'
        where = f' WHERE {" AND ".join(where)}' if where else ''
        return f'SELECT {"DISTINCT " if distinct else ""}{select} FROM {self.name}{where}{tail}'


def same(place):
    return ' AND '.join(f'{c} = {v}' for c, v in place.items())


class Reader:
    """A read in pages, from one server or from several in turn."""

    def __init__(self, servers, text, level):
        self.servers, self.text, self.level = servers, text, level

    def whole(self):
        return self.servers[0].query(self.text, wire.Options(consistency=self.level))

    def pages(self, size):
        """Rows of each page, and the states between them; or an error's code."""
        pages, states, state = [], [], None
        for number in range(MOST_PAGES):
            server = self.servers[number % len(self.servers)]
            answer = server.query(self.text, wire.Options(consistency=self.level, page_size=size, paging_state=state))
            if answer['kind'] != 'rows':
                return answer.get('code'), [answer.get('message', '')]
            pages.append(answer['rows'])
            state = answer['metadata'].get('paging_state')
            if state is None:
                return pages, states
            states.append(state.hex())
        return 'without end', states


def vint(data, at):
    """An unsigned vint, and where it ends."""
    more = 8 - (data[at] ^ 0xff).bit_length() if data[at] != 0xff else 8
    value = data[at] & (0xff >> more)
    for byte in data[at + 1:at + 1 + more]:
        value = value << 8 | byte
    return value, at + 1 + more


def without_idle_mark(state):
    """A state without the mark of a row that nobody goes on from: nothing remains of its partition. Of groups Cassandra keeps that of a page that it
    read for itself."""
    data, at = bytes.fromhex(state), 0
    length, at = vint(data, at)
    key, at = data[at:at + length], at + length
    length, at = vint(data, at)
    mark, at = data[at:at + length], at + length
    remaining, at = vint(data, at)
    in_partition, _ = vint(data, at)
    return key, mark if in_partition else b'', remaining, in_partition


class Judge:
    def __init__(self, ours, theirs, level, compares_states):
        self.ours, self.theirs, self.level = ours, theirs, level
        self.compares_states = compares_states
        self.wrong, self.reads, self.mistakes = 0, 0, 0

    def tell(self, text, what, *shown):
        self.wrong += 1
        if self.wrong <= 20:
            print(f'DIFFERENT {what}: {text}')
            for line in shown:
                print('   ', line)

    def read(self, text, is_odd):
        """Asks both; what is not as it should be is told. The pages that Cassandra makes of an odd one are not looked at."""
        self.reads += 1
        mine = Reader([self.ours], text, self.level)
        whole = mine.whole()
        other = Reader([self.theirs], text, self.level) if self.theirs else None
        their_whole = other.whole() if other else whole
        if whole['kind'] != 'rows':
            if whole.get('code') not in (REFUSED, their_whole.get('code')):
                self.tell(text, 'an error', whole)
            return
        if their_whole.get('code') in MISTAKES or is_odd:
            self.mistakes += 1
            other = None
        elif their_whole.get('rows') != whole['rows']:
            self.tell(text, 'whole results', shown(whole['rows']), shown(their_whole.get('rows', their_whole)))
            return
        for size in SIZES:
            pages, states = mine.pages(size)
            rows = flat(pages)
            if not other:
                if rows != whole['rows']:
                    self.tell(text, f'pages of {size} and the whole', shown(pages), shown(whole['rows']))
                continue
            their_pages, their_states = other.pages(size)
            is_mistaken = flat(their_pages) != whole['rows']
            self.mistakes += is_mistaken
            if is_mistaken:
                if rows != whole['rows']:
                    self.tell(text, f'pages of {size} and the whole', shown(pages), shown(whole['rows']), shown(their_pages))
                continue
            if pages != their_pages:
                self.tell(text, f'pages of {size}', shown(pages), shown(their_pages), states, their_states)
            elif self.compares_states and not same_states(text, states, their_states):
                self.tell(text, f'states of pages of {size}', states, their_states, shown(pages))
            for turn in ([self.ours, self.theirs], [self.theirs, self.ours]):
                mixed, _ = Reader(turn, text, self.level).pages(size)
                if flat(mixed) != whole['rows']:
                    self.tell(text, f'pages of {size} from both in turn', shown(mixed), shown(whole['rows']))


def same_states(text, ours, theirs):
    """Are they the same, byte for byte?"""
    if 'GROUP BY' in text:
        ours, theirs = [list(map(without_idle_mark, states)) for states in (ours, theirs)]
    return ours == theirs


def flat(pages):
    return [row for page in pages for row in page] if isinstance(pages, list) else pages


def shown(rows):
    if not isinstance(rows, list):
        return rows
    if rows and rows[0] and isinstance(rows[0][0], list):
        return [shown(page) for page in rows]
    return [tuple(None if v is None else int.from_bytes(v, 'big', signed=True) for v in row) if isinstance(row, list) else row for row in rows]


def agree(server):
    """Waits until all nodes of a ring say the same version of the schema."""
    for _ in range(200):
        asked = [server.query(f'SELECT schema_version FROM system.{table}') for table in ('local', 'peers_v2')]
        if len({row[0] for answer in asked for row in answer['rows']}) == 1:
            return
        time.sleep(0.1)
    raise SystemExit('the nodes do not agree on a schema')


def must(server, text, level='ONE'):
    answer = server.query(text, wire.Options(consistency=level))
    if answer['kind'] == 'error':
        raise SystemExit(f'{text}: {answer["message"]}')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('hosts', nargs=2)
    for name, default in [('seed', 1), ('tables', 10), ('reads', 40), ('replicas', 0), ('protocol', 5)]:
        parser.add_argument(f'--{name}', type=int, default=default)
    parser.add_argument('--level', default=None)
    args = parser.parse_args()
    level = args.level or ('ALL' if args.replicas else 'ONE')
    servers = [wire.Connection(host, version=args.protocol) for host in args.hosts if host != '-']
    written = servers[:1] if args.replicas else servers
    # of version 3 a state names the row's last cell, for nodes of 2.1; ours names the row
    judge = Judge(servers[0], servers[1] if len(servers) > 1 else None, level, args.protocol > 3)
    for seed in range(args.seed, args.seed + args.tables):
        r = random.Random(seed)
        table = Table(r, f'{KEYSPACE}.t')
        replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {args.replicas or 1}}}"
        for server in written:
            must(server, f'DROP KEYSPACE IF EXISTS {KEYSPACE}')
            must(server, f'CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}')
            must(server, table.create())
            agree(server)
        for text in table.writes(1000):
            for server in written:
                must(server, text, level)
        before = judge.wrong
        for _ in range(args.reads):
            text = table.read()
            # groups of one row each: Cassandra puts more of them into a page than it was asked for, or leaves the state that it cannot read
            judge.read(text, not table.clustering and 'GROUP BY' in text)
        if judge.wrong > before:
            print(f'seed {seed}: {table.create()}', flush=True)
    print(f'{judge.reads} reads, {judge.wrong} differences, {judge.mistakes} times the pages of Cassandra were not its whole result')
    sys.exit(1 if judge.wrong else 0)


if __name__ == '__main__':
    main()
