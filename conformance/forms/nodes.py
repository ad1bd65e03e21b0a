"""Nodes to ask: started here, alone or as a ring, or one that is there. Where the data of a story lies is said by the operator's client."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time

from run import Replicated, Server

START_SECONDS, STOP_SECONDS, NEWS_SECONDS = 60, 60, 90
CLUSTER = 'forms'


class Programs:
    """The node and the operator's client, and a folder for data."""

    def __init__(self, node, nodetool, folder):
        self.node, self.nodetool, self.folder = node, nodetool, folder


class Node:
    """A Helenus on an empty directory."""

    def __init__(self, programs, ip, shards, seed=None, settings=()):
        self.programs, self.ip, self.said, self.serves = programs, ip, [], threading.Event()
        self.data = os.path.join(programs.folder, ip)
        shutil.rmtree(self.data, ignore_errors=True)
        settings = [f'metrics_address={ip}', *settings]
        if seed:
            seeds = "seed_provider={class_name: SimpleSeedProvider, parameters: {seeds: '%s'}}" % seed
            settings += ['auto_bootstrap=false', f'cluster_name={CLUSTER}', seeds]
        args = [programs.node, '--data-dir', self.data, '--shards', str(shards), '--listen', ip]
        for setting in settings:
            args += ['--set', setting]
        self.process = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, daemon=True).start()
        if not self.serves.wait(START_SECONDS) or self.process.poll() is not None:
            raise RuntimeError(f'{ip} does not serve: {self.said[-5:]}')

    def _read(self):
        for line in self.process.stdout:
            self.said.append(line.rstrip())
            if 'Starting listening' in line:
                self.serves.set()
        self.serves.set()

    def nodetool(self, *words):
        done = subprocess.run([self.programs.nodetool, '--data-dir', self.data, *words], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f'nodetool {" ".join(words)}: {done.stdout}{done.stderr}')
        return done.stdout

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


class Layout:
    """Nodes with as many shards, what a keyspace of one replica has, and where the data lies."""

    def __init__(self, shards=2, ring=1, replicas=None, place='memory'):
        self.shards, self.ring, self.replicas, self.place = shards, ring, replicas, place

    def __str__(self):
        ring = f', ring of {self.ring}, {self.replicas} replicas' if self.ring > 1 else ''
        return f'{self.place}, {self.shards} shards{ring}'


class Running:
    """The nodes of a layout; a file's story begins at the first."""

    def __init__(self, layout, programs=None, ips=(), host=None):
        self.layout, self.nodes = layout, []
        if host:
            self.servers = [Server(host)]
            return
        # what is flushed is to be read from the files
        settings = [] if layout.place in ('memory', 'kept') else ['memtable_keeps_flushed=false']
        try:
            for ip in ips[:layout.ring]:
                self.nodes.append(Node(programs, ip, layout.shards, ips[0] if layout.ring > 1 else None, settings))
            if layout.ring > 1:
                self._until_all_see_all()
        except BaseException:
            self.stop()
            raise
        self.servers = [self._server(node.ip) for node in self.nodes]

    def _server(self, ip):
        if self.layout.replicas is None:
            return Server(ip)
        server = Replicated(ip)
        server.replicas = self.layout.replicas
        server.level = 'ALL'
        return server

    def _until_all_see_all(self):
        end = time.monotonic() + NEWS_SECONDS
        while any(sum(line.startswith('UN ') for line in node.nodetool('status').splitlines()) < len(self.nodes) for node in self.nodes):
            if time.monotonic() > end:
                raise RuntimeError('the nodes of the ring do not see each other')
            time.sleep(0.2)

    def stop(self):
        for node in self.nodes:
            try:
                node.stop()
            except Exception as e:  # the others are to be stopped, too
                print(f'{node.ip} did not stop: {e}', file=sys.stderr)


FLUSH_EVERY = 3


class Place:
    """Where the data of a story lies when it is read. `memory`, `kept` (flushed, and kept in memory too), `one` SSTable, `several`,
    `compacted`, `half` in an SSTable and half in memory."""

    NAMES = ('memory', 'kept', 'one', 'several', 'compacted', 'half')

    def __init__(self, running):
        self.running, self.name, self.written, self.middle = running, running.layout.place, 0, None

    def all(self, verb):
        """A verb for the keyspaces of the corpus, on each node."""
        if self.running.nodes:
            answer = self.running.servers[0].connection(4).query('SELECT keyspace_name FROM system_schema.keyspaces')
            for keyspace in (row[0].decode() for row in answer['rows']):
                if keyspace.lower().startswith('cf_'):
                    for node in self.running.nodes:
                        node.nodetool(verb, keyspace)

    def wrote(self, run_of):
        """After a modification: the story has `run_of` of them from the last read to the next."""
        self.written += 1
        if self.name in ('several', 'compacted') and self.written % FLUSH_EVERY == 0 or self.name == 'half' and self.written == (run_of + 1) // 2:
            self.all('flush')

    def before_reads(self):
        """Before the first read that follows modifications."""
        if not self.written:
            return
        self.written = 0
        if self.name in ('kept', 'one', 'several', 'compacted'):
            self.all('flush')
        if self.name in ('one', 'compacted'):
            self.all('compact')
