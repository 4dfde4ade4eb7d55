"""Lines of index files written by hand: a file name, and what it holds."""

from __future__ import annotations

import re

INDEX_LINE = re.compile(
    # A file, with or without its suffix where the description stands below; 4DOS quotes names that have spaces.
    rb"(?P<name>\"[^\"\r\n]{1,120}\"|[\w!$%&'()+,=@^~{}#./-]{1,120}?(?:\.[A-Za-z0-9]{1,10}|/)(?=[ \t:])|"
    rb"[\w.+/-]{2,60}(?=[ \t]*\r?$))"
    # Its folder, type, size and date.
    rb"(?P<columns>(?:[ \t]+(?:[AB](?=[ \t]+\d)|[a-z]{2,8}/[\w+-]{1,16}|\d[\d,.]{0,12}[kKmM]?[bB]?|\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|"
    rb"\d{1,2}-[A-Z][a-z]{2}-\d{2,4}|\d{1,2}:\d{2}|\[\d{1,5}\])(?=[ \t\r]|$)){0,6})"
    rb"(?:(?P<said>[ \t:-]+[^ \t\r\n:-][^\r\n]*)|[ \t\r]*$)",
    re.MULTILINE,
)
"""A line of an index that describes a file, from its first column on."""
