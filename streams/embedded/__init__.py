"""The embedded runner: the topology in one process, on the embedded store."""

from streams.embedded.runner import Embedded, EmbeddedSettings

__all__ = ["Embedded", "EmbeddedSettings"]
