"""What is generated from the `.avsc` files: the table in this folder's README, the list of fingerprints, the published versions.

`python -m schemas.describe` writes all anew; tests fail while any is stale. A fingerprint that changed is a new version of the
schema: its line in the list, and its file in `history/`, show that in every review.
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
    """A row for each record: its name, what it is for, and its fields (those with a default in parentheses)."""
    rows = (f"| {name} | {schema['doc']} | {', '.join(_fields(schema))} |" for name, schema in _schemas())
    return "\n".join(["| record | what it is for | fields |", "| --- | --- | --- |", *rows, ""])


def fingerprints() -> str:
    """A line for each record: the Rabin fingerprint of its schema as the wire has it (little-endian hex), and its name."""
    return "".join(f"{rabin(name).hex()} {name}\n" for name, _ in _schemas())


def versions(known: Mapping[tuple[str, int], Any]) -> dict[str, str]:
    """The files of `history/` that are to be written, by name: the present version of each record, a new one where it changed."""
    found = {}
    for name, schema in _schemas():
        last = max((number for other, number in known if other == name), default=0)
        same = last and fingerprint_of(known[name, last]) == rabin(name)
        # Documentation and defaults are no part of the fingerprint: they are those of the present.
        found[f"{name}.{last if same else last + 1}.avsc"] = json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
    return found


def readme(text: str) -> str:
    """The README with its table as it should be. Raises ValueError if the marks around the table are missing."""
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
    """Write the table and the list; gives the exit code."""
    page = folder / "README.md"
    page.write_text(readme(page.read_text("utf-8")), "utf-8")
    (folder / "fingerprints.txt").write_text(fingerprints(), "utf-8")
    (folder / "history").mkdir(exist_ok=True)
    for name, text in versions(published()).items():
        (folder / "history" / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
