"""A concordance: for each word of a text, the lines that it stands on.

Concordances of the Bible were made by hand from the thirteenth century on; an inverted index is the same thing, made by
a machine. This module is here to be summarized.
"""

import re
from collections import defaultdict


class Concordance:
    """Words and the numbers of their lines, in order."""

    def __init__(self):
        self._lines = defaultdict(list)

    def add(self, number, line):
        """Take in one line."""
        for word in sorted(set(re.findall(r"[a-z]+", line.lower()))):
            self._lines[word].append(number)

    def lines_of(self, word):
        """The lines that a word stands on; none for a word never met."""
        return list(self._lines.get(word.lower(), ()))


def concordance_of(text):
    """The concordance of a whole text, lines counted from 1."""
    found = Concordance()
    for number, line in enumerate(text.splitlines(), start=1):
        found.add(number, line)
    return found
