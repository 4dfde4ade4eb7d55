"""`harvest soif check, cat, json`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from schemas.soif import dumps, parse
from streams.cli.commands.soif import app

GOOD = b"@FILE { http://a/\ntitle{5}:\tWhale\nraw{2}:\t\xff\n\n}\n"
ANSWER = b"@DELETE { }\n@UPDATE {\n" + GOOD + b"\n" + GOOD + b"}\n"
BAD = GOOD + b"@FILE { http://b/\ntitle{6}:\tWhale\n}\n"
AT = len(GOOD) + 34
PROGRAM = [sys.executable, "-c", "from streams.cli.commands.soif import app; app()"]


def run(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run a command of the application."""
    return CliRunner().invoke(app, list(map(str, arguments)), input=stdin)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Files of each kind, by name."""
    made = {"good": GOOD, "answer": ANSWER, "bad": BAD, "packed": gzip.compress(ANSWER, mtime=0), "empty": b"", "short": b"@"}
    made["cut"] = made["packed"][:-9]
    made["damaged"] = made["packed"][:40] + b"\x00\xff\x00\xff" + made["packed"][44:]
    for name, data in made.items():
        (tmp_path / name).write_bytes(data)
    return {name: tmp_path / name for name in made}


def test_check_counts_soif_files(files: dict[str, Path]) -> None:
    """SOIF files, compressed or not, are counted, and the exit code is 0."""
    result = run("check", files["good"], files["answer"], files["packed"], files["empty"])
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{files['good']}: 1 template",
        f"{files['answer']}: 3 templates",
        f"{files['packed']}: 3 templates",
        f"{files['empty']}: 0 templates",
    ]
    assert result.stderr == ""


def test_check_reports_malformed_file(files: dict[str, Path]) -> None:
    """A malformed file gives one line with its name, the byte offset and the expected text; the others are read; exit code 1."""
    result = run("check", files["bad"], files["short"], files["good"])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"{files['bad']}: byte {AT}: expected a newline after the 6 bytes of 'title', found '}}'",
        f"{files['short']}: byte 1: expected a type, found the end of the data",
    ]
    assert result.stdout == f"{files['good']}: 1 template\n"


@pytest.mark.parametrize("name", ["cut", "damaged"])
@pytest.mark.parametrize("command", ["check", "cat", "json"])
def test_damaged_gzip_is_one_line(files: dict[str, Path], name: str, command: str) -> None:
    """A truncated or damaged gzip file gives one clear line and exit code 1."""
    result = run(command, files[name])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{files[name]}: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["check", "cat", "json"])
def test_missing_file_is_one_line(tmp_path: Path, command: str) -> None:
    """A missing file, or a folder, gives one clear line and exit code 1."""
    result = run(command, tmp_path / "none", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"{tmp_path / 'none'}: No such file or directory\n{tmp_path}: Is a directory\n"


def test_fault_is_one_line_for_any_name(tmp_path: Path) -> None:
    """A fault is one line, whatever the name of the file."""
    (tmp_path / "new\nline").write_bytes(b"@")
    assert run("check", tmp_path / "new\nline").stderr.startswith(f"{tmp_path}/new line: byte 1: ")


@pytest.mark.parametrize("command", ["check", "cat", "json"])
def test_missing_argument_is_usage_error(command: str) -> None:
    """A command without a file is a usage error: exit code 2."""
    assert run(command).exit_code == 2


def test_cat_writes_canonical_stream(files: dict[str, Path]) -> None:
    """All files are written as one canonical, uncompressed stream, and canonical input is unchanged."""
    result = run("cat", files["answer"], files["packed"])
    assert result.exit_code == 0
    assert result.stdout_bytes == dumps(parse(ANSWER) + parse(ANSWER))
    assert run("cat", files["good"]).stdout_bytes == GOOD


def test_cat_writes_templates_before_fault(files: dict[str, Path]) -> None:
    """All templates before a fault are written in full, then the other files; exit code 1."""
    result = run("cat", files["bad"], files["answer"])
    assert result.exit_code == 1
    assert result.stdout_bytes == dumps(parse(GOOD) + parse(ANSWER))
    assert f"byte {AT}:" in result.stderr


def test_json_writes_one_object_per_template(files: dict[str, Path]) -> None:
    """Each template is one JSON object per line; values that are not UTF-8 are base64."""
    result = run("json", files["answer"], files["short"])
    assert result.exit_code == 1
    page = {
        "template": "FILE",
        "url": "http://a/",
        "within": ["UPDATE"],
        "attributes": {"title": ["Whale"], "raw": [{"base64": "/wo="}]},
    }
    empty = {"template": "DELETE", "url": "", "within": [], "attributes": {}}
    assert [json.loads(line) for line in result.stdout.splitlines()] == [empty, page, page]


@pytest.mark.parametrize("data", [ANSWER, gzip.compress(ANSWER, mtime=0), b""])
def test_dash_is_standard_input(data: bytes) -> None:
    """A dash is standard input, compressed or not, also from a pipe that cannot seek."""
    result = subprocess.run([*PROGRAM, "cat", "-", "-"], input=data, capture_output=True, check=False)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == dumps(parse(ANSWER if data else b""))


@pytest.mark.parametrize("command", ["check", "cat", "json"])
def test_failing_output_is_one_line(files: dict[str, Path], command: str) -> None:
    """A failing output gives one clear line and exit code 1."""
    with Path("/dev/full").open("wb") as full:
        result = subprocess.run([*PROGRAM, command, files["answer"]], stdout=full, stderr=subprocess.PIPE, check=False)
    assert (result.returncode, result.stderr) == (1, b"standard output: No space left on device\n")


@pytest.mark.parametrize("command", ["cat", "json"])
def test_closed_output_ends_silently(tmp_path: Path, command: str) -> None:
    """An output that is closed early ends the command silently."""
    (tmp_path / "many").write_bytes(GOOD * 5000)
    with subprocess.Popen([*PROGRAM, command, tmp_path / "many"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stderr
        assert child.stdout.read(10)
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait() == 1


def test_output_does_not_depend_on_locale(tmp_path: Path) -> None:
    """JSON is UTF-8, and file names keep their bytes, whatever the locale is."""
    name = os.fsencode(tmp_path) + b"/\xff.soif"
    with open(name, "wb") as file:
        file.write("@FILE { u\ntitle{2}:\té\n}\n".encode())
    plain = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    found = subprocess.run([*PROGRAM, "json", name], capture_output=True, check=True, env=plain)
    assert json.loads(found.stdout)["attributes"] == {"title": ["é"]}
    assert subprocess.run([*PROGRAM, "check", name], capture_output=True, check=True, env=plain).stdout == name + b": 1 template\n"


def test_commands_import_nothing_heavy() -> None:
    """The commands load neither Avro nor any parser, index or server."""
    code = (
        "import sys, streams.cli.commands.soif\n"
        "heavy = {'fastavro', 'lxml', 'selectolax', 'tantivy', 'apsw', 'aiohttp', 'pdfminer', 'magic', 'libarchive'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "\n"
