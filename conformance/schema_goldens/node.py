"""A node as recorders of schemas ask it: statements, and a SCHEMA_PULL without being a member."""

import os
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'oracle'), os.path.join(HERE, '..', 'hostile')]

import wire  # noqa: E402
from internode import SCHEMA_PULL, SCHEMA_VERSION, Ear, Peer, message  # noqa: E402

STATEMENT_SECONDS, ANSWER_SECONDS = 60, 15
# The verb of an answer, above that of its request.
ANSWER = 60


class Cql:
    def __init__(self, host):
        self.connection = wire.Connection(host, version=4, timeout=STATEMENT_SECONDS)

    def query(self, cql):
        """A dict: err | void | event | rows (bytes) with columns; and warnings."""
        answer, out = self.connection.query(cql), {}
        if 'warnings' in answer:
            out['warn'] = answer['warnings']
        if answer['kind'] == 'error':
            out['err'] = [answer['code'], answer['message']]
        elif answer['kind'] == 'void':
            out['void'] = True
        elif answer['kind'] == 'schema_change':
            # types of arguments are no part of it
            out['event'] = answer['change'][:4]
        elif answer['kind'] == 'rows':
            out['columns'] = [name for _, _, name, _ in answer['metadata']['columns']]
            out['rows'] = answer['rows']
        return out


class Internode:
    """Pulls the schema from a node without being a member."""

    def __init__(self, me, peer):
        self.ear, self.peer, self.number = Ear(me), Peer(peer, me), 1

    def call(self, verb):
        self.number += 1
        key = self.number, verb + ANSWER
        self.peer.say(message(self.number, verb, flags=0))
        answers = self.ear.wait(lambda heard: heard.get(key), ANSWER_SECONDS)
        self.ear.forget()
        return answers[0]

    def pull(self):
        return self.call(SCHEMA_PULL)

    def version(self):
        return str(uuid.UUID(bytes=self.call(SCHEMA_VERSION)))
