"""Definitions of Brokers, as files of a data folder."""

from __future__ import annotations

from pathlib import Path


def define(name: str, text: str = "", data: str | Path = "harvest-data") -> Path:
    """Write the definition of a Broker into a data folder."""
    path = Path(data, "brokers", f"{name}.toml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
