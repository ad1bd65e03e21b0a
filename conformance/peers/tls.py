"""TLS between nodes, with nodes of its own: who may speak to whom, and what refuses the others.

    tls.py HELENUS NODETOOL FOLDER IP IP [--cassandra SCRIPT] [--only NAME]    the programs, a folder to work in, two addresses; prints `ok NAME` for
        each check. With SCRIPT (conformance/peer/cassandra) the second node is a real Cassandra in one more of them.
"""

import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / 'oracle'))

import wire  # noqa: E402

START_SECONDS, STOP_SECONDS, NEWS_SECONDS = 60, 60, 60
PORT = 7000
SECRET = 'pass word'
CLUSTER = 'peer'
CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


class Node:
    """A Helenus that joins the ring of a seed; it ends with the block it is made for."""

    def __init__(self, place, ip, seed, *settings, name=None):
        self.place, self.ip, self.said = place, ip, []
        self.data = place.folder / (name or ip)
        shutil.rmtree(self.data, ignore_errors=True)
        seeds = "seed_provider={class_name: SimpleSeedProvider, parameters: {seeds: '%s'}}" % seed
        args = [place.program, '--data-dir', str(self.data), '--shards', '2', '--listen', ip]
        for setting in (f'metrics_address={ip}', 'auto_bootstrap=false', f'cluster_name={CLUSTER}', seeds, *settings):
            args += ['--set', setting]
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.serves = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if 'Starting listening' in line:
                self.serves.set()
        self.serves.set()

    def until_it_serves(self):
        assert self.serves.wait(START_SECONDS) and self.process.poll() is None, f'{self.ip} does not serve: {self.said[-5:]}'
        return self

    def says(self, text):
        def lines():
            c = wire.Connection(self.ip)
            said = [row[0].decode() for row in c.query('SELECT message FROM system_views.system_logs')['rows']]
            c.close()
            return said
        until(lambda: any(text in line for line in lines()), f'{self.ip} does not say {text!r}: {lines()}')

    def sees(self, nodes):
        def up():
            out = subprocess.run([self.place.nodetool, '--data-dir', str(self.data), 'status'], capture_output=True, text=True).stdout
            return sum(line.startswith('UN ') for line in out.splitlines())
        until(lambda: up() == nodes, f'{self.ip} does not see {nodes} nodes')

    def sees_still(self, nodes):
        out = subprocess.run([self.place.nodetool, '--data-dir', str(self.data), 'status'], capture_output=True, text=True).stdout
        known = [line for line in out.splitlines() if line[:2] in ('UN', 'DN', 'UJ', 'DJ')]
        assert len(known) == nodes, out

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


def until(holds, what):
    end = time.monotonic() + NEWS_SECONDS
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.1)


class Place:
    def __init__(self, program, nodetool, folder, ips, cassandra):
        self.program, self.nodetool, self.ips, self.cassandra = program, nodetool, ips, cassandra
        self.folder = pathlib.Path(folder).absolute()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for ca in ('ca', 'stranger-ca'):
            self.openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', f'{ca}.key', '-out', f'{ca}.pem', '-subj',
                         f'/CN={ca}', '-days', '3650', '-addext', 'basicConstraints=critical,CA:TRUE')
        # what one node of this machine says to another comes from 127.0.0.1
        for name, ca, ip in (('first', 'ca', ips[0]), ('second', 'ca', ips[1]), ('elsewhere', 'ca', '10.0.0.1'), ('stranger', 'stranger-ca', ips[1])):
            self.certify(name, ca, ip)

    def openssl(self, *args):
        subprocess.run(['openssl', *args], cwd=self.folder, check=True, capture_output=True)

    def certify(self, name, ca, ip):
        here = '' if name == 'elsewhere' else ',IP:127.0.0.1'
        (self.folder / 'ext').write_text(f'subjectAltName=IP:{ip}{here}\n')
        self.openssl('req', '-newkey', 'rsa:2048', '-nodes', '-keyout', f'{name}.key', '-out', f'{name}.csr', '-subj', f'/CN={name}')
        self.openssl('x509', '-req', '-in', f'{name}.csr', '-CA', f'{ca}.pem', '-CAkey', f'{ca}.key', '-CAcreateserial', '-out',
                     f'{name}.crt', '-days', '3650', '-extfile', 'ext')
        self.openssl('pkcs12', '-export', '-inkey', f'{name}.key', '-in', f'{name}.crt', '-certfile', f'{ca}.pem', '-out',
                     f'{name}.p12', '-passout', f'pass:{SECRET}', '-name', name)

    def options(self, name, trusted='ca.pem', **more):
        return dict(internode_encryption='all', keystore=self.folder / f'{name}.p12', keystore_password=SECRET,
                    truststore=self.folder / trusted, truststore_password='' if trusted.endswith('.pem') else SECRET,
                    require_client_auth='true', store_type='PKCS12', **more)

    def tls(self, name, *args, **more):
        return [f'server_encryption_options.{key}={value}' for key, value in self.options(name, *args, **more).items()]

    def two(self, first, second):
        """Two nodes, up at once: (the first, the second)."""
        return Node(self, self.ips[0], self.ips[0], *first), Node(self, self.ips[1], self.ips[0], *second)


def written_and_read(first, second):
    """What is written at ALL through the one is read at ALL through the other, large values too."""
    c, d = wire.Connection(first), wire.Connection(second)
    for cql in ("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2}",
                'CREATE TABLE ks.t (k int PRIMARY KEY, v blob)'):
        assert c.query(cql)['kind'] == 'schema_change', cql
    everyone = wire.Options(consistency='ALL')
    for one in (c, d):  # each has the schema, and sees the other as up
        until(lambda: one.query('SELECT * FROM ks.t', everyone)['kind'] == 'rows', 'a read at ALL has no answer')
    for k, size in enumerate((10, 10_000, 300_000)):
        answer = c.query(f"INSERT INTO ks.t (k, v) VALUES ({k}, 0x{'ab' * size})", everyone)
        assert answer['kind'] == 'void', answer
        answer = d.query(f'SELECT v FROM ks.t WHERE k = {k}', everyone)
        assert answer['rows'] == [[b'\xab' * size]], k
    c.close()
    d.close()


def initiate(ip):
    """How a node begins that is at an address."""
    flags = 1 | 12 << 8 | 12 << 16 | 12 << 24
    head = struct.pack('>II', 0xCA552DFA, flags) + b'\x06' + socket.inet_aton(ip) + struct.pack('>H', PORT)
    return head + struct.pack('>I', zlib.crc32(bytes.fromhex('fa2d55ca') + head))


def answered(s, what):
    """What comes back: nothing, if the other side closes."""
    try:
        s.sendall(what)
        return s.recv(100)
    except (ConnectionError, ssl.SSLError):
        return b''


@check
def two_nodes_share_a_ring(place):
    first, second = place.two(place.tls('first'), place.tls('second'))
    with first, second:
        first.until_it_serves().sees(2)
        second.until_it_serves().sees(2)
        written_and_read(first.ip, second.ip)


@check
def a_node_that_does_not_encrypt_is_refused(place):
    with Node(place, place.ips[0], place.ips[0], *place.tls('first')) as first:
        first.until_it_serves()
        with socket.create_connection((first.ip, PORT), 5) as s:
            assert answered(s, initiate(place.ips[1])) == b''
        first.says(f'/{place.ips[1]}:{PORT} sent plaintext')
        first.sees_still(1)


@check
def it_is_not_where_that_is_optional(place):
    with Node(place, place.ips[0], place.ips[0], *place.tls('first', optional='true')) as first:
        first.until_it_serves()
        with socket.create_connection((first.ip, PORT), 5) as s:
            assert len(answered(s, initiate(place.ips[1]))) == 12


@check
def a_node_without_certificate_or_of_strangers_is_refused(place):
    with Node(place, place.ips[0], place.ips[0], *place.tls('first')) as first:
        first.until_it_serves()
        for name, is_taken in ((None, False), ('stranger', False), ('second', True)):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if name:
                context.load_cert_chain(place.folder / f'{name}.crt', place.folder / f'{name}.key')
            with socket.create_connection((first.ip, PORT), 5) as plain, context.wrap_socket(plain) as s:
                assert (len(answered(s, initiate(place.ips[1]))) == 12) == is_taken, name
        first.sees_still(1)


@check
def a_node_of_strangers_is_not_dialed(place):
    first, second = place.two(place.tls('first'), place.tls('stranger'))
    with first, second:
        first.until_it_serves()
        first.says('connection from /127.0.0.1 ended: ')
        first.sees_still(1)


@check
def certificates_are_of_their_address_where_that_is_wanted(place):
    wanted = dict(require_endpoint_verification='true')
    first, second = place.two(place.tls('first', **wanted), place.tls('second', **wanted))
    with first, second:
        first.until_it_serves().sees(2)
    first, second = place.two(place.tls('first', **wanted), place.tls('elsewhere'))
    with first, second:
        first.until_it_serves()
        first.says('has no certificate for its address 127.0.0.1')
        first.sees_still(1)


@check
def tls_is_refused_where_there_is_none(place):
    with Node(place, place.ips[0], place.ips[0]) as first:
        first.until_it_serves()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection((first.ip, PORT), 5) as plain:
            try:
                context.wrap_socket(plain)
                raise AssertionError('there is TLS')
            except (ssl.SSLError, ConnectionError):
                pass
        first.says('it speaks TLS')


def garbage(ip):
    """(name, what a port is sent where all is encrypted)"""
    yield 'a node without TLS', initiate(ip)
    yield 'a stream without TLS', struct.pack('>II', 0xCA552DFA, 0x0C0C0C08) + bytes(30)
    yield 'a client', bytes.fromhex('040000000500000000')
    yield 'another protocol', b'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
    yield 'zeros', bytes(5000)
    hello = bytes.fromhex('16030100c8010000c40303')
    yield 'a hello of zeros', hello + bytes(200)
    yield 'a hello of ones', hello + b'\xff' * 200
    yield 'a hello of 16 MB', bytes.fromhex('1603014000 01ffffff') + bytes(1 << 20)
    yield 'a record of an old version', bytes.fromhex('160200ffff') + bytes(70_000)
    yield 'an alert', bytes.fromhex('15030300020228')
    yield 'data before a handshake', bytes.fromhex('1703030100') + bytes(256)
    yield 'a hello in records of one byte', b''.join(bytes.fromhex('1603010001') + bytes([byte]) for byte in hello[5:] + bytes(190))
    for seed in range(20):
        noise = random.Random(seed).randbytes(300)
        yield f'noise {seed}', noise if seed % 2 else b'\x16\x03\x01' + struct.pack('>H', 295) + noise[5:]


@check
def what_is_no_tls_is_refused(place):
    settings = [*place.tls('first'), 'request_timeout=1s']
    with Node(place, place.ips[0], place.ips[0], *settings) as first:
        first.until_it_serves()
        for name, data in garbage(place.ips[1]):
            with socket.create_connection((first.ip, PORT), 5) as s:
                s.settimeout(10)
                with contextlib.suppress(OSError):  # it may be closed in the middle
                    s.sendall(data)
                    s.shutdown(socket.SHUT_WR)
                try:
                    said = b''.join(iter(lambda: s.recv(4096), b''))
                except ConnectionError:
                    said = b''
                # nothing but the alert that there may be
                assert said[:1] in (b'', b'\x15') and len(said) < 100, (name, said)
        with socket.create_connection((first.ip, PORT), 5) as s:
            s.settimeout(10)
            assert s.recv(1) == b'', 'who says nothing is waited for'
        first.says('connection from /127.0.0.1 ended: ')
        first.says(f'/{place.ips[1]}:{PORT} sent plaintext')
        first.says('it did not complete the handshake in time')
        first.sees_still(1)
        wire.Connection(first.ip).close()


def with_cassandra(place):
    """A real Cassandra that wants TLS of all, and of them a certificate."""
    folder = place.folder / 'cassandra'
    subprocess.run(['keytool', '-importcert', '-noprompt', '-alias', 'ca', '-file', 'ca.pem', '-keystore', 'ca.p12', '-storetype', 'PKCS12',
                    '-storepass', SECRET], cwd=place.folder, check=True, capture_output=True)
    options = place.options('second', 'ca.p12')
    yaml = 'server_encryption_options: {' + ', '.join(f'{k}: "{v}"' if k not in ('require_client_auth',) else f'{k}: {v}'
                                                       for k, v in options.items()) + '}'
    env = dict(os.environ, FAST='1', EXTRA_YAML=yaml)
    subprocess.run([place.cassandra, 'start', folder, place.ips[1], '768M'], env=env, check=True)
    try:
        with Node(place, place.ips[0], place.ips[1], *place.tls('first')) as node:
            node.until_it_serves().sees(2)
            written_and_read(node.ip, place.ips[1])
    finally:
        subprocess.run([place.cassandra, 'stop', folder], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('program')
    parser.add_argument('nodetool')
    parser.add_argument('folder')
    parser.add_argument('ips', nargs=2)
    parser.add_argument('--cassandra')
    parser.add_argument('--only')
    args = parser.parse_args()
    place, failed = Place(args.program, args.nodetool, args.folder, args.ips, args.cassandra), 0
    wanted = [one for one in CHECKS + ([with_cassandra] if args.cassandra else []) if args.only in (None, one.__name__)]
    for one in wanted:
        started = time.monotonic()
        try:
            one(place)
            print(f'ok {one.__name__} {time.monotonic() - started:.1f} s', flush=True)
        except Exception as error:  # the others are still worth a try
            failed += 1
            print(f'failed {one.__name__}: {error!r}', flush=True)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
