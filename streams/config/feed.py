"""The section `feed` of the settings: the Gatherer's database as one stream.

Off by default: writing a summary to the stream takes 0.2 ms, a tenth of what the runner's process needs for a small file. Whoever
asks for the stream has it filled then, which takes the same time once.
"""

from __future__ import annotations

from streams.config.base import Section


class FeedSection(Section):
    """The Gatherer's database as one stream (`/gatherer/soif`, `harvest export summaries`, `harvest collect`)."""

    enabled: bool = False
    """Whether the stream is kept up to date while records are written; without, a data folder does so when it is asked for."""
