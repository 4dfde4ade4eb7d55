"""Software packages in a run: found by the names that they define, counted in the closing table, and with all their files."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from streams.cli.output.run_report import KEEP

pytestmark = pytest.mark.slow(5)

SOURCES = {
    "inquiries-2.1/PKG-INFO": "Metadata-Version: 2.1\nName: inquiries\nVersion: 2.1\nSummary: Asks servers for pages\n",
    "inquiries-2.1/inquiries/__init__.py": '"""Asks servers."""\n',
    "inquiries-2.1/inquiries/adapters.py": "class HTTPAdapter:\n    def build_inquiry(self) -> None:\n        pass\n",
    "inquiries-2.1/docs/guide.txt": "The quillwort grows in a lake.\n",
}
NOT_SELECTED = "not selected: source-distribution"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """A folder with the source package of a library in Python."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in SOURCES.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "inquiries-2.1.tar.gz").write_bytes(out.getvalue())
    return folder


def urls(harvest: Any, query: str) -> list[str]:
    """The parts after the folder of the URLs that a query finds, in order."""
    return sorted(hit["url"].partition("/corpus/")[2] for hit in harvest.lines("search", query))


def test_name_of_a_class_leads_to_the_package(harvest: Any, corpus: Path) -> None:
    """A class and a method of a source package lead to the package; the hit and its summary say in which file they are."""
    harvest("gather", corpus)
    assert urls(harvest, "HTTPAdapter") == urls(harvest, "build_inquiry") == ["inquiries-2.1.tar.gz"]
    assert urls(harvest, "defines:httpadapter") == ["inquiries-2.1.tar.gz"]
    assert urls(harvest, "quillwort") == []
    assert "  defines: inquiries/adapters.py: HTTPAdapter build_inquiry" in harvest("search", "HTTPAdapter").stdout
    assert "inquiries/adapters.py: HTTPAdapter build_inquiry" in harvest("show", f"file://{corpus}/inquiries-2.1.tar.gz").stdout


def test_table_counts_files_of_packages_and_names_the_setting(harvest: Any, corpus: Path) -> None:
    """The closing table counts the files of packages as not selected and names the setting that keeps them, in that run alone."""
    said = harvest("gather", corpus).stderr
    assert [line.split()[-1] for line in said.splitlines() if line.startswith(NOT_SELECTED)] == ["4"]
    assert f"files in software packages without a summary of their own: 4 ({KEEP} keeps them)" in said.splitlines()
    (again,) = harvest.lines("gather", corpus)
    assert again["unselected"] == {}
    assert NOT_SELECTED not in harvest("gather", corpus).stderr


def test_setting_keeps_files_of_packages(harvest: Any, corpus: Path, tmp_path: Path) -> None:
    """After `essence.packages_members` is set, the next run gives each file of a package its summary; switched off, they go."""
    harvest("gather", corpus)
    (tmp_path / "harvest.toml").write_text(f"[essence]\n{KEEP.partition('.')[2]}\n")
    (kept,) = harvest.lines("gather", corpus)
    assert (kept["members"], kept["unselected"]) == (4, {})
    package, members = "inquiries-2.1.tar.gz", [f"inquiries-2.1.tar.gz#{name}" for name in SOURCES]
    assert urls(harvest, "HTTPAdapter") == [package, members[2]]
    assert urls(harvest, "quillwort") == [members[3]]
    (tmp_path / "harvest.toml").unlink()
    (gone,) = harvest.lines("gather", corpus)
    assert (gone["removed_summaries"], gone["unselected"]) == (4, {"source-distribution": 4})
    assert urls(harvest, "HTTPAdapter") == [package]


def test_members_that_other_rules_drop_are_counted(harvest: Any, tmp_path: Path, nested: Any) -> None:
    """The closing table counts the members of any archive that a rule drops, under the name of the rule."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "bundle.zip").write_bytes(nested({"a.txt": b"One.\n", "a.txt~": b"Two.\n", "b.txt~": b"Three.\n"}))
    (table,) = harvest.lines("gather", folder)
    assert table["unselected"] == {"editor-backup": 2}


def test_summarize_keeps_members_too(harvest: Any, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`harvest summarize` obeys the setting."""
    archive = corpus / "inquiries-2.1.tar.gz"
    assert len(harvest.lines("summarize", archive)) == 1
    monkeypatch.setenv("HARVEST_ESSENCE_PACKAGES_MEMBERS", "true")
    assert len(harvest.lines("summarize", archive)) == 5
