"""`harvest summarize` with parser processes that are slow or send false frames."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from schemas.records import FetchedObject, Summary
from streams.cli import standalone_summarize
from streams.cli.rootnames import root_of
from streams.config.settings import Settings
from streams.edges.parse_job import END, Chunk, pack
from streams.sandbox.values import Done

if TYPE_CHECKING:
    from streams.sandbox.pool import Pool


class Scripted:
    """A substitute for a pool: it sends the given frames for each request, after a delay in seconds per URL."""

    def __init__(self, frames: Sequence[bytes], waits: Mapping[str, float] | None = None) -> None:
        self.frames, self.waits = frames, waits or {}

    async def run(self, request: bytes, body: int | None, on_frame: Callable[[bytes], None], clock: Any) -> Done:
        """Same signature as `Pool.run`."""
        jobs = msgspec.msgpack.decode(request, type=Chunk).jobs
        await asyncio.sleep(sum(self.waits.get(job.obj.url, 0) for job in jobs))
        for job in jobs:
            for frame in self.frames or [b"\0" + pack(summary(job.obj.url))]:
                on_frame(frame)
            on_frame(END)
        return Done(strained=False)


def summary(url: str) -> Summary:
    """A summary of an object."""
    return Summary(oid="1", url=url, object_url=url, gatherer="g", version=1, time=1, type="Text")


@pytest.mark.parametrize("frame", [b"nonsense", b"\0" + pack(summary("file:///another")), b"\0" + b"\x91" * 100_000])
def test_false_frame_of_a_child_fails_its_own_file_only(frame: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A compromised child cannot report on another file; its own file fails, and the others are summarized."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("text")
    command = standalone_summarize.StandaloneSummarize(Settings(), json=True)
    roots = [root_of(str(tmp_path / name), Settings(), None, None) for name in "ab"]
    objs = [cast("FetchedObject", command._read(root, root.url)) for root in roots]
    pool = cast("Pool", Scripted([frame]))
    assert asyncio.run(command._together(pool, objs)) is None
    asyncio.run(command._one(pool, objs[0])).tell()
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"harvest: file://{tmp_path}/a: not a frame")
    asyncio.run(command._one(cast("Pool", Scripted([])), objs[1])).tell()
    assert json.loads(capsys.readouterr().out)["url"] == f"file://{tmp_path}/b"


@pytest.mark.parametrize("change", ["fifo", "link", "other", "grown"])
def test_file_replaced_before_parsing_is_not_read(change: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A large file that was replaced before it is parsed is not read, nor is the target of a link; a fifo is not waited for."""
    path, other = tmp_path / "tree" / "large", tmp_path / "secret"
    path.parent.mkdir()
    path.write_bytes(b"text " * 20_000)
    other.write_bytes(b"text " * 20_000)
    command = standalone_summarize.StandaloneSummarize(Settings(), json=True)
    root = root_of(str(path), Settings(), None, None)
    obj = cast("FetchedObject", command._read(root, root.url))
    assert obj.blob
    if change != "grown":
        path.unlink()
    if change == "fifo":
        os.mkfifo(path)
    elif change == "link":
        path.symlink_to(other)
    else:
        path.write_bytes(b"others " * 20_000)
    asyncio.run(command._one(cast("Pool", Scripted([])), obj)).tell()
    out, err = capsys.readouterr()
    assert not out
    assert err.startswith(f"harvest: file://{path}: ")


def test_output_keeps_the_order_of_files_behind_a_slow_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The output is in the order of the files when one is slow, also with more finished files than the limit KEPT."""
    names = [f"{number:03d}" for number in range(60)]
    for name in names:
        (tmp_path / name).write_text("text")
    monkeypatch.setattr(standalone_summarize, "KEPT", 16)
    slow = {f"file://{tmp_path}/000": 0.2}
    monkeypatch.setattr(standalone_summarize, "Pool", lambda *_: entered(Scripted([], slow)))
    assert standalone_summarize.StandaloneSummarize(Settings(), json=True).run([str(tmp_path)])
    told = [json.loads(line)["url"] for line in capsys.readouterr().out.splitlines()]
    assert told == [f"file://{tmp_path}/{name}" for name in names]


@asynccontextmanager
async def entered(pool: Scripted) -> AsyncIterator[Scripted]:
    """The pool as an async context manager."""
    yield pool
