"""The query language: text to tree and back, the predicate on one summary, the analysis of text, snippets."""

from processors.query.glimpse import parse_glimpse
from processors.query.lenient import parse_lenient
from processors.query.mistakes import QueryError
from processors.query.parser import parse
from processors.query.predicate import matches, predicate
from processors.query.unparse import unparse

__all__ = ["QueryError", "matches", "parse", "parse_glimpse", "parse_lenient", "predicate", "unparse"]
