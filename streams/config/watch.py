"""The section `watch` of the settings: how a running service notices changes in local roots."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streams.config.base import Section


class WatchSection(Section):
    """How `harvest run` notices changes in local roots, beside the refresh of `roots.refresh`."""

    method: Literal["auto", "events", "poll", "off"] = "auto"
    """`off`: no change is noticed. `events`: the system reports changes. `poll`: folders are read every `interval`. `auto`: events,
    and polling on file systems that report only a part of the changes (NFS, SMB, FUSE, overlay). Roots for which the system has too
    few watches are polled, too."""
    interval: float = Field(default=2.0, ge=0.1, le=86_400)
    """Time between two readings of polled folders; three times as long as one takes, if that is more."""
    pause: float = Field(default=0.5, ge=0.05, le=60)
    """Time without a further change of a file or folder after which it is visited. One that never rests is visited now and then."""
    burst: int = Field(default=10_000, gt=0, le=1 << 50)
    """Changed files and folders at a time above which their whole root is visited instead."""
