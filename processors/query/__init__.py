"""The query language: text to tree and back, the predicate on one summary, the analysis of text, snippets."""

from processors.query.parser import QueryError, parse
from processors.query.predicate import matches, predicate
from processors.query.unparse import unparse

__all__ = ["QueryError", "matches", "parse", "predicate", "unparse"]
