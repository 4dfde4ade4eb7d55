"""Files and sites give the same results on both runners: each flow is written once, and its assertions apply to either.

The flows of a runner are played together, when the first of its tests needs one: see `play.py`.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from http import HTTPStatus
from pathlib import Path

import pytest

from processors.identity import file_url
from processors.query import parse
from streams.cli.wiring import worker_settings
from streams.config.settings import load
from streams.store.object_storage import ObjectStorage
from tests.conformance.conftest import Start
from tests.conformance.ground import Flow, Ground, gather, harvest
from tests.conformance.play import Played, play
from tests.conformance.runners import PAGES, SETTINGS, WHALES, WORKERS, KafkaRunner, obey, tell
from tests.faults.corpus import Corpus
from tests.samples import make_corpus
from tests.samples.make_corpus import gzipped, tar, zipped

pytestmark = [pytest.mark.servers, pytest.mark.slow(180), pytest.mark.xdist_group("conformance"), pytest.mark.timeout(900)]


def whale(of: str) -> bytes:
    """A text with the flow's name, so that the texts of two flows are no copies of each other."""
    return f"The white whale.\nIt swims in {of}.\n".encode()


# ---- files -----------------------------------------------------------------------------------------------------------


def a_tree_that_changes(ground: Ground) -> Flow:
    """Copies are listed, the next holder is promoted when one is removed, and members missing from an archive are removed."""
    text = whale("a file and its copies")
    members = {"in/whale.txt": text, "in/thistle.txt": b"A thistle, in an archive.\n"}
    ground.write({"whale.txt": text, "notes/copy.txt": text, "a.zip": zipped({**members, "b.tar.gz": gzipped(tar(members))})})
    ground.write({"thistle.html": "<title>Thistle and whale</title>Of both.", "empty.txt": "", "notes/empty.txt": ""})
    found = yield gather(ground.folder)
    inner = [f"a.zip#b.tar.gz#in/{name}.txt" for name in ("thistle", "whale")]
    files = {"whale.txt", "notes/copy.txt", "thistle.html", "empty.txt", "notes/empty.txt"}
    assert set(found.archive) == {*files, "a.zip", "a.zip#b.tar.gz", *inner, "a.zip#in/thistle.txt", "a.zip#in/whale.txt"}
    assert found.copies(ground) == {
        "whale.txt": ["notes/copy.txt", "a.zip#in/whale.txt", inner[1]],
        "a.zip#in/thistle.txt": [inner[0]],
    }
    assert set(found.hits['"white whale"']) == {"whale.txt", "notes/copy.txt", "a.zip#in/whale.txt", inner[1]}

    (ground.folder / "whale.txt").unlink()
    ground.write({"a.zip": zipped(members), "thistle.html": "<title>Of the whale alone</title>No more of the other."})
    found = yield gather(ground.folder)
    assert found.removed == {"whale.txt": "gone"} | dict.fromkeys(["a.zip#b.tar.gz", *inner], "member_missing")
    assert found.copies(ground) == {"notes/copy.txt": ["a.zip#in/whale.txt"]}
    assert set(found.hits["title:whale"]) == {"thistle.html", "notes/copy.txt", "a.zip#in/whale.txt"}

    before = found.archive
    found = yield gather(ground.folder)
    assert found.archive == before

    (ground.folder / "a.zip").unlink()
    ground.write({"whale.txt": text, "a.zip/b.txt": "A folder now.\n"})
    (ground.folder / "empty.txt").rename(ground.folder / "moved.txt")
    found = yield gather(ground.folder)
    assert set(found.archive) == {"whale.txt", "notes/copy.txt", "thistle.html", "moved.txt", "notes/empty.txt", "a.zip/b.txt"}
    assert found.copies(ground) == {"whale.txt": ["notes/copy.txt"]}


def roots_that_come_and_go(ground: Ground) -> Flow:
    """A removed root takes along the objects that no other root needs; a paused one and its objects stay."""
    make_corpus.write(ground.folder / "corpus")
    notes = os.listdir(ground.folder / "corpus" / "notes")
    found = yield gather(ground.folder, ground.folder / "corpus" / "notes")
    assert len({one.type for one in found.archive.values()}) > 10
    before = found.archive
    found = yield harvest("roots", "pause", ground.folder)
    assert (found.archive, found.roots) == (before, {"./": "paused", "corpus/notes/": "active"})
    found = yield harvest("roots", "remove", ground.folder)
    assert (set(found.archive), found.roots) == ({f"corpus/notes/{name}" for name in notes}, {"corpus/notes/": "active"})
    assert found.copies(ground) == {}
    assert set(found.removed.values()) == {"expired"}
    found = yield harvest("roots", "remove", ground.folder / "corpus" / "notes")
    assert (found.summaries, found.archive, found.hits["*"], found.roots) == ({}, {}, {}, {})


def what_is_said_by_hand(ground: Ground) -> Flow:
    """Annotations, also of members, are found, survive a new summary, and can be removed."""
    ground.write({"notes/sea.txt": "Of the sea.\n", "b.zip": zipped({"m.txt": b"A member, of the sea too.\n"})})
    member = f"file://{ground.folder}/b.zip#m.txt"
    yield gather(ground.folder)
    yield harvest("annotate", ground.folder / "notes" / "sea.txt", "keywords=leviathan", "rating=5", "rating=6")
    found = yield harvest("annotate", member, "keywords=leviathan")
    assert set(found.hits["keywords:leviathan"]) == {"notes/sea.txt", "b.zip#m.txt"}
    ground.write({"notes/sea.txt": "Of the sea and the whale.\n"})
    found = yield gather(ground.folder)
    assert found.archive["notes/sea.txt"].annotations == {"keywords": ("leviathan",), "rating": ("5", "6")}
    found = yield harvest("annotate", ground.folder / "notes" / "sea.txt", "keywords=")
    assert set(found.hits["keywords:leviathan"]) == {"b.zip#m.txt"}


def what_is_damaged(ground: Ground) -> Flow:
    """An unreadable file is rejected with the reason, and its readable part stays; once it is repaired, the rejection is gone."""
    text = gzipped(whale("what is damaged"))
    whole = gzipped(tar({f"{name}.txt": f"{name}, of a whale, {'x' * 600}\n".encode() for name in ("one", "two", "three")}))
    ground.write({"a.tar.gz": whole, "b.txt.gz": text, "large.txt": "x"})
    yield gather(ground.folder)
    cut = gzipped(tar({"one.txt": b"one, of a whale\n", "two.txt": b"x" * 9_000}))
    ground.write({"a.tar.gz": cut[:-30], "b.txt.gz": text[:-9], "large.txt": b"x" * 4_000_001})
    found = yield gather(ground.folder)
    assert set(found.rejected) == {"a.tar.gz", "a.tar.gz#two.txt", "b.txt.gz", "large.txt"}
    assert {"a.tar.gz#two.txt", "a.tar.gz#three.txt"} <= set(found.archive)
    assert "reason" in found.archive["b.txt.gz"].attributes
    ground.write({"a.tar.gz": whole, "b.txt.gz": text, "large.txt": "x and more"})
    found = yield gather(ground.folder)
    assert found.rejected == {}
    assert not [name for name, one in found.archive.items() if "reason" in one.attributes]


def what_is_tried_again(ground: Ground) -> Flow:
    """A retried dead letter that fails again is listed again, and the summaries are unchanged."""
    ground.write({"b.txt.gz": gzipped(whale("what is tried again"))[:-9]})
    first = yield gather(ground.folder)
    found = yield harvest("rejected", "retry", ground.folder / "b.txt.gz")
    assert found == first
    assert set(found.rejected) == {"b.txt.gz"}


def a_large_family(ground: Ground) -> Flow:
    """More copies than the list can have are all counted; after a removal the next one is promoted with the remaining copies."""
    ground.write({f"{number:03}.txt": "The licence of everything.\n" for number in range(130)})
    found = yield gather(ground.folder)
    (canonical,) = found.copies(ground)
    assert (canonical, found.archive[canonical].copies_count, len(found.archive[canonical].copies)) == ("000.txt", 129, 100)
    for number in range(60):
        (ground.folder / f"{number:03}.txt").unlink()
    found = yield gather(ground.folder)
    assert found.copies(ground) == {"060.txt": [f"{number:03}.txt" for number in range(61, 130)]}
    assert set(found.hits["canonical"]) == {"060.txt"}
    for number in range(61, 130):
        ground.write({f"{number:03}.txt": f"A licence of its own: {number}.\n"})
    found = yield gather(ground.folder)
    assert found.copies(ground) == {}
    assert {one.copy_of for one in found.archive.values()} == {""}


def odd_files(ground: Ground) -> Flow:
    """Odd names, links, large bodies and lists with entries give the same results, and are removed."""
    odd = (b"caf\xe9 #1%.txt", b"new\nline.txt", "\N{CJK UNIFIED IDEOGRAPH-6DF1}.txt".encode())
    for name in odd:
        (ground.folder / name.decode("utf-8", "surrogateescape")).write_text(f"An odd name: {name!r}.\n")
    ground.write({"long.txt": "The white whale begins.\n" + "".join(f"Line {n} of it.\n" for n in range(9_000)), "old.txt~": "x\n"})
    ground.write({"list.bib": "".join(f"@book{{k{n}, title={{Whale {n}}}, author={{Melville}}}}\n" for n in range(4))})
    ground.write({"twice.zip": zipped({"a#b/m.txt": b"one member\n", "..": b"\n", "m.txt.gz": gzipped(b"in gzip\n")})})
    (ground.folder / "link").symlink_to("long.txt")
    (ground.folder / "nowhere").symlink_to("nothing")
    found = yield gather(ground.folder)
    assert {"caf%E9%20%231%25.txt", "new%0Aline.txt", "%E6%B7%B1.txt"} <= set(found.archive)
    assert "full-text" in found.archive["long.txt"].attributes
    assert [name for name in found.archive if name.startswith("list.bib#")]
    ground.write({"list.bib": "@book{k2, title={Whale 2}, author={Melville}}\n"})
    (ground.folder / "link").unlink()
    (ground.folder / "link").symlink_to("list.bib")
    for name in odd:
        (ground.folder / name.decode("utf-8", "surrogateescape")).unlink()
    found = yield gather(ground.folder)
    assert set(found.removed.values()) == {"gone", "member_missing"}


def a_tree_by_chance(ground: Ground) -> Flow:
    """Any tree, with any changes, gives the same results; the oracle of `tests/faults` defines which."""
    corpus = Corpus(bytes(ground.folder), 11, 250)
    corpus.build()
    for _ in range(3):
        found = yield gather(ground.folder)
        assert set(found.hits["*"]) == set(found.archive) == set(found.summaries)
        corpus.disturb()


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
def test_broker_with_filter_contains_matching_summaries(runner: str, flow: str, plays: Plays) -> None:
    """After each step a Broker with a filter contains and finds exactly the summaries of its source that it accepts."""
    accepts = WHALES.filter()
    for found in plays(runner)[flow].found:
        pages = {name for name, summary in found.summaries.items() if summary.type in ("HTML", "Mail")}
        whales = {name for name, summary in found.summaries.items() if accepts is None or accepts(summary)}
        for broker, accepted in ((PAGES, pages), (WHALES, whales)):
            assert set(found.others[broker.name]) == set(found.hits[broker.name]) == accepted


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
