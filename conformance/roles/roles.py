"""Who may do what, asked of a server with PasswordAuthenticator and CassandraAuthorizer: logins, a story of statements
about roles, and a matrix of every statement under every grant. Cassandra 5.0.9's answers are in `golden.txt`.

    roles.py HOST              compare with golden.txt; the exit code says whether all are the same
    roles.py HOST --record     write golden.txt; the server is a Cassandra
    roles.py HOST --show       only print

The superuser is `cassandra` with the password `cassandra`. A Cassandra is started with `roles_validity`,
`permissions_validity` and `credentials_validity` of 0ms, else it remembers for a while what is no longer so.
"""

import difflib
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / 'oracle'))

import wire  # noqa: E402

SUPER = ('cassandra', 'cassandra')
WAIT_SECONDS = 90
# What a server says of a statement that it does not know yet; that is then not compared.
UNSERVED = 'is not supported yet'
CODES = {0x0000: 'SERVER_ERROR', 0x000A: 'PROTOCOL_ERROR', 0x0100: 'BAD_CREDENTIALS', 0x1001: 'OVERLOADED',
         0x2000: 'SYNTAX_ERROR', 0x2100: 'UNAUTHORIZED', 0x2200: 'INVALID', 0x2300: 'CONFIG_ERROR', 0x2400: 'ALREADY_EXISTS'}

# Of the password `pw`, as jBCrypt writes it with four rounds.
HASH = '$2a$04$abcdefghijklmnopqrstuuyvPXIbu7xe6/CED2DzX8z6Si09MlzlW'


def shown(answer):
    """An answer in a line or a few."""
    out = [f'warning: {w}' for w in answer.get('warnings', [])]
    kind = answer['kind']
    if kind == 'error':
        code = CODES.get(answer['code'], hex(answer['code']))
        # the wording of an exception that nobody meant is Java's
        out.append(code if code == 'SERVER_ERROR' else f'{code} {answer["message"]}')
    elif kind == 'rows':
        columns = answer['metadata']['columns']
        out.append('rows of ' + ', '.join(f'{c[0]}.{c[1]}.{c[2]} {c[3]}' for c in columns))
        for row in answer['rows']:
            out.append('  ' + ' | '.join(cell(c, v) for c, v in zip(columns, row)))
    else:
        out.append(kind)
    return out


def cell(column, value):
    if value is None:
        return 'null'
    return value.decode() if column[3] in ('varchar', 'text') else '0x' + value.hex()


def connect(host, user, password, version=5):
    return wire.Connection(host, version=version, user=user, password=password)


def superuser(host):
    """A connection of the superuser, who may be made a while after the server starts."""
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            return connect(host, *SUPER)
        except wire.Closed:
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


# Logins

TOKENS = [
    ('the right password', b'\0cassandra\0cassandra'),
    ('with an authorization id', b'other\0cassandra\0cassandra'),
    ('a wrong password', b'\0cassandra\0wrong'),
    ('the password in other case', b'\0cassandra\0CASSANDRA'),
    ('an unknown user', b'\0nobody\0cassandra'),
    ('a user in other case', b'\0Cassandra\0cassandra'),
    ('no password', b'\0cassandra\0'),
    ('no user', b'\0\0cassandra'),
    ('nothing', b''),
    ('one part', b'cassandra'),
    ('two parts', b'cassandra\0cassandra'),
    ('four parts', b'\0\0cassandra\0cassandra'),
    ('a role that may not log in', b'\0cf_nologin\0pw'),
    ('a role without a password', b'\0cf_nopassword\0pw'),
    ('a role with a hashed password', b'\0cf_hashed\0pw'),
]


def logins(host, admin):
    out = []
    for role, options in [('cf_nologin', "PASSWORD = 'pw'"), ('cf_nopassword', 'LOGIN = true'),
                          ('cf_hashed', f"HASHED PASSWORD = '{HASH}' AND LOGIN = true")]:
        admin.query(f'DROP ROLE IF EXISTS {role}')
        answer = admin.query(f'CREATE ROLE {role} WITH {options}')
        assert answer['kind'] == 'void', answer
    for version in (3, 4, 5):
        for what, token in TOKENS if version == 5 else TOKENS[:3]:
            c = wire.Connection(host, version=version)
            out += [f'v{version}, {what}'] + indented(shown(c.log_in(token)))
            c.close()
    c = wire.Connection(host)
    out += ['STARTUP'] + indented([c.started['kind'] + ' ' + c.started['authenticator']])
    out += ['a statement before the login'] + indented(shown(c.query('SELECT key FROM system.local')))
    out += ['a wrong password'] + indented(shown(c.log_in(b'\0cassandra\0wrong')))
    out += ['then the right one'] + indented(shown(c.log_in(b'\0cassandra\0cassandra')))
    out += ['and a statement'] + indented(shown(c.query('SELECT key FROM system.local')))
    c.close()
    for role in ('cf_nologin', 'cf_nopassword', 'cf_hashed'):
        admin.query(f'DROP ROLE {role}')
    return out


def indented(lines):
    return ['    ' + line for line in lines]


# The story

def story(host):
    """The statements of story.cql. `-- as USER` says who: the superuser, or a role whose password is `pw`."""
    out, sessions = [], {}
    user = SUPER[0]
    for line in (HERE / 'story.cql').read_text(encoding='utf-8').splitlines():
        if line.startswith('-- as '):
            user = line.removeprefix('-- as ').strip()
            out.append(line)
            sessions.pop(user, None)
        elif line and not line.startswith('--'):
            cql = line.removesuffix(';')
            if user not in sessions:
                password = SUPER[1] if user == SUPER[0] else 'pw'
                sessions[user] = connect(host, user, password)
            out += [cql] + indented(shown(sessions[user].query(cql.replace("'HASH'", f"'{HASH}'"))))
    for c in sessions.values():
        c.close()
    return out


# The matrix

SETUP = [
    "CREATE KEYSPACE cf_m WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE KEYSPACE cf_other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    'CREATE TABLE cf_m.t (k int PRIMARY KEY, v int)',
    'CREATE TABLE cf_m.u (k int PRIMARY KEY, v int)',
    'CREATE TABLE cf_m.c (k int PRIMARY KEY, n counter)',
    'CREATE TYPE cf_m.ty (a int)',
    "CREATE ROLE cf_user WITH PASSWORD = 'pw' AND LOGIN = true",
    "CREATE ROLE cf_target WITH PASSWORD = 'pw' AND LOGIN = true",
    'CREATE ROLE cf_parent',
    'CREATE ROLE cf_super WITH SUPERUSER = true',
    "ADD IDENTITY 'cf_identity' TO ROLE 'cf_target'",
]
TEARDOWN = ['DROP KEYSPACE IF EXISTS cf_m', 'DROP KEYSPACE IF EXISTS cf_other', 'DROP KEYSPACE IF EXISTS cf_new'] + [
    f'DROP ROLE IF EXISTS {r}' for r in ('cf_user', 'cf_target', 'cf_parent', 'cf_super', 'cf_new')] + [
    "DROP IDENTITY IF EXISTS 'cf_identity'", "DROP IDENTITY IF EXISTS 'cf_new'"]

# A statement, and what undoes it where it succeeded.
STATEMENTS = [
    ('USE cf_m', ['USE system']),
    ('DESCRIBE TABLE cf_m.t', []),
    ('SELECT * FROM cf_m.t', []),
    ('SELECT * FROM cf_m.u', []),
    ('SELECT count(*) FROM cf_m.t', []),
    ('SELECT key FROM system.local', []),
    ('SELECT peer FROM system.peers_v2', []),
    ('SELECT * FROM system.built_views', []),
    ('SELECT keyspace_name FROM system_schema.keyspaces LIMIT 0', []),
    ('SELECT keyspace_name FROM system_virtual_schema.keyspaces', []),
    ('SELECT name FROM system_views.settings', []),
    ('SELECT role FROM system_auth.roles', []),
    ('SELECT * FROM system_auth.role_permissions', []),
    ('SELECT session_id FROM system_traces.sessions', []),
    ('SELECT * FROM system_distributed.repair_history', []),
    ('INSERT INTO cf_m.t (k, v) VALUES (1, 1)', []),
    ('INSERT INTO cf_m.t (k, v) VALUES (1, 1) IF NOT EXISTS', []),
    ('UPDATE cf_m.t SET v = 1 WHERE k = 1', []),
    ('UPDATE cf_m.t SET v = 1 WHERE k = 1 IF v = 1', []),
    ('UPDATE cf_m.c SET n = n + 1 WHERE k = 1', []),
    ('DELETE FROM cf_m.t WHERE k = 1', []),
    ('DELETE FROM cf_m.t WHERE k = 1 IF EXISTS', []),
    ('BEGIN BATCH INSERT INTO cf_m.t (k) VALUES (1); INSERT INTO cf_m.u (k) VALUES (1); APPLY BATCH', []),
    ('TRUNCATE cf_m.t', []),
    ("CREATE KEYSPACE cf_new WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ['DROP KEYSPACE cf_new']),
    ('ALTER KEYSPACE cf_m WITH durable_writes = true', []),
    ('DROP KEYSPACE cf_other',
     ["CREATE KEYSPACE cf_other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"]),
    ('CREATE TABLE cf_m.new (k int PRIMARY KEY)', ['DROP TABLE cf_m.new']),
    ('CREATE TABLE IF NOT EXISTS cf_m.t (k int PRIMARY KEY)', []),
    ("ALTER TABLE cf_m.t WITH comment = 'x'", []),
    ('DROP TABLE cf_m.u', ['CREATE TABLE cf_m.u (k int PRIMARY KEY, v int)']),
    ('CREATE TYPE cf_m.new (a int)', ['DROP TYPE cf_m.new']),
    ('ALTER TYPE cf_m.ty RENAME a TO a', []),
    ('DROP TYPE cf_m.ty', ['CREATE TYPE cf_m.ty (a int)']),
    ('CREATE INDEX IF NOT EXISTS ON cf_m.t (nosuch)', []),
    ('DROP INDEX cf_m.nosuch', []),
    ('DROP MATERIALIZED VIEW cf_m.nosuch', []),
    ('DROP FUNCTION cf_m.nosuch', []),
    ('DROP FUNCTION cf_m.nosuch(int)', []),
    ('DROP AGGREGATE cf_m.nosuch', []),
    ("CREATE TRIGGER x ON cf_m.t USING 'x'", []),
    ('DROP TRIGGER x ON cf_m.t', []),
    ('ALTER TABLE system.local ADD x int', []),
    ('DROP TABLE system_auth.roles', []),
    ('CREATE TABLE system_auth.x (k int PRIMARY KEY)', []),
    ('ALTER KEYSPACE system_traces WITH durable_writes = true', []),
    ('CREATE ROLE cf_new', ['DROP ROLE cf_new']),
    ('CREATE ROLE IF NOT EXISTS cf_target', []),
    ('CREATE ROLE cf_new WITH SUPERUSER = true', ['DROP ROLE cf_new']),
    ('ALTER ROLE cf_target WITH LOGIN = true', []),
    ('ALTER ROLE cf_target WITH SUPERUSER = false', []),
    ("ALTER ROLE cf_target WITH ACCESS TO ALL DATACENTERS", []),
    ("ALTER ROLE cf_target WITH ACCESS FROM ALL CIDRS", []),
    ('ALTER ROLE cf_nosuch WITH LOGIN = true', []),
    ('ALTER ROLE cf_user WITH LOGIN = true', []),
    ('ALTER ROLE cf_user WITH SUPERUSER = true', ['ALTER ROLE cf_user WITH SUPERUSER = false']),
    (f"ALTER ROLE cf_user WITH HASHED PASSWORD = '{HASH}'", []),
    ('ALTER ROLE cf_parent WITH SUPERUSER = true', ['ALTER ROLE cf_parent WITH SUPERUSER = false']),
    ('DROP ROLE cf_target', [
        "CREATE ROLE cf_target WITH PASSWORD = 'pw' AND LOGIN = true", "ADD IDENTITY 'cf_identity' TO ROLE 'cf_target'"]),
    ('DROP ROLE cf_super', ['CREATE ROLE cf_super WITH SUPERUSER = true']),
    ('DROP ROLE cf_user', []),
    ('DROP ROLE IF EXISTS cf_nosuch', []),
    ('GRANT cf_parent TO cf_target', ['REVOKE cf_parent FROM cf_target']),
    ('REVOKE cf_parent FROM cf_target', []),
    ('GRANT SELECT ON TABLE cf_m.t TO cf_target', ['REVOKE SELECT ON TABLE cf_m.t FROM cf_target']),
    ('GRANT MODIFY ON KEYSPACE cf_m TO cf_target', ['REVOKE MODIFY ON KEYSPACE cf_m FROM cf_target']),
    ('GRANT AUTHORIZE ON ROLE cf_parent TO cf_target', ['REVOKE AUTHORIZE ON ROLE cf_parent FROM cf_target']),
    ('GRANT SELECT ON KEYSPACE system_auth TO cf_target', ['REVOKE SELECT ON KEYSPACE system_auth FROM cf_target']),
    ('GRANT MODIFY ON KEYSPACE system_auth TO cf_target', []),
    ('GRANT EXECUTE ON ALL FUNCTIONS TO cf_target', ['REVOKE EXECUTE ON ALL FUNCTIONS FROM cf_target']),
    ('GRANT SELECT ON ALL MBEANS TO cf_target', ['REVOKE SELECT ON ALL MBEANS FROM cf_target']),
    ('GRANT SELECT ON TABLE cf_m.nosuch TO cf_target', []),
    ('GRANT SELECT ON TABLE cf_m.t TO cf_nosuch', []),
    ('REVOKE SELECT ON TABLE cf_m.t FROM cf_target', []),
    ('REVOKE SELECT ON TABLE cf_m.t FROM cf_nosuch', []),
    ('LIST ROLES', []),
    ('LIST ROLES OF cf_target', []),
    ('LIST ROLES OF cf_user', []),
    ('LIST USERS', []),
    ('LIST ALL PERMISSIONS', []),
    ('LIST ALL PERMISSIONS OF cf_target', []),
    ('LIST ALL PERMISSIONS OF cf_user', []),
    ("ADD IDENTITY 'cf_new' TO ROLE 'cf_target'", ["DROP IDENTITY 'cf_new'"]),
    ("ADD IDENTITY 'cf_new' TO ROLE 'cf_super'", ["DROP IDENTITY 'cf_new'"]),
    ("DROP IDENTITY 'cf_identity'", ["ADD IDENTITY 'cf_identity' TO ROLE 'cf_target'"]),
    ("DROP IDENTITY IF EXISTS 'cf_nosuch'", []),
]


def situations():
    """Name, what brings it about, what ends it."""
    yield 'nothing granted', [], []
    yield 'superuser', ['ALTER ROLE cf_user WITH SUPERUSER = true'], ['ALTER ROLE cf_user WITH SUPERUSER = false']
    yield 'member of a superuser', ['GRANT cf_super TO cf_user'], ['REVOKE cf_super FROM cf_user']
    data = ['CREATE', 'ALTER', 'DROP', 'SELECT', 'MODIFY', 'AUTHORIZE']
    for resource, permissions in [
            ('ALL KEYSPACES', data), ('KEYSPACE cf_m', data), ('ALL TABLES IN KEYSPACE cf_m', data),
            ('TABLE cf_m.t', data[1:]), ('KEYSPACE system_auth', ['SELECT', 'ALTER']),
            ('TABLE system.built_views', ['SELECT']),
            ('ALL ROLES', ['CREATE', 'ALTER', 'DROP', 'AUTHORIZE', 'DESCRIBE']),
            ('ROLE cf_target', ['ALTER', 'DROP', 'AUTHORIZE', 'DESCRIBE']), ('ROLE cf_parent', ['AUTHORIZE']),
            ('ROLE cf_super', ['DROP']), ('ALL FUNCTIONS', ['DROP', 'AUTHORIZE', 'EXECUTE'])]:
        for p in permissions:
            yield (f'{p} ON {resource}', [f'GRANT {p} ON {resource} TO cf_user'], [f'REVOKE {p} ON {resource} FROM cf_user'])
    for resource in ('ALL KEYSPACES', 'KEYSPACE cf_m', 'TABLE cf_m.t', 'ALL ROLES'):
        yield (f'ALL ON {resource}', [f'GRANT ALL ON {resource} TO cf_user'], [f'REVOKE ALL ON {resource} FROM cf_user'])
    yield ('AUTHORIZE and SELECT ON TABLE cf_m.t', ['GRANT AUTHORIZE, SELECT ON cf_m.t TO cf_user'],
           ['REVOKE AUTHORIZE, SELECT ON cf_m.t FROM cf_user'])
    yield ('member of who has SELECT ON KEYSPACE cf_m', ['GRANT SELECT ON KEYSPACE cf_m TO cf_parent', 'GRANT cf_parent TO cf_user'],
           ['REVOKE SELECT ON KEYSPACE cf_m FROM cf_parent', 'REVOKE cf_parent FROM cf_user'])


def matrix(host, admin):
    def must(cql):
        answer = admin.query(cql)
        assert answer['kind'] != 'error', (cql, answer)

    for cql in SETUP:
        must(cql)
    outcomes = {cql: {} for cql, _ in STATEMENTS}
    everything = []
    for name, begin, end in situations():
        everything.append(name)
        for cql in begin:
            must(cql)
        c = connect(host, 'cf_user', 'pw')
        for cql, undo in STATEMENTS:
            answer = c.query(cql)
            if answer['kind'] != 'error':
                for back in undo:
                    if back.startswith('USE'):
                        c.query(back)
                    else:
                        must(back)
                # what was dropped took grants with it
                for cql_again in begin if undo else []:
                    admin.query(cql_again)
            lines = shown(answer) if cql.startswith('LIST') or answer['kind'] == 'error' else [answer['kind']]
            lines += [f'warning: {w}' for w in answer.get('warnings', [])] if not cql.startswith('LIST') else []
            outcomes[cql].setdefault('\n'.join(lines), []).append(name)
        c.close()
        for cql in end:
            must(cql)
    out = [f'{len(STATEMENTS)} statements in {len(everything)} situations']
    for cql, found in outcomes.items():
        out.append(cql.replace(HASH, 'HASH'))
        order = sorted(found, key=lambda answer: (-len(found[answer]), answer))
        for answer in order:
            out += indented(answer.split('\n'))
            rest = answer == order[0]
            out += indented(['    ' + ('otherwise' if rest else '; '.join(found[answer]))])
    return out


def clean(admin):
    for cql in TEARDOWN + [f'DROP ROLE IF EXISTS cf_{r}' for r in (
            'alice', 'bob', 'carol', 'dba', 'readers', 'writers', 'nologin', 'nopassword', 'hashed')] + [
            'DROP KEYSPACE IF EXISTS cf_story']:
        admin.query(cql)


def report(host):
    admin = superuser(host)
    clean(admin)
    out = []
    for title, part in [('Logins', lambda: logins(host, admin)), ('Story', lambda: story(host)),
                        ('Matrix', lambda: matrix(host, admin))]:
        out += [f'== {title}', ''] + part() + ['']
        clean(admin)
    admin.close()
    return out


def blocks(lines):
    """Each line that is not indented, with the lines below it that are."""
    found = []
    for line in lines:
        if line.startswith(' ') and found:
            found[-1][1].append(line)
        else:
            found.append((line, []))
    return found


def main():
    args = sys.argv[1:]
    if len(args) not in (1, 2) or (args[1:] and args[1] not in ('--record', '--show')):
        print(__doc__)
        return 2
    lines = report(args[0])
    text = '\n'.join(line.rstrip() for line in lines).rstrip() + '\n'
    golden = HERE / 'golden.txt'
    if args[1:] == ['--show']:
        print(text, end='')
        return 0
    if args[1:] == ['--record']:
        golden.write_text(text, encoding='utf-8')
        return 0
    unserved = {statement for statement, answers in blocks(text.splitlines()) if any(UNSERVED in a for a in answers)}
    wanted, got = (
        [line for statement, answers in blocks(part.splitlines()) if statement not in unserved for line in [statement] + answers]
        for part in (golden.read_text(encoding='utf-8'), text))
    differences = [d for d in difflib.unified_diff(wanted, got, 'Cassandra 5.0.9', args[0], lineterm='', n=3)]
    print('\n'.join(differences))
    changed = sum(1 for d in differences if d[:1] == '-' and d[:3] != '---')
    for statement in sorted(unserved):
        print(f'not served: {statement}')
    print(f'{len(wanted)} lines compared, {changed} differ, {len(unserved)} statements are not served')
    return 1 if differences else 0


if __name__ == '__main__':
    sys.exit(main())
