"""Scenes: one random table each, written to, read and changed, at one protocol version."""

from selects import everything, select
from statements import batch, batch_message, delete, insert, update
from tables import Table


def prepare_only(r, lines):
    """The same statement, only prepared: its metadata is the answer."""
    cql = [line for line in lines if not line.startswith('-- ')]
    return ['-- prepare'] + cql


def scene(r, number):
    t = Table(r, number, counter=r.random() < 0.08)
    version = r.choice([5, 5, 5, 4, 3])
    times = version == 5  # what expires is told from a "now" that only v5 can carry
    lines = [f'-- protocol {version}'] + t.create(r, times)
    # Of counters nothing is deleted: what an update after it adds to is left to chance (Cassandra's counter cache).
    writes = [update] if t.counter else [insert, insert, insert, update, update, update, delete]
    for _ in range(r.randint(10, 14)):
        lines += r.choice(writes)(r, t, times)
    lines += everything(r, t)
    for n in range(r.randint(16, 24)):
        kind = r.random()
        if kind < 0.60:
            lines += select(r, t)
        elif kind < 0.66:
            some = r.choice([select] + writes)
            one = some(r, t, times) if some is not select else select(r, t, pages=False)
            lines += prepare_only(r, one)
        elif kind < 0.72:
            lines += batch(r, t, times)
        elif kind < 0.76:
            lines += batch_message(r, t, times)
        elif kind < 0.80:
            lines += [t.alter(r)] + everything(r, t)
        else:
            lines += r.choice(writes)(r, t, times)
    return lines + everything(r, t) + ['']


def tables(r, count):
    """A file of `count` scenes, about 45 statements each."""
    lines = ['-- now 1900000000', '-- clock 1000', "CREATE KEYSPACE cf_tab WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};", 'USE cf_tab;', '']
    for number in range(count):
        lines += scene(r, number)
    return lines
