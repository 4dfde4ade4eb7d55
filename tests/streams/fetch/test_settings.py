from __future__ import annotations

from ipaddress import ip_network
from typing import Any

import pytest

from streams.fetch import FetchSettings


@pytest.mark.parametrize(
    "given",
    [
        {"pause": -1.0},
        {"concurrency": 0},
        {"max_body": 0},
        {"answer_timeout": 0.0},
        {"user_agent": "a\r\nX: y"},
        {"user_agent": "ä"},
    ],
)
def test_invalid_setting_is_refused_in_one_line(given: dict[str, Any]) -> None:
    """An invalid setting is refused in one line that names it."""
    with pytest.raises(ValueError, match=next(iter(given))) as error:
        FetchSettings(**given)
    assert "\n" not in str(error.value)


def test_allowed_networks_are_parsed() -> None:
    """Allowed networks are CIDR or single addresses; anything else is refused."""
    assert FetchSettings(allow=("127.0.0.1", "fd00::/8")).networks == (ip_network("127.0.0.1/32"), ip_network("fd00::/8"))
    with pytest.raises(ValueError, match="localhost"):
        _ = FetchSettings(allow=("localhost",)).networks
