"""Tests of the comparison itself: python3 -m unittest discover conformance/oracle"""

import os
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import wire  # noqa: E402
from corpus import encode_value, encode_varint, parse  # noqa: E402
from coverage import counts  # noqa: E402
from mistakes import Spoiled, is_mistake  # noqa: E402
from oracle import agree, comparable, fails  # noqa: E402
from planted import PLANTED, Planter, Rows  # noqa: E402
from run import Replicated, Server  # noqa: E402
from shrink import shrink, story  # noqa: E402


def steps(text):
    with tempfile.NamedTemporaryFile('w', suffix='.cql', delete=False) as f:
        f.write(text)
    try:
        return parse(f.name)
    finally:
        os.unlink(f.name)


class Corpus(unittest.TestCase):
    def test_statements_end_at_semicolons_outside_quotes(self):
        found = steps("SELECT ';' FROM t;\nINSERT INTO t (a) VALUES ($$;$$);\n")
        self.assertEqual([s.cql for s in found], ["SELECT ';' FROM t", 'INSERT INTO t (a) VALUES ($$;$$)'])

    def test_nothing_after_a_statement_gets_lost(self):
        self.assertRaises(ValueError, steps, 'SELECT 1; SELECT 2;\n')

    def test_a_batch_is_one_statement(self):
        found = steps('BEGIN BATCH INSERT a; DELETE b; APPLY BATCH;\nSELECT 1;\n')
        self.assertEqual([s.cql for s in found], ['BEGIN BATCH INSERT a; DELETE b; APPLY BATCH', 'SELECT 1'])

    def test_directives_hold_for_the_next_statement_only(self):
        a, b = steps('-- page 3\nSELECT 1;\nSELECT 2;\n')
        self.assertEqual((a.get('page'), b.get('page')), ('3', None))

    def test_sticky_directives_stay(self):
        a, b = steps('-- protocol 3\n-- clock 7\nSELECT 1;\nSELECT 2;\n')
        self.assertEqual((a.sticky['protocol'], b.sticky['protocol']), (3, 3))
        self.assertEqual((a.get('timestamp'), b.get('timestamp')), ('7', '8'))

    def test_line_takes_what_has_no_end(self):
        a, b = steps("-- line\nSELECT 'x\nSELECT 2;\n")
        self.assertEqual((a.cql, b.cql), ("SELECT 'x", 'SELECT 2'))


class Values(unittest.TestCase):
    def test_encodings(self):
        self.assertEqual(encode_value('int:-1'), b'\xff\xff\xff\xff')
        self.assertIsNone(encode_value('null'))
        self.assertIs(encode_value('unset'), wire.UNSET)
        self.assertEqual(encode_value('0x00ff'), b'\x00\xff')
        self.assertEqual(encode_value('duration:1,-1,0'), b'\x02\x01\x00')
        self.assertEqual(encode_value('duration:0,0,128'), b'\x00\x00\x81\x00')
        self.assertEqual(encode_value('duration:0,0,9223372036854775807')[2:], b'\xff' * 8 + b'\xfe')
        self.assertEqual(encode_value('decimal:2,150'), b'\x00\x00\x00\x02\x00\x96')
        self.assertEqual(encode_value('list:[int:1,null]').hex(), '000000020000000400000001ffffffff')
        self.assertEqual([encode_varint(n).hex() for n in (0, 127, 128, -128, -129)], ['00', '7f', '0080', '80', 'ff7f'])


class Wire(unittest.TestCase):
    def test_crc24_of_a_frame_header_that_cassandra_sent(self):
        # header of a self-contained frame of 56 bytes, as a 5.0.9 wrote it
        self.assertEqual(wire.crc24(bytes.fromhex('380002')), int.from_bytes(bytes.fromhex('43a153'), 'little'))


class Comparison(unittest.TestCase):
    def test_the_wording_of_an_error_may_differ_but_not_its_code(self):
        theirs = dict(kind='error', code='2200', message='a')
        same, other = dict(theirs, message='b'), dict(theirs, code='2000')
        self.assertEqual(*comparable(same, theirs))
        self.assertNotEqual(*comparable(other, theirs))

    def test_any_error_will_do_where_cassandra_fails_by_accident(self):
        theirs = dict(kind='error', code='0000', message='java.lang.NullPointerException')
        self.assertEqual(*comparable(dict(kind='error', code='2200', message='a'), theirs))
        self.assertNotEqual(*comparable(dict(kind='void'), theirs))

    def test_where_cassandra_is_said_to_fail_it_must_and_only_that_answer_is_left_out(self):
        void, other = dict(kind='void'), dict(kind='error', code='2200', message='a')
        mistake = dict(kind='error', code='1100', message='b', detail=[1, 0, 1, 'SIMPLE'])
        self.assertTrue(agree([void, other], [void, mistake], failing=True))
        self.assertFalse(agree([other, other], [void, mistake], failing=True))
        self.assertFalse(agree([void, other], [void, mistake]))
        self.assertFalse(agree([void, other], [void, other], failing=True))
        said, not_said = steps('-- cassandra fails\nSELECT 1;\nSELECT 2;\n')
        self.assertEqual((fails(said), fails(not_said)), (True, False))

    def test_rows_differ_by_one_byte(self):
        theirs = dict(kind='rows', columns=[], rows=[['00']])
        self.assertNotEqual(*comparable(dict(theirs, rows=[['01']]), theirs))


def page(*cells, flags=0, state=b''):
    """A ROWS result of one column `ttl(v)`, with a keyspace and table for all."""
    spec = wire.string('ks') + wire.string('t') + wire.string('ttl(v)') + struct.pack('>H', 9)
    head = struct.pack('>iii', wire.ROWS, 1 | flags, 1) + (wire.value(state) if flags & 2 else b'')
    return head + spec + struct.pack('>i', len(cells)) + b''.join(map(wire.value, cells))


class Planted(unittest.TestCase):
    def test_what_is_not_changed_is_put_together_as_it_was(self):
        for body in (page(b'\0\0\0\5', None, b''), page(b'\0\0\0\5', flags=2, state=b'abc')):
            self.assertEqual(Rows(body).encode(), body)

    def test_a_difference_changes_only_its_own_kind(self):
        planter = Planter('ttl_off_by_one')
        body = page(b'\0\0\0\5', None)
        self.assertEqual(planter.answered(5, wire.RESULT, 0, body), (wire.RESULT, 0, page(b'\0\0\0\4', None)))
        self.assertEqual(planter.answered(5, wire.ERROR, 0, body), (wire.ERROR, 0, body))
        self.assertEqual(planter.planted, 1)

    def test_warnings_go_and_the_rest_stays(self):
        warned = struct.pack('>H', 1) + wire.string('beware')
        self.assertEqual(Planter('missing_warning').answered(5, wire.RESULT, 8, warned + page(None)), (wire.RESULT, 0, page(None)))

    def test_there_are_twenty(self):
        self.assertGreaterEqual(len(PLANTED), 20)


class Mistakes(unittest.TestCase):
    def test_what_nobody_meant(self):
        error = lambda code, **more: dict(kind='error', code=code, message='', **more)
        self.assertTrue(is_mistake(error('0000')))
        self.assertTrue(is_mistake(error('1300', detail=[1, 0, 1, [0], 0])))
        self.assertFalse(is_mistake(error('1300', detail=[1, 0, 1, [1], 0])))  # too many tombstones
        self.assertFalse(is_mistake(error('2200')))

    def test_a_write_that_failed_spoils_its_table_and_a_read_does_not(self):
        write, read, other = steps('INSERT INTO t1 (k) VALUES (1);\nSELECT k1 FROM t2;\nSELECT * FROM t3;\n')
        spoiled = Spoiled()
        spoiled.note(write)
        spoiled.note(read)
        self.assertTrue(spoiled.skips(write))
        self.assertFalse(spoiled.skips(read) or spoiled.skips(other))


class Events(unittest.TestCase):
    class Listener:
        def __init__(self, *events):
            self.events = list(events)

        def wait_event(self, _):
            return self.events.pop(0) if self.events else None

    def test_in_a_ring_events_may_come_again(self):
        old, new, other = (['SCHEMA_CHANGE', 'UPDATED', 'TABLE', 'ks', name] for name in 'tuv')
        for events, wanted, expected in [
            ([old, new], new, new),     # one that was heard before does not count
            ([old, new], old, old),     # unless it is wanted
            ([other, new], new, other),  # nor does one pass that was not heard before
            ([old], new, old),          # nor none at all
            ([], new, None),
        ]:
            ring = Replicated('nobody')
            ring.listener, ring.heard, ring.wanted = self.Listener(*events), [old], wanted
            self.assertEqual(ring.event(), expected)
        alone = Server('nobody')
        alone.listener = self.Listener(old, new)
        self.assertEqual(alone.event(), old)


class Shrinking(unittest.TestCase):
    def test_only_what_is_needed_stays(self):
        class Fake:
            """Answers with what was written to its table, and is wrong about 7 if it is `broken`."""

            def __init__(self, broken):
                self.broken = broken

            def clean(self):
                self.seen = []

            def run(self, step):
                self.seen.append(step.cql)
                return self.broken and any('(7)' in cql for cql in self.seen)

        self.assertEqual(story(steps('CREATE TABLE t (k int);\nSELECT * FROM t;\n'), 1)[0].cql, 'CREATE TABLE t (k int)')
        told = steps('CREATE TABLE t1 (k int);\n' + ''.join(f'INSERT INTO t1 (k) VALUES ({n});\nINSERT INTO t2 (k) VALUES ({n});\n' for n in range(20)) + 'SELECT * FROM t1;\n')
        short = shrink([Fake(True), Fake(False)], told, len(told) - 1, lambda a, b: a != b)
        self.assertEqual([s.cql for s in short], ['CREATE TABLE t1 (k int)', 'INSERT INTO t1 (k) VALUES (7)', 'SELECT * FROM t1'])


class Coverage(unittest.TestCase):
    def test_what_counts(self):
        self.assertTrue(counts('cql3/statements/SelectStatement.java') and counts('db/filter/RowFilter.java'))
        self.assertFalse(counts('cql3/functions/types/DataType.java') or counts('cql3/statements/schema/CreateViewStatement.java') or counts('db/Keyspace.java'))


if __name__ == '__main__':
    unittest.main()
