"""Files and sites give the same results on both runners: each flow is written once, and its assertions apply to either.

The flows of a runner are played together, when the first of its tests needs one: see `play.py`.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

import pytest

from processors.broker.views import tags, tree
from processors.identity import file_url
from processors.query import parse
from schemas.records import View
from streams.cli.wiring import worker_settings
from streams.config.settings import load
from streams.store.object_storage import ObjectStorage
from tests.conformance.conftest import Start
from tests.conformance.file_flows import (
    a_large_family,
    a_tree_by_chance,
    a_tree_that_changes,
    odd_files,
    roots_that_come_and_go,
    views_that_come_and_go,
    whale,
    what_is_damaged,
    what_is_said_by_hand,
    what_is_tried_again,
)
from tests.conformance.ground import Flow, Ground, gather
from tests.conformance.play import Played, play, without_roles
from tests.conformance.runners import BROKERS, SETTINGS, STREAMED, WORKERS, KafkaRunner, obey, tell
from tests.samples.make_corpus import zipped

pytestmark = [pytest.mark.servers, pytest.mark.slow(180), pytest.mark.xdist_group("conformance"), pytest.mark.timeout(900)]


# ---- sites -----------------------------------------------------------------------------------------------------------


def page(title: str, *links: str) -> bytes:
    """Build a page with a title and links."""
    return f"<title>{title}</title>{' '.join(f'<a href={link!r}>{link}</a>' for link in links)}".encode()


def a_site_that_changes(ground: Ground) -> Flow:
    """A site is gathered as robots.txt allows; changed, removed, new and moved pages are distinguished."""
    site = ground.site
    site.files |= {"/robots.txt": b"User-agent: *\nDisallow: /private/\n", "/private/x": page("Secret"), "/a": page("Whale A")}
    site.files |= {"/": page("Home", "/a", "/old", "/private/x", "/dead", "/b.zip", "/long"), "/new": page("New", "/deep/c")}
    site.files |= {"/deep/c": page("C", "../a?x=1"), "/b.zip": zipped({"w.txt": whale("a site")}), "/long": b"whale " * 20_000}
    site.redirects |= {"/old": "/older", "/older": "/new", "/circle": "/circles", "/circles": "/circle"}
    found = yield gather(site.url)
    assert set(found.archive) == {"/", "/a", "/a?x=1", "/new", "/deep/c", "/b.zip", "/b.zip#w.txt", "/long"}
    assert not [path for path in site.asked if path.startswith("/private/")]
    assert found.copies(ground) == {"/a": ["/a?x=1"]}
    site.files |= {"/": page("Home", "/a", "/old", "/dead", "/circle"), "/dead": page("No more"), "/deep/c": page("C, changed")}
    site.redirects["/older"] = "/a"
    del site.files["/new"], site.files["/long"]
    found = yield gather(site.url)
    assert found.archive["/deep/c"].attributes["title"] == ("C, changed",)
    assert {"/", "/a", "/dead"} <= set(found.archive)
    assert {name: why for name, why in found.removed.items() if name in ("/new", "/long")} == {"/new": "gone", "/long": "gone"}
    assert set(found.rejected.values()) == {"fetch: moved in a circle"}
    before = found
    found = yield gather(site.url)
    assert found.archive == before.archive


def a_site_that_fails(ground: Ground) -> Flow:
    """While a server fails nothing is removed before its time-to-live ends; it returns with the server."""
    site = ground.site
    site.files |= {"/": page("Home", "/a", "/b"), "/a": page("A whale"), "/b": page("B")}
    found = yield gather(site.url, ROOTS_TTL="1")
    before = found.archive
    # Not 503, which holds the host for a minute in the end.
    site.fail, site.failure = True, HTTPStatus.INTERNAL_SERVER_ERROR
    found = yield gather(site.url, fails=True)
    assert found.archive == before
    assert set(found.rejected) == {"/", "/a", "/b"}
    time.sleep(1.1)
    found = yield gather(site.url, fails=True, ROOTS_TTL="1")
    assert (found.archive, found.removed) == ({}, dict.fromkeys(before, "expired"))
    site.fail = False
    found = yield gather(site.url, ROOTS_TTL="1")
    assert (found.archive, found.rejected) == (before, {})


def limits_of_a_root(ground: Ground) -> Flow:
    """A root is followed up to its limits, and further after they are raised."""
    site = ground.site
    site.files |= {f"/{n}": page(f"Page {n}", f"/{n + 1}") for n in range(6)}
    found = yield gather(f"{site.url}0", options=("--depth", 2))
    assert set(found.archive) == {"/0", "/1", "/2"}
    found = yield gather(f"{site.url}0", options=("--depth", 4))
    assert set(found.archive) == {"/0", "/1", "/2", "/3", "/4"}
    found = yield gather(f"{site.url}0", options=("--depth", 1))
    site.files |= {"/many": page("Many", *(f"/many/{n}" for n in range(5)))} | {f"/many/{n}": page(f"M{n}") for n in range(5)}
    found = yield gather(f"{site.url}many", options=("--max-urls", 3))
    assert len([name for name in found.archive if name.startswith("/many")]) == 3


FLOWS: Mapping[str, Callable[[Ground], Flow]] = {
    flow.__name__: flow
    for flow in (
        a_tree_that_changes,
        roots_that_come_and_go,
        what_is_said_by_hand,
        what_is_damaged,
        what_is_tried_again,
        a_large_family,
        odd_files,
        a_tree_by_chance,
        views_that_come_and_go,
        a_site_that_changes,
        a_site_that_fails,
        limits_of_a_root,
    )
}

# ---- both runners ----------------------------------------------------------------------------------------------------

RUNNERS = ("embedded", "kafka")
Plays = Callable[[str], Mapping[str, Played]]


@pytest.fixture(scope="module")
def plays(runners: Start, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plays]:
    """A function that plays all flows on a runner, once."""
    folder, done = tmp_path_factory.mktemp("grounds"), dict[str, Mapping[str, Played]]()
    grounds = {name: Ground(folder / name) for name in FLOWS}
    with ExitStack() as sites:
        for ground in grounds.values():
            sites.enter_context(ground.site)

        def played(name: str) -> Mapping[str, Played]:
            if name not in done:
                done[name] = play(runners(name), FLOWS, grounds)
            return done[name]

        yield played


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("runner", RUNNERS)
def test_flow_on_each_runner(runner: str, flow: str, plays: Plays) -> None:
    """All assertions of a flow are true on each runner."""
    for error in plays(runner)[flow].failed:
        raise error


@pytest.mark.parametrize("flow", FLOWS)
def test_both_runners_give_the_same_results(flow: str, plays: Plays) -> None:
    """After each step of a flow both runners have the same summaries, archive, roles, removals, rejections and hits, OID by OID."""
    embedded, kafka = (plays(runner)[flow].found for runner in RUNNERS)
    for step, (one, other) in enumerate(zip(embedded, kafka, strict=True)):
        for name in one._fields:
            assert getattr(other, name) == getattr(one, name), (step, name)


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("flow", FLOWS)
def test_broker_contains_what_it_accepts_of_its_sources(runner: str, flow: str, plays: Plays) -> None:
    """After each step a Broker contains and finds exactly what it accepts of its sources, and its stream sends that.

    The source is the Gatherer's database, or another Broker.
    """
    accepts = BROKERS["whales"].filter()
    for found in plays(runner)[flow].found:
        pages = {name for name, summary in found.summaries.items() if summary.type in ("HTML", "Mail")}
        whales = {name for name in pages if accepts is None or accepts(found.summaries[name])}
        for broker, accepted in (("pages", pages), ("whales", whales)):
            assert set(found.others[broker]) == set(found.hits[broker]) == accepted
        for broker in STREAMED:
            sent = {name: without_roles(summary) for name, summary in found.others[broker].items()}
            assert found.streams[broker] == sent


@pytest.mark.parametrize("runner", RUNNERS)
@pytest.mark.parametrize("flow", FLOWS)
def test_view_contains_what_its_queries_accept(runner: str, flow: str, plays: Plays) -> None:
    """After each step the summaries that a view's queries accept are those that are tagged with it, and that the index finds."""
    for found in plays(runner)[flow].found:
        for broker, summaries in {**found.others, "main": found.archive}.items():
            views = {path: View(path=path, query=query, time=0) for path, query in found.views[broker].items()}
            rules = tree(views, BROKERS[broker].languages)
            assert {name: one.views for name, one in summaries.items()} == {
                name: tags(rules, one) for name, one in summaries.items()
            }
            for path in views:
                assert {name for name, one in summaries.items() if path in one.views} == set(found.hits[f"{broker}/{path}"])


def on_kafka(plays: Plays, runners: Start) -> KafkaRunner:
    """The runner on Kafka, after all flows."""
    plays("kafka")
    runner: object = runners("kafka")
    assert isinstance(runner, KafkaRunner)
    return runner


def test_bodies_are_in_object_storage_alone(plays: Plays, runners: Start) -> None:
    """Large bodies are in the bucket; the workers' folders are their own, and have none but cached ones."""
    runner = on_kafka(plays, runners)
    assert runner.cluster.buckets.keys(runner.cluster.bucket)
    for name in WORKERS:
        folder = runner.flow.folder / name
        assert folder.is_dir()
        assert not (folder / "blobs").exists()


def test_trouble_of_servers_holds_workers_and_shows_no_secret(plays: Plays, runners: Start, tmp_path: Path) -> None:
    """While logins are refused, workers hold and say why, then go on; no log, metric, check, error or traceback shows a secret."""
    runner = on_kafka(plays, runners)
    texts = list[str]()
    (tmp_path / "large.txt").write_bytes(b"quillwort " * 20_000)
    with runner.cluster.refusing():
        obey(runner, gather(tmp_path))
        for stage, line in (("fetch", "blobs.url: this login may not"), ("index.main", "index.password")):
            while line not in (found := runner.ready(stage)):
                assert all(worker.poll() is None for worker in runner.flow.workers.values())
                time.sleep(0.2)
            texts.append(found)
        texts.append(tell(runner, ["doctor"], code=1))
        assert "NOT OK  object storage: blobs.url: this login may not" in texts[-1]
    runner.rest()
    assert [hit.url for hit in runner.index().search(parse("quillwort"), limit=10).hits] == [
        file_url(bytes(tmp_path / "large.txt"))
    ]
    texts += [tell(runner, ["doctor"]), tell(runner, ["topics", "members"]), *runner.metrics()]
    texts += [(runner.flow.folder / name).read_text("utf-8", "replace") for name in ("workers.log", "workers.out")]
    assert "blobs.url: this login may not" in texts[-2]
    texts.append(with_locals(runner))
    assert runner.cluster.leaked(texts) == []


def with_locals(runner: KafkaRunner) -> str:
    """A traceback with the values of all variables, of a worker's settings that are on their way to its runner."""
    found = load(environ={f"HARVEST_{name}": value for name, value in {**SETTINGS, **runner.environment}.items()})
    given = worker_settings(found)
    cluster, storage = given.cluster, ObjectStorage(given.blobs)
    try:
        raise ValueError(f"{found!r} {given!r} {cluster!r} {storage!r}")
    except ValueError as error:
        text = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "SASL_SSL" in text
    return text
