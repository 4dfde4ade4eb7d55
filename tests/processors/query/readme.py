"""Tables of the README of `processors/query`."""

from __future__ import annotations

from pathlib import Path

README = Path(__file__).parents[3] / "processors" / "query" / "README.md"


def readme_rows(header: str) -> list[tuple[str, str]]:
    """Return the first two columns of the README's table whose header begins so."""
    table = README.read_text("utf-8").split(f"\n| {header} |")[1].split("\n\n")[0]
    rows = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in table.splitlines()[2:] if line.startswith("| ")]
    return [(row[0].strip("`"), row[1].strip("`")) for row in rows]
