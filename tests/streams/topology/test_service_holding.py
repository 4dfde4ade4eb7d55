"""When an embedded service lets its Brokers expire what was not confirmed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from streams.clock import now_ms
from streams.embedded import runner
from streams.embedded.runner import RETRY_HORIZON, Embedded, EmbeddedSettings


@pytest.mark.parametrize("forever", [True, False])
def test_work_of_later_holds_up_no_service(forever: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service that always has a URL due within the next minute lets Brokers expire once what was due at its start is done."""
    made = Embedded(tmp_path, EmbeddedSettings(), print)
    made.sinks.clear()  # their threads are not started
    due = now_ms() + RETRY_HORIZON // 2

    def outstanding(_: Any, until: int) -> bool:
        return due <= until

    monkeypatch.setattr(runner, "outstanding", outstanding)
    try:
        assert not made._over(forever)
        assert made.turns.holding
        monkeypatch.setattr(now_ms, "_wall", now_ms._wall + 2 * RETRY_HORIZON * 1_000_000)
        due = now_ms() + RETRY_HORIZON // 2
        assert not made._over(forever)
        assert made.turns.holding is not forever
    finally:
        made.blobs.close()
        made._reading.close()
        made.store.close()
