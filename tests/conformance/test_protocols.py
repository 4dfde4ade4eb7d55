"""On both runners: roots of all protocols are gathered at the same time from real servers, and their changes are followed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from processors.identity import file_url
from processors.query import parse
from schemas.records import FetchRequest, Summary
from tests.conformance.conftest import Start
from tests.conformance.ground import gather
from tests.conformance.play import WHOLE
from tests.conformance.runners import Runner, obey, tell
from tests.samples.make_corpus import DATE
from tests.samples.site_server import Site
from tests.servers.debian_servers import public_folder
from tests.servers.ftp import FtpServer, ftp_server
from tests.servers.gopher import gophernicus
from tests.servers.inn import News, inn
from tests.servers.relay import Relay
from tests.streams.cli.test_news import article, asked
from tests.streams.cli.test_sitemaps import sitemap
from tests.streams.kafka.flows import newest

pytestmark = [pytest.mark.servers, pytest.mark.slow(60), pytest.mark.xdist_group("conformance"), pytest.mark.timeout(600)]

RUNNERS = ("embedded", "kafka")
FILES = {
    "a.txt": b"Call me Ishmael.\n",
    "page.html": b"<title>Moby</title><body>The white whale.</body>",
    "notes/b.txt": b"A thistle.\n",
    "notes/c.txt": b"An ocelot.\n",
}
CHANGED = {name: body for name, body in FILES.items() if name != "notes/b.txt"} | {"a.txt": b"Ahab.\n", "new.txt": b"Zanzibar.\n"}
"""The files after one was changed, one added and one removed."""
ITEMS = {".txt": "0", ".html": "h"}
"""Types of Gopher's items."""
SENT = ("MDTM", "RETR", "SIZE")
"""Commands of FTP about one file."""
DAY = 86_400


class Peers(NamedTuple):
    """A tree that is served by FTP, by Gopher and by a site, which has it again in a folder that is mapped; and a news server."""

    tree: Path
    ftp: FtpServer
    gopher: str
    """URL of the root of the Gopher server."""
    site: Site
    news: News
    relay: Relay
    """Hears the requests to the news server."""

    @property
    def group(self) -> str:
        """URL of a group of the news server."""
        return f"news://{self.relay.address}/local.one"

    @property
    def folder(self) -> str:
        """URL of the tree."""
        return file_url(os.fsencode(self.tree), folder=True)

    @property
    def roots(self) -> tuple[str, ...]:
        """A root for each protocol, and one for the tree itself."""
        return (self.ftp.url, self.gopher, self.group, f"{self.site.url}sitemap.xml", self.folder)

    def hold(self, files: Mapping[str, bytes], time: int) -> None:
        """Let the tree and the site consist of some files; those that are new or changed are of a time (Unix, in seconds)."""
        for path in [path for path in self.tree.rglob("*") if path.is_file()]:
            if f"{path.relative_to(self.tree)}" not in files:
                path.unlink()
        dates = {}
        for name, body in files.items():
            path = self.tree / name
            path.parent.mkdir(exist_ok=True)
            if not path.exists() or path.read_bytes() != body:
                path.write_bytes(body)
                os.utime(path, (time, time))
            dates[name] = f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d}"
        self.site.files = {f"/{name}": body for name, body in files.items()}
        listed = {f"/{place}{name}": date for place in ("", "mapped/") for name, date in dates.items()}
        self.site.files["/sitemap.xml"] = sitemap(self.site, listed)

    def digests(self, files: Mapping[str, bytes]) -> dict[str, str]:
        """The MD5 of each file by its URL, for each way in which it is read: the same for all."""
        places = (self.ftp.url, self.site.url, f"{self.site.url}mapped/", self.folder)
        found = {f"{place}{name}": _md5(body) for place in places for name, body in files.items()}
        found |= {f"{self.gopher}{ITEMS[Path(name).suffix]}/{name}": _md5(body) for name, body in files.items()}
        return found

    def items(self, files: Mapping[str, bytes]) -> list[str]:
        """URLs of the menus and the files of the Gopher server."""
        below = (url for url in self.digests(files) if url.startswith(self.gopher))
        return sorted((self.gopher, f"{self.gopher}1/notes/", *below))


def _md5(body: bytes) -> str:
    return hashlib.md5(body).hexdigest()


@pytest.fixture
def peers(tmp_path: Path) -> Iterator[Peers]:
    """The servers, with the files and three articles."""
    with ExitStack() as stack:
        tree, scratch, spool, other = (stack.enter_context(public_folder()) for _ in range(4))
        (tmp_path / "ftp").mkdir()
        ftp = stack.enter_context(ftp_server("proftpd", tmp_path / "ftp", tree))
        gopher = f"gopher://{stack.enter_context(gophernicus(tree, scratch))}/"
        news = stack.enter_context(inn(spool, other))
        news.post(*(article(number) for number in (1, 2, 3)))
        relay = stack.enter_context(Relay(news.address))
        found = Peers(tree, ftp, gopher, stack.enter_context(Site()), news, relay)
        found.hold(FILES, DATE)
        yield found


class Requests(NamedTuple):
    """What was requested during a visit, each sorted."""

    ftp: list[str]
    """Commands that list a directory, or are about a file."""
    gopher: list[str]
    """URLs."""
    news: list[str]
    """Commands."""
    site: list[str]
    """Paths."""
    local: list[str]
    """URLs of files that are read from this machine."""


def visit(runner: Runner, peers: Peers) -> Requests:
    """Visit all roots by one command, and wait for its end."""
    before, known = len(_ftp(peers)), _requested(runner)
    peers.site.asked.clear()
    peers.relay.heard.clear()
    obey(runner, gather(*peers.roots))
    runner.rest()
    urls = sorted(url for url, _ in _requested(runner) - known)
    return Requests(
        sorted(_ftp(peers)[before:]),
        [url for url in urls if url.startswith(peers.gopher)],
        asked(peers.relay),
        sorted(path for path in peers.site.asked if path != "/robots.txt"),
        [url for url in urls if url.startswith((peers.folder, f"{peers.site.url}mapped/"))],
    )


def _ftp(peers: Peers) -> list[str]:
    return peers.ftp.commands("LIST", "MLSD", *SENT)


def _requested(runner: Runner) -> set[tuple[str, int]]:
    """URL and version of each request so far."""
    records = (record for _, record in runner.records("fetches"))
    return {(one.url, one.version) for one in records if isinstance(one, FetchRequest) and one.kind == "object"}


def held(runner: Runner, peers: Peers) -> dict[str, Summary]:
    """The summaries of what is below the roots; the index has the same URLs."""
    below = (*peers.roots, f"news://{peers.relay.address}/", peers.site.url)
    records = newest(runner.records("summaries")).values()
    found = {one.url: one for one in records if isinstance(one, Summary) and one.url.startswith(below)}
    with closing(runner.index()) as index:
        hits = index.search(parse("*"), WHOLE, copies=True).hits
    assert {hit.url for hit in hits if hit.url.startswith(below)} == set(found)
    return found


def equal(runner: Runner, peers: Peers, files: Mapping[str, bytes], articles: Sequence[int]) -> None:
    """Assert that there are summaries of these files by each protocol, of articles, menus and the sitemap, and no others."""
    digests = peers.digests(files) | {f"{peers.site.url}sitemap.xml": _md5(peers.site.files["/sitemap.xml"])}
    texts = {f"{peers.group.rpartition('/')[0]}/{number}@example.org" for number in articles}
    found = held(runner, peers)
    assert set(found) == {*digests, *texts, peers.gopher, f"{peers.gopher}1/notes/"}
    assert {url: found[url].md5 for url in digests} == digests


@pytest.mark.parametrize("runner", RUNNERS)
def test_roots_of_all_protocols_are_followed(runner: str, runners: Start, peers: Peers, tmp_path: Path) -> None:
    """All is summarized, with the same digests by each protocol; what has not changed is not requested; changes are followed."""
    started = runners(runner)
    (tmp_path / "roots.toml").write_text(
        f'[[root]]\nurl = "{peers.site.url}sitemap.xml"\nlastmod = "trust"\n'
        f'map = [{{ url = "{peers.site.url}mapped/", path = "{peers.tree}" }}]\n'
    )
    tell(started, ["roots", "apply", str(tmp_path / "roots.toml")])
    visit(started, peers)
    equal(started, peers, FILES, (1, 2, 3))

    before = held(started, peers)
    folders, group = ["MLSD /", "MLSD /"], ["GROUP local.one", "OVER"]
    lists = [peers.folder, f"{peers.folder}notes/"]
    # A menu of Gopher says nothing about the version of an item.
    assert visit(started, peers) == (folders, peers.items(FILES), group, ["/sitemap.xml"], lists)
    assert held(started, peers) == before

    peers.hold(CHANGED, DATE + DAY)
    peers.news.post(article(4))
    peers.news.control("cancel", "<1@example.org>")
    found = visit(started, peers)
    sent = [f"{verb} /{name}" for verb in SENT for name in ("a.txt", "new.txt")]
    assert (found.ftp, found.news) == (sorted(folders + sent), ["ARTICLE <4@example.org>", *group])
    assert found.site == ["/a.txt", "/new.txt", "/notes/b.txt", "/sitemap.xml"]
    equal(started, peers, CHANGED, (2, 3, 4))

    peers.hold(FILES, DATE + 2 * DAY)
    peers.news.control("cancel", "<4@example.org>")
    visit(started, peers)
    equal(started, peers, FILES, (2, 3))
