"""A deciding stage in one partition, as the turns of the embedded runner work on it."""

from __future__ import annotations

from typing import Any

from streams.topology.flow import REGISTER, Stage
from streams.topology.routing import Router

AFTER_FAILURE = 60_000
"""ms after a tick that a stage failed to process in which it gets no other."""


class Task:
    """A deciding stage in one partition; `timed`: whether it gets ticks."""

    def __init__(self, stage: Stage[Any, Any], partition: int, router: Router, *, timed: bool = True) -> None:
        self.stage = stage
        self.partition = partition
        self.router = router
        self.inputs = [t.name for t in stage.inputs]
        self.ticks = stage.ticks.name if stage.ticks and timed else ""
        self.deadline = stage.deadline if timed else None
        self.expires = stage.name.startswith(REGISTER)
        """Whether its due times, but for 0, are those of what was not confirmed."""
        self.ticked = 0
        """ms since the epoch of the last tick written."""
        self.failed = 0
        """ms since the epoch of the last tick that the stage failed to process."""
