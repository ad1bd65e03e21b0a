"""What Cassandra answers where it fails by mistake, and which statements that spoils."""

import re

TABLE = re.compile(r'\b(?:t|u|asc|desc|key)[0-9]*\b')  # names of tables and types in generated files
READ_FAILURE, WRITE_FAILURE, UNKNOWN_REASON = '1300', '1500', 0
TIMEOUTS = {'1100', '1200'}  # of a node that has nothing else to do: its thread died of an assertion


def is_mistake(answer):
    """An exception that nobody meant: SERVER_ERROR, a timeout, a failure without a reason, its own paging state refused."""
    if answer['kind'] != 'error':
        return False
    if answer['code'] in (READ_FAILURE, WRITE_FAILURE):
        return UNKNOWN_REASON in answer['detail'][3]
    return answer['code'] == '0000' or answer['code'] in TIMEOUTS or answer['code'] == '000a' and answer['message'] == 'Invalid value for the paging state'


def names(step):
    """The tables and types that a statement of a generated file concerns."""
    return set(TABLE.findall(step.title()))


def is_read(step):
    return step.batch is None and re.match(r'\s*SELECT\b', step.cql, re.I) is not None


class Spoiled:
    """Tables that have not the same rows on both servers, because a write to them failed on one by mistake."""

    def __init__(self):
        self.tables, self.left_out = set(), 0

    def skips(self, step):
        skipped = bool(self.tables & names(step))
        self.left_out += skipped
        return skipped

    def note(self, step):
        self.left_out += 1
        if not is_read(step):
            self.tables |= names(step)
