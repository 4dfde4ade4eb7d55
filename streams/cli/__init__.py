"""The command line."""

from streams.cli.app import main

__all__ = ["main"]
