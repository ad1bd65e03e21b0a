"""Tests of the driver itself: python3 -m unittest discover conformance/forms"""

import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, '..', 'oracle')]

import cql  # noqa: E402
from corpus import Step  # noqa: E402
from names import folded, name, unfolded  # noqa: E402
from places_of_functions import all_cases  # noqa: E402
from plants import PLANTED  # noqa: E402
from reads import Outcome, Share, Writing, reversed_writing  # noqa: E402
from report import Deviations, Report  # noqa: E402
from stories import is_modification, untold_use, verb  # noqa: E402
from values import literal, named  # noqa: E402
from wire import UNSET  # noqa: E402
from writes import Conditional, Together, tables  # noqa: E402


def step(text, **directives):
    return Step(1, text, {k: [v] for k, v in directives.items()}, {'protocol': 5})


class Terms(unittest.TestCase):
    def test_markers_take_the_place_of_terms(self):
        self.assertEqual(cql.marked("SELECT v FROM t WHERE k = 1 AND (c, d) > (2, 'x') LIMIT 5", 'position'),
                         ('SELECT v FROM t WHERE k = ? AND (c, d) > (?, ?) LIMIT ?', ['1', '2', "'x'", '5']))
        self.assertEqual(cql.marked('SELECT 5 FROM t WHERE k = -1', 'name'), ('SELECT 5 FROM t WHERE k = :v0', ['-1']))

    def test_a_collection_is_one_term_or_its_elements(self):
        text = "INSERT INTO t (k, v) VALUES (1, {'a': [1, 2]})"
        self.assertEqual(cql.marked(text, 'position')[1], ['1', "{'a': [1, 2]}"])
        self.assertEqual(cql.marked(text, 'inside'), ('INSERT INTO t (k, v) VALUES (?, {?: [?, ?]})', ['1', "'a'", '1', '2']))

    def test_what_a_function_makes_is_no_literal(self):
        self.assertEqual(cql.marked('INSERT INTO t (k, v) VALUES (1, [now(), 2])', 'position'), ('INSERT INTO t (k, v) VALUES (?, [now(), ?])', ['1', '2']))

    def test_fields_of_a_type_keep_their_names(self):
        self.assertEqual(cql.marked('INSERT INTO t (k, v) VALUES (1, {a: true, b: null})', 'inside'), ('INSERT INTO t (k, v) VALUES (?, {a: ?, b: ?})', ['1', 'true', 'null']))

    def test_an_element_of_a_column_is_no_list(self):
        self.assertEqual(cql.marked('UPDATE t SET l[0] = 5 WHERE k = 1', 'position'), ('UPDATE t SET l[?] = ? WHERE k = ?', ['0', '5', '1']))

    def test_an_in_is_one_list(self):
        self.assertEqual(cql.marked('SELECT * FROM t WHERE k IN (1, 2)', 'list'), ('SELECT * FROM t WHERE k IN ?', ['[1, 2]']))

    def test_carefully_nothing_is_bound_in_functions_and_sums(self):
        self.assertEqual(cql.marked('SELECT * FROM t WHERE k = f(1) AND c = 2 + v AND d = 3', 'position', careful=True), ('SELECT * FROM t WHERE k = f(1) AND c = 2 + v AND d = ?', ['3']))

    def test_the_size_of_a_vector_is_no_term(self):
        self.assertEqual(cql.marked('SELECT * FROM t WHERE v = (vector<float, 2>) [1, 2]', 'position'), ('SELECT * FROM t WHERE v = (vector<float, 2>) ?', ['[1, 2]']))

    def test_markers_are_filled_and_named(self):
        self.assertEqual(cql.filled('SELECT * FROM t WHERE k = ? AND c > :low', ['1', '2']), 'SELECT * FROM t WHERE k = 1 AND c > 2')
        self.assertEqual(cql.named_markers('SELECT * FROM t WHERE k = ?'), ('SELECT * FROM t WHERE k = :v0', ['v0']))
        self.assertIsNone(cql.named_markers('SELECT * FROM t WHERE k = :k'))


class Clauses(unittest.TestCase):
    def test_the_other_order(self):
        by = [('c', False), ('d', True)]
        self.assertEqual(cql.mirrored('SELECT * FROM t WHERE k = 1', by), 'SELECT * FROM t WHERE k = 1 ORDER BY "c" DESC, "d" ASC')
        self.assertEqual(cql.mirrored('SELECT * FROM t WHERE k = 1 AND v = 2 ORDER BY c DESC, d ALLOW FILTERING', by),
                         'SELECT * FROM t WHERE k = 1 AND v = 2 ORDER BY c ASC, d DESC ALLOW FILTERING')
        for text in ('SELECT * FROM t', 'SELECT * FROM t WHERE k = 1 LIMIT 5', 'SELECT k FROM t WHERE k = 1 GROUP BY c'):
            self.assertIsNone(cql.mirrored(text, by))
        self.assertIsNone(reversed_writing(Writing('literal', 'SELECT * FROM t WHERE k = 1'), []))

    def test_the_table_of_a_statement(self):
        self.assertEqual(cql.table('SELECT * FROM a."T" WHERE k = 1'), ('a', 'T'))
        self.assertEqual(cql.table('INSERT INTO T (k) VALUES (1)', 'ks'), ('ks', 't'))
        self.assertEqual(tables(step('BEGIN BATCH INSERT INTO a.t (k) VALUES (1); UPDATE u SET v = 1 WHERE k = 1; APPLY BATCH')), {'t', 'u'})

    def test_the_parts_of_an_insert(self):
        self.assertEqual(cql.inserted('INSERT INTO t (k, "V") VALUES (1, {2, 3}) USING TTL 5'), ('INSERT INTO t', ['k', '"V"'], ['1', '{2, 3}'], 'USING TTL 5'))
        self.assertIsNone(cql.inserted("INSERT INTO t JSON '{}'"))

    def test_a_statement_gets_the_time_of_its_request(self):
        timed = lambda text: Together._timed(step(text, timestamp='7'))
        self.assertEqual(timed('INSERT INTO t (k) VALUES (1) USING TTL 5'), 'INSERT INTO t (k) VALUES (1) USING TTL 5 AND TIMESTAMP 7')
        self.assertEqual(timed('UPDATE t SET v = 1 WHERE k = 1'), 'UPDATE t USING TIMESTAMP 7 SET v = 1 WHERE k = 1')
        self.assertEqual(timed('DELETE FROM t WHERE k = 1'), 'DELETE FROM t USING TIMESTAMP 7 WHERE k = 1')
        self.assertIsNone(timed('UPDATE t SET l[0] = 1 WHERE k = 1'))
        self.assertIsNone(timed('UPDATE t SET v = 1 WHERE k = 1 IF v = 2'))

    def test_what_is_only_prepared_modifies_nothing(self):
        self.assertFalse(is_modification(step('INSERT INTO t (k) VALUES (?)', prepare='')))
        self.assertTrue(is_modification(step('INSERT INTO t (k) VALUES (?)', prepare='', bind='int:1')))
        self.assertEqual(verb(step('/* x */ -- y\n select 1')), 'SELECT')

    def test_times_are_left_out_beside_conditions(self):
        self.assertEqual(Conditional.untimed(step('x', timestamp='7', bind='int:1')).directives, {'bind': ['int:1']})


class Values(unittest.TestCase):
    def test_types_as_cql_writes_them(self):
        self.assertEqual(named('list<udt ks.ad<a int, b list<int>>>'), 'list<frozen<"ks"."ad">>')
        self.assertEqual(named('counter'), 'bigint')

    def test_bytes_as_literals(self):
        self.assertEqual(literal('int', b'\xff\xff\xff\xff'), '-1')
        self.assertEqual(literal('varchar', b"it's"), "'it''s'")
        self.assertEqual(literal('float', b'\0\0\0\0'), 'blob_as_float(0x00000000)')
        self.assertIsNone(literal('list<int>', b''))
        self.assertIsNone(literal('int', UNSET))


class Outcomes(unittest.TestCase):
    rows = dict(kind='rows', rows=[['1'], ['2']], columns=['a'])

    def test_a_form_must_give_the_same(self):
        outcome = Outcome(self.rows, False)
        of = lambda **change: outcome.of(dict(self.rows, **change), 1, 1, True)
        self.assertIsNone(of())
        self.assertEqual(of(rows=[['2'], ['1']]), 'rows')
        self.assertEqual(of(columns=['b']), 'columns')
        self.assertEqual(outcome.of(dict(kind='error', code='2200'), 0, None, True), '2200')
        self.assertEqual(outcome.of(self.rows, 2, 1, True), 'more rows than the page')
        self.assertIsNone(outcome.of(dict(self.rows, rows=[['2'], ['1']]), 1, 1, True, mirror=True))

    def test_an_error_must_stay_one(self):
        outcome = Outcome(dict(kind='error', code='2200'), False)
        self.assertEqual(outcome.of(self.rows, 1, None, True), 'rows')
        self.assertIsNone(outcome.of(dict(kind='error', code='2200'), 0, 2, True))

    def test_a_share_is_the_same_each_time(self):
        asked = [n for n in range(1000) if Share(10, 'x').has(n)]
        self.assertEqual(asked, [n for n in range(1000) if Share(10, 'x').has(n)])
        self.assertTrue(50 < len(asked) < 200)
        self.assertNotEqual(asked, [n for n in range(1000) if Share(10, 'y').has(n)])


class Reports(unittest.TestCase):
    title = ('x/select.cql', None)

    class Asked:
        step, number = step('SELECT'), 0

    def report(self, deviation=None):
        forms = {'1.0': {deviation: ['literal v5 pages of 1']}} if deviation else {}
        return Report(Deviations({'select': dict(digest='', writes={'json': [3]}, forms=forms)}), quiet=True)

    def counted(self, theirs, ours):
        report = self.report(theirs)
        report.count(self.title, 'literal v5 pages of 1', ours, self.Asked, {}, {})
        return len(report.found)

    def test_a_form_must_deviate_as_with_cassandra(self):
        self.assertEqual(self.counted(None, None), 0)
        self.assertEqual(self.counted('2200', '2200'), 0)
        self.assertEqual(self.counted('2200', None), 1)
        self.assertEqual(self.counted(None, 'rows'), 1)
        # where its own forms disagree, or it fails by mistake, any will do
        self.assertEqual(self.counted('rows', None), 0)
        self.assertEqual(self.counted('1200', '2200'), 0)

    def test_modifications_too(self):
        report = self.report()
        report.differ('x/select.cql', 3, 'json', '', '')
        self.assertEqual(report.found, [])
        report.differ('x/select.cql', 4, 'json', '', '')
        self.assertEqual(report.found, [('select:4', 'json')])

    def test_names_of_forms_fold(self):
        forms = [name(w, v, m, s) for w in ('literal', 'values') for v in (5, 4) for m in (False, True) for s in (None, 1, 100)] + ['mirrored']
        short = folded(forms)
        self.assertEqual(len(short), 3)
        self.assertEqual(sorted(unfolded(short)), sorted(forms))

    def test_the_warning_of_use_is_not_compared(self):
        self.assertEqual(untold_use([dict(kind='prepared', warnings=['`USE <keyspace>` ...'])]), [dict(kind='prepared')])
        self.assertEqual(untold_use([dict(kind='rows', warnings=['x'])]), [dict(kind='rows', warnings=['x'])])


class Families(unittest.TestCase):
    def test_names_are_given_once(self):
        names = [case.name for case in all_cases()]
        self.assertEqual(len(set(names)), len(names))
        self.assertTrue(len(names) > 150 and len(PLANTED) >= 12)

    def test_statements_have_places_for_numbers(self):
        for case in all_cases():
            case.statement.format(t='t', n=1, third=1)


if __name__ == '__main__':
    unittest.main()
