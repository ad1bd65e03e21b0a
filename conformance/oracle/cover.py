"""Runs the whole corpus on real Cassandras under JaCoCo, for coverage.py: what it answers is not looked at here.

    cover.py EXEC FOLDER IP IP [STAGE...]    adds to EXEC what the stages ran; FOLDER is for the servers, on these two addresses

Stages: `default` (corpus/, on a server of defaults), `roles` (roles/, settings/, where one logs in), `limits` (guardrails/, with both of
its yamls), `ring` (reads of the corpus through one node of two). PEER_CACHE says where the jars are.
"""

import argparse
import contextlib
import glob
import os
import subprocess
import sys
import time

import wire
from corpus import parse
from run import Replicated, Server

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, '..')
PEER = os.path.join(ROOT, 'peer', 'cassandra')
HEAP = '1G'
SUPER, PLAIN = 'cassandra:cassandra', 'plain:pw'
LOGIN = {'AUTHENTICATOR': 'PasswordAuthenticator', 'AUTHORIZER': 'CassandraAuthorizer'}
NO_DELAY = '-Dcassandra.superuser_setup_delay_ms=0'
MASKS = 'dynamic_data_masking_enabled: true'
DROP_COMPACT = 'drop_compact_storage_enabled: true'
UNCACHED = [f'{what}_validity: 0ms' for what in ('roles', 'permissions', 'credentials')]
READS = ['cover_selections', 'select', 'gen_paging', 'selections', 'aggregates', 'collections', 'cover_restrictions']
READS_OF_ALL = ['cover_restrictions', 'counters']
LOGIN_SECONDS = 90
PATIENCE = 600  # seconds for an answer: under JaCoCo and beside other work DROP KEYSPACE of many tables takes more than half a minute


@contextlib.contextmanager
def cassandra(args, ip, **settings):
    """A server that adds what it ran to EXEC when it stops."""
    folder = os.path.join(args.folder, ip + '-' + args.stage)
    started = dict(os.environ, JACOCO=os.path.abspath(args.exec), FAST='1', **settings)
    subprocess.run([PEER, 'start', folder, ip, HEAP], check=True, env=started)
    try:
        yield
    finally:
        subprocess.run([PEER, 'stop', folder], check=True)


def run(server, files):
    """All statements of files."""
    for path in files:
        begun = time.monotonic()
        server.clean()
        for step in parse(path):
            server.run(step)
        print(f'{os.path.basename(path)}: {time.monotonic() - begun:.1f} s', flush=True)
    server.clean()


def corpus(*names):
    """The paths of files of the corpus: those named, or all."""
    return [os.path.join(ROOT, 'corpus', name + '.cql') for name in names] or sorted(glob.glob(os.path.join(ROOT, 'corpus', '*.cql')))


def default(args):
    with cassandra(args, args.ips[0]):
        run(Server(args.ips[0]), corpus())


def roles(args):
    with cassandra(args, args.ips[0], EXTRA_JVM=NO_DELAY, EXTRA_YAML='\n'.join(UNCACHED + [MASKS, DROP_COMPACT]), **LOGIN):
        subprocess.run([sys.executable, os.path.join(ROOT, 'roles', 'roles.py'), args.ips[0]], check=True)
        settings = [os.path.join(ROOT, 'settings', name + '.cql') for name in ('masks', 'compact_drop')]
        run(Server(args.ips[0], login=SUPER), settings + corpus('roles', 'describe'))


def limits(args):
    lines = {}
    for name in ('guardrails', 'limits'):
        with open(os.path.join(ROOT, 'guardrails', name + '.yaml'), encoding='utf-8') as f:
            for line in f.read().splitlines():
                lines.setdefault(line.partition(':')[0], line)
    with cassandra(args, args.ips[0], EXTRA_JVM=NO_DELAY, EXTRA_YAML='\n'.join([*lines.values(), MASKS]), **LOGIN):
        plain_role(args.ips[0])
        run(Server(args.ips[0], login=PLAIN), [os.path.join(ROOT, 'guardrails', 'guardrails.cql')])
        run(Server(args.ips[0], login=SUPER), [os.path.join(ROOT, 'guardrails', 'limits.cql')])


def plain_role(ip):
    """A role without SUPERUSER that may do all, for guardrails touch no others."""
    end = time.monotonic() + LOGIN_SECONDS
    while True:
        try:
            c = wire.Connection(ip, version=5, user='cassandra', password='cassandra')
            break
        except (wire.Closed, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(1)
    name, password = PLAIN.split(':')
    for cql in (f"CREATE ROLE {name} WITH PASSWORD = '{password}' AND LOGIN = true",
                f'GRANT ALL ON ALL KEYSPACES TO {name}', f'GRANT ALL ON ALL FUNCTIONS TO {name}'):
        if (answer := c.query(cql))['kind'] == 'error':
            raise RuntimeError(answer)


def ring(args):
    both = dict(SEEDS=args.ips[0], NUM_TOKENS='4')
    with cassandra(args, args.ips[0], **both), cassandra(args, args.ips[1], **both):
        server = Replicated(args.ips[0])
        server.level = 'ONE'
        run(server, corpus(*READS))
        server = Replicated(args.ips[0])
        server.replicas = 2
        run(server, corpus(*READS_OF_ALL))


STAGES = {stage.__name__: stage for stage in (default, roles, limits, ring)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('exec')
    parser.add_argument('folder')
    parser.add_argument('ips', nargs=2)
    parser.add_argument('stages', nargs='*', metavar='STAGE')
    args = parser.parse_args()
    wire.Connection.patience = PATIENCE
    for args.stage in args.stages or STAGES:
        STAGES[args.stage](args)
    return 0


if __name__ == '__main__':
    sys.exit(main())
