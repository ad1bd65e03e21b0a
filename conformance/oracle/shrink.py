"""Of a statement that two servers answer differently: the fewest earlier ones of its table that are needed for it."""

import re

from mistakes import names

ATTEMPTS = 60  # replays a difference may cost


def story(steps, at):
    """The earlier statements that may matter to `steps[at]`: those of its keyspace, of its tables and of their types."""
    wanted = names(steps[at])
    numbers = {n.lstrip('abcdefghijklmnopqrstuvwxyz') for n in wanted} - {''}
    related = lambda s: names(s) & wanted or re.match(r'USE\b|CREATE KEYSPACE\b', s.cql) or any(re.match(rf'(CREATE|ALTER) TYPE u{n}\b', s.cql) for n in numbers)
    return [s for s in steps[:at] if related(s)]


def fixed(step):
    return re.match(r'USE\b|CREATE\b', step.cql) is not None


def replay(servers, steps):
    """Each server's answers to the last of the steps, after all the others."""
    last = []
    for server in servers:
        server.clean()
        for step in steps:
            answers = server.run(step)
        last.append(answers)
    return last


def shrink(servers, steps, at, differs):
    """A shorter list of steps that ends with `steps[at]` and still `differs(left answers, right answers)`; None if it does not repeat."""
    head, last = story(steps, at), steps[at]
    fails = lambda loose: differs(*replay(servers, [s for s in head if fixed(s) or s in loose] + [last]))
    loose = [s for s in head if not fixed(s)]
    if not fails(loose):
        return None
    size, attempts = max(1, len(loose) // 2), 0
    while loose and attempts < ATTEMPTS:
        start, shorter = 0, False
        while start < len(loose) and attempts < ATTEMPTS:
            less = loose[:start] + loose[start + size:]
            attempts += 1
            if fails(less):
                loose, shorter = less, True
            else:
                start += size
        if size == 1 and not shorter:
            break
        size = max(1, size // 2)
    return [s for s in head if fixed(s) or s in loose] + [last]


def lines(step):
    """A step as a corpus file writes it."""
    if step.batch is not None:
        return [f"-- batch {step.get('kind')}"] + [line for s in step.batch for line in lines(s)] + ['-- end']
    directives = [f'-- {name} {value}'.rstrip() for name, values in step.directives.items() for value in values]
    return directives + [step.cql + ';']
