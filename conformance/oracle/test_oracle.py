"""Tests of the comparison itself: python3 -m unittest discover conformance/oracle"""

import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import wire  # noqa: E402
from corpus import encode_value, encode_varint, parse  # noqa: E402
from oracle import comparable  # noqa: E402


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

    def test_rows_differ_by_one_byte(self):
        theirs = dict(kind='rows', columns=[], rows=[['00']])
        self.assertNotEqual(*comparable(dict(theirs, rows=[['01']]), theirs))


if __name__ == '__main__':
    unittest.main()
