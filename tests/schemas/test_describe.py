"""Files generated from the schemas are up to date."""

from __future__ import annotations

from pathlib import Path

import pytest

import schemas
from schemas.describe import fingerprints, main, readme, table
from schemas.records import RECORDS

FOLDER = Path(schemas.__file__).parent
ANEW = "if the change is meant, run `python -m schemas.describe` and commit what it wrote"


def test_fingerprints_equal_committed_ones() -> None:
    """The fingerprint of every schema equals the committed one, so that existing topics stay readable."""
    golden = dict(line.split()[::-1] for line in (FOLDER / "fingerprints.txt").read_text("utf-8").splitlines())
    now = dict(line.split()[::-1] for line in fingerprints().splitlines())
    changed = sorted(name for name in {*golden, *now} if golden.get(name) != now.get(name))
    assert not changed, f"the schemas of {', '.join(changed)} changed: {ANEW}"


def test_readme_table_of_records_is_current() -> None:
    """The README's table of records equals the one generated from the schemas."""
    text = (FOLDER / "README.md").read_text("utf-8")
    assert readme(text) == text, ANEW


def test_table_has_a_row_for_every_record() -> None:
    """The table has a row for every record, and shows which fields are optional."""
    rows = table().splitlines()
    assert [row.split(" | ")[0] for row in rows[2:]] == [f"| {cls.__name__}" for cls in RECORDS]
    assert "reason, (removed), (published) |" in table()


def test_command_writes_only_between_marks(tmp_path: Path) -> None:
    """The command writes the table between its marks, and the list, and nothing else."""
    text = (FOLDER / "README.md").read_text("utf-8")
    (tmp_path / "README.md").write_text(text.replace("| Removed |", "| Lost |"), "utf-8")
    assert main(tmp_path) == 0
    assert (tmp_path / "README.md").read_text("utf-8") == text
    assert (tmp_path / "fingerprints.txt").read_text("utf-8") == fingerprints()


def test_readme_without_marks_is_refused() -> None:
    """A README without the marks is refused, not overwritten."""
    with pytest.raises(ValueError, match="marks"):
        readme("# schemas\n")
