"""Real Gopher servers, whose files change between runs."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.servers.debian_servers import public_folder
from tests.servers.gopher import gophernicus, pygopherd
from tests.servers.line_server import LineServer

SERVERS = {"gophernicus": gophernicus, "pygopherd": pygopherd}
ALLOW = ("--allow", "127.0.0.0/8", "--pause", "0", "--data", "d")
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


def gather(harvest: Any, root: str) -> dict[str, Any]:
    """Run `harvest gather`; return its closing table."""
    table: dict[str, Any] = harvest.lines("gather", root, *ALLOW)[0]
    return table


def held(harvest: Any) -> dict[str, str]:
    """Title of each search result by URL."""
    return {hit["url"]: hit["title"] for hit in harvest.lines("search", "*", "--data", "d", "--limit", "100")}


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A folder for a server, which any user can read."""
    with public_folder() as folder:
        yield folder


@pytest.fixture
def burrow() -> Iterator[Path]:
    """A folder of files that any user can read."""
    with public_folder() as root:
        (root / "docs").mkdir(mode=0o755)
        (root / "a.txt").write_bytes(b"Star-nosed mole\n.digs\n..\n\nin wet ground\n")
        (root / "docs" / "b.txt").write_bytes(b"Vole tunnels\n")
        (root / "page.html").write_bytes(b"<title>Shrew</title><p>insects</p>")
        (root / "i.gif").write_bytes(GIF)
        yield root


@pytest.mark.parametrize("server", SERVERS)
def test_changes_of_a_gopher_server_are_gathered(harvest: Any, burrow: Path, scratch: Path, server: str) -> None:
    """Items that are new, changed or gone are added, summarized again or removed; the others are fetched again, unchanged."""
    start: Callable[[Path, Path], AbstractContextManager[str]] = SERVERS[server]
    with start(burrow, scratch) as address:
        root = f"gopher://{address}/"
        assert gather(harvest, root)["added"] == 6
        found = held(harvest)
        assert {found[f"{root}0/a.txt"], found[f"{root}0/docs/b.txt"], found[f"{root}h/page.html"]} == {
            "Star-nosed mole",
            "Vole tunnels",
            "Shrew",
        }
        shown = harvest("show", f"{root}0/a.txt", "--data", "d").stdout
        assert hashlib.md5((burrow / "a.txt").read_bytes()).hexdigest() in shown

        again = gather(harvest, root)
        assert (again["nothing_changed"], again["unchanged"]) == (True, 6)

        (burrow / "a.txt").write_bytes(b"Golden mole\nswims in sand\n")
        (burrow / "new.txt").write_bytes(b"Naked mole-rat\n")
        (burrow / "docs" / "b.txt").unlink()
        (burrow / "i.gif").unlink()
        table = gather(harvest, root)
        # Both menus have changed too.
        assert (table["added"], table["changed"], table["removed"]) == (1, 3, 2)
        found = held(harvest)
        assert (found[f"{root}0/a.txt"], found[f"{root}0/new.txt"]) == ("Golden mole", "Naked mole-rat")
        assert not {url for url in found if url.endswith(("b.txt", "i.gif"))}
        assert gather(harvest, root)["nothing_changed"]

        # What was in a menu that is gone goes with it, once the server says so.
        (burrow / "docs" / "c.txt").write_bytes(b"Shrew-mole\n")
        assert gather(harvest, root)["added"] == 1
        shutil.rmtree(burrow / "docs")
        assert gather(harvest, root)["removed"] == 2
        assert not {url for url in held(harvest) if "docs" in url}
    assert not harvest.lines("rejected", "list", "--data", "d")


def test_bad_answers_remove_nothing(harvest: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A menu that is cut, items that never end or are answered in silence: each has one rejection, and everything else goes on."""
    monkeypatch.setenv("HARVEST_FRONTIER_TRIES", "1")
    monkeypatch.setenv("HARVEST_FETCH_ANSWER_TIMEOUT", "0.5")
    monkeypatch.setenv("HARVEST_FETCH_MAX_BODY", "100000")
    monkeypatch.setenv("HARVEST_FETCH_PATIENCE", "60")
    names = ("good", "slow", "endless", "late")
    with LineServer() as server:
        lines = [f"0{name}\t/{name}\t127.0.0.1\t{server.port}\r\n".encode() for name in names]
        elsewhere = b"0Elsewhere\t/x\t127.0.0.2\t7\r\n"
        lines.insert(0, f"7Find\t/find\t127.0.0.1\t{server.port}\r\n".encode())
        server.pages = {f"/{name}".encode(): f"Text of {name}\n".encode() for name in names}
        server.pages |= {b"": b"".join(lines) + b".\r\n"}
        root = f"gopher://{server.address}/"
        assert gather(harvest, root)["added"] == 5
        before = held(harvest)

        # The last item is cut off, one item is new, and one is of another server.
        server.pages |= {b"": b"".join([*lines[:-1], elsewhere, lines[1].replace(b"good", b"new"), lines[4][:9]])}
        server.pages |= {b"/good": b"Better text\n", b"/new": b"New text\n", b"/slow": None, b"/endless": b"x" * 200_000}
        harvest("gather", root, *ALLOW)
        assert held(harvest) == before | {f"{root}0/good": "Better text", f"{root}0/new": "New text"}
        letters = {letter["url"]: letter["reason"] for letter in harvest.lines("rejected", "list", "--data", "d")}
        assert letters == {
            root: "truncated, or a line of more than 16,384 bytes",
            f"{root}0/slow": "no answer in time",
            f"{root}0/endless": "body larger than 100,000 bytes",
        }
        assert "gopher: a search, which asks for input" in harvest("why", f"{root}7/find", "--data", "d").stdout
        assert "not on the server of the root" in harvest("why", "gopher://127.0.0.2:7/0/x", "--data", "d").stdout
    # Without a server, the run fails, and everything stays.
    after = held(harvest)
    harvest("gather", root, *ALLOW, code=1)
    assert held(harvest) == after
