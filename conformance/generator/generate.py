"""Writes the generated part of the corpus: generate.py [--seed N] [--out DIR]

    gen_literals.cql      every native type: literals good and bad, extremes, read back with their bytes
    gen_paging.cql        page sizes over partitions of many shapes
    gen_restrictions.cql  random primary-key restrictions over a table of three clustering columns
    gen_merge.cql         random writes and deletions with explicit timestamps and TTLs, then everything read back
    value_edges.cql       values at the edges of each type, bound and within each other, as keys and conditions
    value_functions.cql   what functions, operators and casts make of values at the ends of their ranges
    gen_tables.cql        random tables: written, read and altered by random statements, literal, bound and prepared

The first two, and those of values, know no chance. The others are one seed's: without --seed those that conformance/golden has answers to.
"""

import argparse
import os
import random

from literals import literals
from merge import merge
from paging import paging
from restrictions import restrictions
from scenes import tables
from value_edges import value_edges
from value_functions import value_functions

HERE = os.path.dirname(os.path.abspath(__file__))
SCENES = 28

# file -> (what it is, the seed of the recorded one, its lines of a random source)
FILES = {
    'gen_literals': ('Literals of every native type, their bytes, orders and tokens.', None, lambda _: literals()),
    'gen_paging': ('Page sizes from one row up.', None, lambda _: paging()),
    'gen_restrictions': ('Random primary-key restrictions, valid and not, in reads and writes.', 20, restrictions),
    'gen_merge': ('Random writes and deletions at explicit timestamps, read back while they pile up.', 21, merge),
    'value_edges': ('Values at the edges of each type.', None, lambda _: value_edges()),
    'value_functions': ('Functions of values at the ends of their ranges.', None, lambda _: value_functions()),
    'gen_tables': ('Random tables, and random statements over each.', 22, lambda r: tables(r, SCENES)),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--seed', type=int)
    parser.add_argument('--out', default=os.path.join(HERE, '..', 'corpus'))
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for name, (what, recorded, lines) in FILES.items():
        seed = recorded if args.seed is None else f'{args.seed} {name}'
        with open(os.path.join(args.out, name + '.cql'), 'w', encoding='utf-8') as f:
            f.write(f'-- {what} Written by generate.py.\n' + '\n'.join(lines(random.Random(seed))) + '\n')


if __name__ == '__main__':
    main()
