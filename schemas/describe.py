"""Generator of the table in this folder's README, the list of fingerprints and `history/`, from the `.avsc` files.

`python -m schemas.describe` writes them; tests fail while any is stale. A changed fingerprint is a new version of the
schema, visible in every review by its line in the list and its file in `history/`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.codec import rabin, schema_text
from schemas.history import fingerprint_of, published
from schemas.records import RECORDS

BEGIN = "<!-- records: written by `python -m schemas.describe` -->\n"
END = "<!-- end of records -->\n"
FOLDER = Path(__file__).parent


def table() -> str:
    """Return the table of records: name, purpose, and fields (those with a default in parentheses)."""
    rows = (f"| {name} | {schema['doc']} | {', '.join(_fields(schema))} |" for name, schema in _schemas())
    return "\n".join(["| record | what it is for | fields |", "| --- | --- | --- |", *rows, ""])


def fingerprints() -> str:
    """Return a line for each record: the Rabin fingerprint of its schema as on the wire (little-endian hex), and its name."""
    return "".join(f"{rabin(name).hex()} {name}\n" for name, _ in _schemas())


def versions(known: Mapping[tuple[str, int], Any]) -> dict[str, str]:
    """Return the files to write in `history/`, by name: the present version of each record, a new one if it changed."""
    found = {}
    for name, schema in _schemas():
        last = max((number for other, number in known if other == name), default=0)
        same = last and fingerprint_of(known[name, last]) == rabin(name)
        # Documentation and defaults are not part of the fingerprint: they are replaced by the present ones.
        found[f"{name}.{last if same else last + 1}.avsc"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    return found


def readme(text: str) -> str:
    """Return the README with its table updated. Raises ValueError if the marks around the table are missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("schemas/README.md: the marks around the table of records are missing")
    return f"{before}{begin}{table()}{end}{after}"


def _schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    for record in RECORDS:
        yield record.__name__, schema_text(record.__name__)


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    for field in schema["fields"]:
        yield f"({field['name']})" if "default" in field else field["name"]


def main(folder: Path = FOLDER) -> int:
    """Write the table, the list and the versions; return the exit code."""
    page = folder / "README.md"
    page.write_text(readme(page.read_text("utf-8")), "utf-8")
    (folder / "fingerprints.txt").write_text(fingerprints(), "utf-8")
    (folder / "history").mkdir(exist_ok=True)
    for name, text in versions(published()).items():
        (folder / "history" / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
