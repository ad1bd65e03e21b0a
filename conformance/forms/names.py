"""Names of forms of a SELECT, and many of them in few words: `literal+values v5+v4 mirrored pages of -+1+2`."""

import itertools
import re

FORM = re.compile(r'(\w+) v(\d)( mirrored)?(?: pages of (\d+))?')
MANY = re.compile(r'([\w+]+) v([\d+]+)( mirrored)? pages of ([\d+-]+)')
WHOLE = '-'  # in place of a size: without pages


def name(writing, version, mirror, size):
    return f'{writing} v{version}' + (' mirrored' if mirror else '') + (f' pages of {size}' if size else '')


def folded(forms):
    """Forms in few words."""
    sizes, others = {}, []
    for form in forms:
        match = FORM.fullmatch(form)
        if match:
            sizes.setdefault((match[1], match[2], match[3]), []).append(match[4] or WHOLE)
        else:
            others.append(form)
    versions = {}
    for (writing, version, mirror), found in sizes.items():
        versions.setdefault((writing, mirror, '+'.join(found)), []).append(version)
    writings = {}
    for (writing, mirror, found), of in versions.items():
        writings.setdefault(('+'.join(of), mirror, found), []).append(writing)
    return others + [f"{'+'.join(of)} v{version}{mirror or ''} pages of {found}" for (version, mirror, found), of in writings.items()]


def unfolded(words):
    """The forms that such words stand for."""
    for word in words:
        match = MANY.fullmatch(word)
        if not match:
            yield word
            continue
        for writing, version, size in itertools.product(match[1].split('+'), match[2].split('+'), match[4].split('+')):
            yield name(writing, version, bool(match[3]), None if size == WHOLE else size)
