"""CQL as far as a statement is written in another form: its words, its terms, its clauses."""

import re

TOKEN = re.compile(r"""
    (?P<space>\s+ | --[^\n]* | //[^\n]* | /\*.*?\*/)
  | (?P<string>'(?:[^']|'')*' | \$\$.*?\$\$)
  | (?P<name>"(?:[^"]|"")*")
  | (?P<uuid>[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})
  | (?P<blob>0[xX][0-9a-fA-F]*)
  | (?P<duration>-?(?:\d+(?:mo|ms|us|µs|ns|[ywdhms]))+\b | -?P(?=\d|T)[0-9YMDTHSW:-]+)
  | (?P<number>-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)
  | (?P<marker>\? | :\s*(?!(?i:true|false|null|nan|infinity)\b)(?:[A-Za-z]\w*|"(?:[^"]|"")*")(?=\s*(?:[,;)\]}]|$|\s[A-Za-z]|[-+*/%<>=!])))
  | (?P<word>\w+)
  | (?P<op>[<>!+-]?=|.)
""", re.VERBOSE | re.DOTALL)
LITERALS = {'string', 'uuid', 'blob', 'duration', 'number'}
CONSTANTS = {'TRUE', 'FALSE', 'NULL', 'NAN', 'INFINITY'}
SIGNED = {'NAN', 'INFINITY'}
OPEN, CLOSE = '([{', ')]}'
OPERATORS = set('+-*/%')
GENERIC = {'VECTOR', 'LIST', 'SET', 'MAP', 'TUPLE', 'FROZEN'}
# Words before a parenthesis or a bracket that are no name of a function or a column.
KEYWORDS = {'IN', 'VALUES', 'AND', 'CONTAINS', 'KEY', 'BETWEEN', 'NOT', 'WHERE', 'SET', 'IF', 'INTO', 'LIMIT', 'TTL', 'TIMESTAMP',
            'OR', 'SELECT', 'BY', 'JSON', 'LIKE', 'IS'}
# Words that end the WHERE of a SELECT.
AFTER_WHERE = {'GROUP', 'ORDER', 'PER', 'LIMIT', 'ALLOW', 'USING'}


class Token:
    def __init__(self, kind, text):
        self.kind, self.text = kind, text

    @property
    def word(self):
        """The word in capitals, of a word; else nothing."""
        return self.text.upper() if self.kind == 'word' else ''

    def is_literal(self):
        return self.kind in LITERALS or self.word in CONSTANTS


def tokens(cql):
    """All of a statement's tokens, without what stands between them, but with a space where there was any."""
    found, spaced = [], False
    for match in TOKEN.finditer(cql):
        if match.lastgroup == 'space':
            spaced = True
            continue
        token = Token(match.lastgroup, match.group())
        token.spaced, spaced = spaced, False
        found.append(token)
    return found


def text(found):
    return ''.join((' ' if t.spaced and i else '') + t.text for i, t in enumerate(found))


def verb(cql):
    found = tokens(cql)
    return found[0].word if found else ''


def closing(found, at):
    """Where what opens at `at` closes."""
    depth = 0
    for i in range(at, len(found)):
        if found[i].text in OPEN and found[i].kind == 'op':
            depth += 1
        elif found[i].text in CLOSE and found[i].kind == 'op':
            depth -= 1
            if depth == 0:
                return i
    raise ValueError('a bracket is not closed')


def outer(found, *words, start=0):
    """Where one of these words first stands outside of all brackets; None if nowhere."""
    depth = 0
    for i, t in enumerate(found):
        if t.kind == 'op' and t.text in OPEN:
            depth += 1
        elif t.kind == 'op' and t.text in CLOSE:
            depth -= 1
        elif depth == 0 and i >= start and t.word in words:
            return i
    return None


def is_named(found, at):
    """Does a name stand before the bracket at `at`: is it a function's, or that of an element?"""
    before = found[at - 1] if at else None
    return before is not None and (before.kind == 'name' or before.text == ']' or bool(before.word) and before.word not in KEYWORDS)


def is_plain(found, first, last):
    """Is a bracket of literals only: could a value be in its place? Words are names of fields or constants."""
    for i in range(first, last + 1):
        t = found[i]
        if t.kind == 'marker' or t.text == '(' and is_named(found, i):
            return False
        if t.kind in ('word', 'name') and not t.is_literal() and (i > last or found[i + 1].text != ':'):
            return False
        if t.kind == 'op' and t.text in OPERATORS and found[i + 1].word not in SIGNED:
            return False
    return True


def in_function(found, at):
    """Is a token an argument of a function, or an operand of a sum?"""
    depth = 0
    for i in range(at - 1, -1, -1):
        if found[i].text in CLOSE:
            depth += 1
        elif found[i].text in OPEN:
            if depth == 0 and found[i].text == '(' and is_named(found, i):
                return True
            depth -= depth > 0
    return False


def is_operand(found, first, last):
    """Is there an operator beside it?"""
    before, after = found[first - 1:first], found[last + 1:last + 2]
    return any(t.kind == 'op' and t.text in OPERATORS for t in before + after)


class Terms:
    """The terms of a part of a statement that a marker may stand for, as (first, last) tokens."""

    def __init__(self, found, inside=False, lists=False, careful=False):
        self.found, self.inside, self.lists, self.careful, self.spans = found, inside, lists, careful, []

    def within(self, start, end):
        i = start
        while i < end:
            i = self._at(i, end)
        return self

    def _take(self, first, last):
        if not (self.careful and (in_function(self.found, first) or is_operand(self.found, first, last))):
            self.spans.append((first, last))

    def _at(self, i, end):
        found = self.found
        t = found[i]
        if t.kind == 'op' and t.text == '-' and i + 1 < end and found[i + 1].word in SIGNED:
            self._take(i, i + 1)
            return i + 2
        if t.is_literal():
            # a word before a colon is the name of a field
            if not (t.kind == 'word' and i + 1 < end and found[i + 1].text == ':'):
                self._take(i, i)
            return i + 1
        if t.word in GENERIC and i + 1 < end and found[i + 1].text == '<':
            return self._type(i + 1, end)
        if t.kind == 'op' and t.text in '[{' and not (t.text == '[' and is_named(found, i)):
            last = closing(found, i)
            if not self.inside and is_plain(found, i, last):
                self._take(i, last)
                return last + 1
        if self.lists and t.text == '(' and i and found[i - 1].word == 'IN':
            last = closing(found, i)
            if is_plain(found, i, last):
                self._take(i, last)
                return last + 1
        return i + 1

    def _type(self, i, end):
        """Passes over `<...>`: the size of a vector is no term."""
        depth = 0
        while i < end:
            depth += (found := self.found[i].text) == '<'
            depth -= found == '>'
            i += 1
            if depth == 0:
                break
        return i


def parts(found):
    """The parts of a statement in which terms are values: (start, end) each."""
    verb = found[0].word if found else ''
    if verb == 'SELECT':
        spans, where = [], outer(found, 'WHERE')
        if where is not None:
            spans.append((where + 1, outer(found, *AFTER_WHERE, start=where) or len(found)))
        spans += [(i + 1, i + 2) for i, t in enumerate(found[:-1]) if t.word == 'LIMIT']
        return spans
    if verb == 'INSERT':
        start = outer(found, 'VALUES', 'JSON')
        return [(start + 1, len(found))] if start is not None else []
    if verb == 'UPDATE':
        start = outer(found, 'USING', 'SET')
        return [(start, len(found))] if start is not None else []
    if verb in ('DELETE', 'BEGIN'):
        return [(1, len(found))]
    return []


def marked(cql, style, careful=False):
    """A statement with markers for its terms, and what they stand for. Styles: `position`, `name`; `inside`: markers for the elements of
    collections; `list`: one for all of an IN."""
    found = tokens(cql)
    terms = Terms(found, inside=style == 'inside', lists=style == 'list', careful=careful)
    for start, end in parts(found):
        terms.within(start, end)
    out, literals, at = [], [], 0
    for first, last in terms.spans:
        out += found[at:first]
        marker = Token('marker', f':v{len(literals)}' if style == 'name' else '?')
        marker.spaced = found[first].spaced
        out.append(marker)
        literal = text(found[first:last + 1])
        literals.append('[' + literal[1:-1] + ']' if literal.startswith('(') else literal)
        at = last + 1
    return text(out + found[at:]), literals


def filled(cql, terms):
    """A statement with these terms in place of its markers."""
    found, rest = tokens(cql), list(terms)
    for t in found:
        if t.kind == 'marker':
            t.text = rest.pop(0)
    if rest:
        raise ValueError('more values than markers')
    return text(found)


def named_markers(cql):
    """`?` as names, and the names."""
    found, names = tokens(cql), []
    for t in found:
        if t.kind == 'marker':
            if t.text != '?':
                return None
            names.append(f'v{len(names)}')
            t.text = ':' + names[-1]
    return text(found), names


def table(cql, keyspace=None):
    """The keyspace and the table that a statement is about, as they are stored."""
    found = tokens(cql)
    verb = found[0].word if found else ''
    at = {'UPDATE': 0, 'INSERT': outer(found, 'INTO')}.get(verb, outer(found, 'FROM'))
    if at is None or at + 1 >= len(found):
        return None
    names = [found[at + 1]] + ([found[at + 3]] if at + 3 < len(found) and found[at + 2].text == '.' else [])
    plain = [t.text[1:-1].replace('""', '"') if t.kind == 'name' else t.text.lower() for t in names]
    return tuple(plain) if len(plain) == 2 else (keyspace, plain[0])


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def mirrored(cql, clusterings):
    """A SELECT in the other order; None where it has none: groups, limits. `clusterings`: (name, is descending) of its table."""
    found = tokens(cql)
    if any(outer(found, word) is not None for word in ('GROUP', 'LIMIT', 'PER', 'DISTINCT')) or outer(found, 'WHERE') is None:
        return None
    order = outer(found, 'ORDER')
    if order is None:
        if not clusterings:
            return None
        by = ', '.join(f"{quoted(name)} {'ASC' if down else 'DESC'}" for name, down in clusterings)
        at = outer(found, 'ALLOW') or len(found)
        return ' '.join(piece for piece in (text(found[:at]), 'ORDER BY', by, text(found[at:])) if piece)
    if outer(found, 'ANN') is not None:
        return None
    end = outer(found, 'ALLOW', start=order) or len(found)
    by = []
    for item in text(found[order + 2:end]).split(','):
        words = item.split()
        down = words[-1].upper() == 'DESC'
        by.append((' '.join(words[:-1]) if words[-1].upper() in ('ASC', 'DESC') else item.strip()) + (' ASC' if down else ' DESC'))
    return ' '.join(piece for piece in (text(found[:order]), 'ORDER BY', ', '.join(by), text(found[end:])) if piece)


def split(found):
    """Tokens at their outer commas."""
    out, depth = [[]], 0
    for t in found:
        if t.kind == 'op':
            depth += t.text in OPEN
            depth -= t.text in CLOSE
            if t.text == ',' and depth == 0:
                out.append([])
                continue
        out[-1].append(t)
    return out


def inserted(cql):
    """Columns and terms of `INSERT INTO t (...) VALUES (...) ...`, and what stands before and behind: (head, columns, terms, tail)."""
    found = tokens(cql)
    values = outer(found, 'VALUES')
    if not found or found[0].word != 'INSERT' or values is None or values + 1 >= len(found):
        return None
    first = next(i for i, t in enumerate(found) if t.text == '(')
    columns = [text(c) for c in split(found[first + 1:closing(found, first)])]
    end = closing(found, values + 1)
    terms = [text(c) for c in split(found[values + 2:end])]
    return text(found[:first]), columns, terms, text(found[end + 1:])
