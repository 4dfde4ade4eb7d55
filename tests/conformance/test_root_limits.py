"""On both runners: the limit of URLs of a root holds over all partitions, and a file of roots is applied."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from processors.identity import file_url
from schemas.records import CrawlEvent, FetchRequest, Root, Summary
from streams.embedded import runs
from streams.kafka.client import roots
from streams.kafka.client.cluster import Cluster
from streams.kafka.client.log import KafkaLog
from streams.store import Store
from streams.store.murmur2 import partition
from tests.conformance.conftest import Start
from tests.conformance.ground import gather
from tests.conformance.runners import DRAWN, PARTITIONS, EmbeddedRunner, KafkaRunner, Runner, obey, tell
from tests.conformance.test_flows import page
from tests.samples.site_server import Site
from tests.streams.kafka.flows import newest

pytestmark = [pytest.mark.servers, pytest.mark.slow(90), pytest.mark.xdist_group("conformance"), pytest.mark.timeout(600)]

RUNNERS = ("embedded", "kafka")
FOLDERS = 30
HOSTS = 10
FILES = 4
"""Files of each folder, and pages of each host."""


@pytest.fixture
def hosts() -> Iterator[list[str]]:
    """The URLs of the start pages of some hosts; the first page links to all others, and each to the pages of its host."""
    with ExitStack() as stack:
        sites = [stack.enter_context(Site()) for _ in range(HOSTS)]
        for site in sites:
            names = [f"{site.url}{number}" for number in range(1, FILES)]
            others = [other.url for other in sites] if site is sites[0] else []
            site.files = {"/": page(site.url, *names, *others)}
            site.files |= {f"/{number}": page(f"{site.url} {number}") for number in range(1, FILES)}
        yield [site.url for site in sites]


def ask(runner: Runner, root: Root) -> None:
    """Visit a root that is not confined to its server, as no command makes one."""
    if isinstance(runner, KafkaRunner):
        roots.ask(KafkaLog(Cluster(runner.cluster.kafka.open, runner.flow.prefix), DRAWN), [root])
    else:
        assert isinstance(runner, EmbeddedRunner)
        with Store(runner.folder) as store:
            runs.ask(store, root)
        tell(runner, ["gather", "--quiet"])
    runner.rest()


def requested(runner: Runner, within: tuple[str, ...]) -> set[str]:
    """The URLs requested so far from some places."""
    records = [record for _, record in runner.records("fetches")]
    urls = {record.url for record in records if isinstance(record, FetchRequest) and record.kind == "object"}
    return {url for url in urls if url.startswith(within)}


def granting(runner: Runner, root: str) -> int:
    """The number of partitions other than the root's own that got credits of its limit."""
    records = [record for _, record in runner.records("crawl")]
    granted = [
        one for one in records if isinstance(one, CrawlEvent) and one.kind == "granted" and one.root and one.root.url == root
    ]
    return len({partition(one.host.encode(), PARTITIONS) for one in granted if one.credits})


@pytest.mark.parametrize("runner", RUNNERS)
def test_limit_holds_over_all_partitions(runner: str, runners: Start, hosts: list[str], tmp_path: Path) -> None:
    """A root of many folders, and one of many hosts, gets exactly its limit of URLs, also in the next run and when it is raised."""
    started = runners(runner)
    for number in range(FOLDERS):
        (tmp_path / f"d{number}").mkdir()
        for name in range(FILES):
            (tmp_path / f"d{number}" / f"{name}.txt").write_text(f"Whale {number} {name}\n")
    url, total = file_url(str(tmp_path).encode(), folder=True), 1 + FOLDERS * (1 + FILES)
    for limit in (total // 2, total // 2, total - 1, total + 1):
        obey(started, gather(tmp_path, options=("--max-urls", limit)))
        started.rest()
        assert len(requested(started, (url,))) == min(limit, total)
    assert granting(started, url) == PARTITIONS - 1
    for limit in (HOSTS * FILES // 2, HOSTS * FILES // 2, HOSTS * FILES + 1):
        ask(started, Root(url=hosts[0], run="", urls=limit))
        assert len(requested(started, tuple(hosts))) == min(limit, HOSTS * FILES)


@pytest.mark.parametrize("runner", RUNNERS)
def test_file_of_roots_is_applied(runner: str, runners: Start, tmp_path: Path) -> None:
    """A root of a file keeps to its scope, its links are rewritten, and its mapped part is read from the folder."""
    started = runners(runner)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a").write_bytes(page("Whale in the folder"))
    with Site() as site:
        site.files = {"/": page("top", "docs/a", "secret/b", "x?utm_source=1"), "/x": page("x"), "/secret/b": page("b")}
        lines = [
            "[[root]]",
            f'url = "{site.url}"',
            'deny = ["/secret/"]',
            'rewrite = ["tracking"]',
            f'map = [{{ url = "{site.url}docs/", path = "{tmp_path}/docs" }}]',
        ]
        (tmp_path / "roots.toml").write_text("\n".join(lines))
        tell(started, ["roots", "apply", str(tmp_path / "roots.toml")])
        obey(started, gather(site.url))
        started.rest()
        assert set(site.asked) - {"/robots.txt"} == {"/", "/x"}
        held = [record for record in newest(started.records("summaries")).values() if isinstance(record, Summary)]
        found = {record.url.removeprefix(site.url) for record in held if record.url.startswith(site.url)}
        assert found == {"", "docs/a", "x"}
        assert 'deny = ["/secret/"]' in tell(started, ["roots", "show", site.url])
        assert tell(started, ["roots", "apply", str(tmp_path / "roots.toml")]) == ""
