"""What a client knows of rows that it alone writes: the values that a read may show."""

import time


class Register:
    """One row; `None` stands for no row. An attempt without an answer may have been applied, now or later."""

    def __init__(self, value=None):
        self.possible = {value}
        self.last = 0

    def acknowledged(self, value):
        self.possible = {value}

    def attempted(self, value):
        self.possible = self.possible | {value}
        self.last = time.time()

    def allows(self, value):
        return value in self.possible


class Partition:
    """Rows by their clustering."""

    def __init__(self, rows):
        self.rows = [Register() for _ in range(rows)]

    def deleted(self, is_acknowledged):
        for row in self.rows:
            row.acknowledged(None) if is_acknowledged else row.attempted(None)

    def differences(self, found, may_lose):
        """Rows that were read, by clustering, and may not be so."""
        for clustering, row in enumerate(self.rows):
            value = found.get(clustering)
            if not row.allows(value) and not (may_lose and value is None):
                yield f'{clustering}: read {value}, may be {sorted(row.possible, key=str)}'
        for clustering in found.keys() - set(range(len(self.rows))):
            yield f'{clustering}: read a row that nobody wrote'
