"""Drives the unmodified cqlsh (PyPI) against one server or two and compares what it prints, line for line.

    run.py CQLSH HOST[:PORT] [HOST[:PORT]] [--rows N]

Identifiers, times, rates and addresses are replaced by names before the comparison. Exit code 1 when lines differ or when
a COPY lost rows.
"""

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT_SECONDS = 600
RULES = [
    (r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', '<uuid>'),
    (r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+[+\-]\d{4}', '<time>'),
    (r'Connected to .* at .*', 'Connected to <cluster>'),
    (r'\b127\.0\.0\.\d+(:\d+)?', '<address>'),
    (r'(Rate|Avg\. rate):\s+\d+ rows/s', r'\1: <rate>'),
    (r'in \d+[\w ,.]*seconds', 'in <seconds>'),
    (r'in \d+\.\d+ seconds', 'in <seconds>'),
    (r'from \d+ files? in .*', 'from <files>'),
    (r'Starting copy of .*', 'Starting copy'),
    (r'Using \d+ child processes', 'Using <n> child processes'),
    (r'using \d+ child processes', 'using <n> child processes'),
    (r"<stdin>:\d+:|[^ ]*script\.cql:\d+:", '<script>:'),
    (r'/[^ \']*/(in|out)\.csv', r'<\1.csv>'),
    (r'^(Cluster|Partitioner|Snitch): .*', r'\1: <\1>'),
]


def server(text):
    host, _, port = text.partition(':')
    return host, port or '9042'


def normal(text):
    lines = []
    for line in re.split(r'[\r\n]', text):
        for pattern, name in RULES:
            line = re.sub(pattern, name, line)
        if line.startswith('Processed:') or 'Warning: ' in line and 'cqlsh' in line or not line.strip():
            continue  # progress of COPY comes in as many lines as it likes
        lines.append(line.rstrip())
    return lines


def write_csv(path, rows):
    """Awkward text now and then: commas, quotes, non-ASCII, empty (null). No line breaks: cqlsh cuts its chunks there."""
    oddities = ['plain', '"with, comma"', '"with ""quotes"""', 'caf\u00e9', '']
    with open(path, 'w', encoding='utf-8') as f:
        for n in range(rows):
            f.write(f'{n % 1000},{n},{oddities[n % len(oddities)]},{n * 0.5},{"True" if n % 3 else "False"}\n')


def run(cqlsh, host, port, rows):
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, 'in.csv'), os.path.join(folder, 'out.csv')
        write_csv(source, rows)
        script = os.path.join(folder, 'script.cql')
        text = open(os.path.join(HERE, 'script.cql'), encoding='utf-8').read()
        with open(script, 'w', encoding='utf-8') as f:
            f.write(text.replace('@IN@', source).replace('@OUT@', target))
        done = subprocess.run([cqlsh, host, port, '--no-color', '--request-timeout=60', '--connect-timeout=30', '-f', script],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=TIMEOUT_SECONDS, cwd=folder,
                              env=dict(os.environ, TZ='UTC', LC_ALL='C.UTF-8', PYTHONWARNINGS='ignore'))
        problems = []
        out = sorted(open(target, encoding='utf-8', newline='').read().split('\r\n')) if os.path.exists(target) else None
        if out is None:
            problems.append('COPY TO wrote no file')
        else:
            records = [r for r in out if r]
            if len(records) != rows:
                problems.append(f'COPY TO wrote {len(records)} records, {rows} went in')
        return normal(done.stdout), out, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('cqlsh', type=os.path.abspath)
    parser.add_argument('servers', nargs='+')
    parser.add_argument('--rows', type=int, default=100000)
    parser.add_argument('--print', action='store_true')
    args = parser.parse_args()
    results = []
    for text in args.servers[:2]:
        lines, out, problems = run(args.cqlsh, *server(text), args.rows)
        results.append((lines, out, problems))
        print(f'{text}: {len(lines)} lines' + (''.join(f'; {p}' for p in problems)), flush=True)
        if args.print or problems:
            print('\n'.join('    ' + line for line in lines))
    failed = any(problems for _, _, problems in results)
    if len(results) == 2:
        (ours, our_csv, _), (theirs, their_csv, _) = results
        difference = list(difflib.unified_diff(theirs, ours, args.servers[1], args.servers[0], lineterm='', n=1))
        print('\n'.join(difference[:200]))
        same = not difference and our_csv == their_csv
        print(f'{len(theirs)} lines compared, ' + ('the same' if same else 'different'))
        failed = failed or not same
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
