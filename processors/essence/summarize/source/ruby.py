"""Ruby: classes, modules, methods, required files, comments; of a gemspec the metadata of the gem."""

from __future__ import annotations

import re
from typing import BinaryIO

from processors.essence.formats.text import read_text
from processors.essence.summarize._base import Facts, Found, Summarizer
from processors.essence.summarize.source._code import add_remarks
from processors.essence.summarize.source._source import MAX_SOURCE, add_all, hash_comments

_BLOCK = re.compile(r"^=begin\b[^\n]*\n(.*?)(?:^=end\b[^\n]*\n?|\Z)", re.MULTILINE | re.DOTALL)
_MAGIC = re.compile(r"#[ \t]*(?:-\*-|frozen[_-]string|(?:en)?coding:|warn_indent|rubocop|!)", re.IGNORECASE)
_END = re.compile(r"^__END__$", re.MULTILINE)
_CLASS = re.compile(r"^[ \t]*class[ \t]+([A-Z][\w:]{0,150})", re.MULTILINE)
_MODULE = re.compile(r"^[ \t]*module[ \t]+([A-Z][\w:]{0,150})", re.MULTILINE)
_METHOD = re.compile(
    r"^[ \t]*(?:private[ \t]+|protected[ \t]+|public[ \t]+)?def[ \t]+((?:self\.|[A-Z]\w{0,60}\.)?[a-z_]\w{0,80}[?!=]?)",
    re.MULTILINE,
)
_REQUIRE = re.compile(
    r"^[ \t]*(?:require|require_relative|load|autoload[ \t]+:\w+,)[ \t(]+[\"']([^\"'\n]{1,200})[\"']", re.MULTILINE
)
_GEM = re.compile(
    r"^[ \t]*\w{1,20}\.(name|summary|description|version|homepage|author|authors|license)[ \t]*=[ \t]*\[?[ \t]*(?:%q[\[{(])?[\"']?"
    r"([^\"'\]\n]{2,300})",
    re.MULTILINE,
)
_GEM_NAMES = {"name": "title", "summary": "description", "homepage": "url-references", "authors": "author"}


def run(facts: Facts, body: BinaryIO, found: Found) -> None:
    """Add classes, modules, functions, imports, description and comments."""
    text = read_text(body, facts.charset, MAX_SOURCE)
    end = _END.search(text)
    text = text[: end.start()] if end else text
    if facts.name.endswith(b".gemspec"):
        for name, value in _GEM.findall(text):
            found.add(_GEM_NAMES.get(name, name), value, 500)
    blocks = _BLOCK.findall(text)
    code = _BLOCK.sub("", text) if blocks else text
    add_all(found, "classes", _CLASS.findall(code))
    add_all(found, "modules", _MODULE.findall(code))
    add_all(found, "functions", _METHOD.findall(code))
    add_all(found, "imports", _REQUIRE.findall(code))
    remarks = ("\n".join(line for line in c.split("\n") if not _MAGIC.match(line.lstrip())) for c in hash_comments(code))
    add_remarks(found, (*remarks, *blocks[:20]))


SUMMARIZER = Summarizer(types=("Ruby",), run=run)
