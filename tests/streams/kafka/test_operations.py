"""The page for operators, `streams/kafka/OPERATIONS.md`: each of its steps on a real Kafka and a real OpenSearch.

One deployment serves all sections: each causes its loss, plays its steps, and leaves a pipeline that works.
"""

from __future__ import annotations

import gzip
import json
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from schemas.records import LOST
from streams.kafka.client.admin import Admin, TopicPlan
from streams.kafka.client.cluster import Cluster
from streams.operations.feed import feed_file
from tests.servers.fixtures import Topics
from tests.servers.registry import Registry
from tests.streams.kafka import secured
from tests.streams.kafka.conftest import Broker
from tests.streams.kafka.deployment import LOG, Deployment, Plant
from tests.streams.kafka.runbook import PAGE, Player, Step, sections
from tests.streams.kafka.test_remade import delete, objects

pytestmark = [pytest.mark.slow(120), pytest.mark.servers, pytest.mark.timeout(600), pytest.mark.xdist_group("operations")]
FILES = 3
LARGE = 100_000
"""Bytes of a file whose body is not in its record."""
OUTAGE = 4.0
"""Seconds without a broker."""
NEW = "battery-staple-8"
"""The new password of `secured.USER`."""


@pytest.fixture(scope="module")
def page(root: Path) -> dict[str, list[Step]]:
    """The sections of the page."""
    return sections((root / PAGE).read_text("utf-8"))


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    """A registry of schemas for all tests."""
    with Registry() as running:
        yield running


@pytest.fixture(scope="module")
def plant(registry: Registry) -> Iterator[Plant]:
    """A deployment whose index has all files."""
    # Not below pytest's own folder: the user that the node runs as cannot enter it.
    with TemporaryDirectory(prefix="harvest-own-") as name, ExitStack() as running:
        folder = Path(name)
        folder.chmod(0o755)
        made = Plant(folder, registry.url, running)
        running.callback(made.stop)
        made.run(["topics", "apply"])
        for _ in range(FILES):
            made.visit_more()
        made.start()
        made.wait_complete()
        yield made


@pytest.fixture
def play(plant: Plant, page: Mapping[str, list[Step]]) -> Play:
    """A function that plays a section of the page; afterwards the index has all files."""

    def played(heading: str, outside: Mapping[str, Callable[[], object]]) -> None:
        names = {"/srv/files": str(plant.tree), "harvest-data": str(plant.data)}
        known = {"stop the workers": plant.stop, "start the workers": plant.start}
        Player(plant.run, {**known, **outside}, plant.log, names).play(page[heading])
        plant.wait_complete()

    return played


Play = Callable[[str, Mapping[str, Callable[[], object]]], None]


def test_upgrade_mends_topics_and_schemas_and_loses_nothing(plant: Plant, registry: Registry, play: Play) -> None:
    """Missing schemas and other settings of topics are mended; what arrives during the restart is read after it."""
    registry.subjects.pop("summaries-value")
    list(Admin(Cluster(plant.broker.address)).apply([TopicPlan("fetches", 2, 1, {"retention.ms": "1000000"})]))

    def restart() -> None:
        plant.stop()
        plant.visit_more()
        plant.start()

    play("Upgrade", {"install the new version on all machines": lambda: None, "restart the workers": restart})


def test_workers_outlive_a_short_outage_of_the_broker(plant: Plant, play: Play) -> None:
    """Workers wait for a broker that is away for some seconds, and none ends."""
    plant.forget_log()
    plant.visit_more()
    plant.broker.close()
    time.sleep(OUTAGE)
    play("Loss of a broker", {"start the broker with its files": plant.broker.restart})
    log = plant.log()
    at = log.find(": ended with")
    assert at < 0, log[max(0, at - LOG) : at + LOG]


def test_lost_index_is_rebuilt_beside_running_workers(plant: Plant, play: Play) -> None:
    """An OpenSearch that lost its files gets the whole index again, and what workers have written meanwhile."""
    plant.node.close()
    plant.visit_more()

    def start_empty() -> None:
        shutil.rmtree(plant.folder / "opensearch" / "data")
        plant.node.restart()

    play("Loss of OpenSearch", {"start OpenSearch without its files": start_empty})


def test_lost_tables_are_read_from_changelogs(plant: Plant, play: Play) -> None:
    """Workers without tables go on: the new file is added, and nothing that was known is made again."""
    made = plant.run(["topics", "list", "--json"])

    def remove() -> None:
        shutil.rmtree(plant.data / "tables")

    play("Loss of a worker's tables", {"delete the folder `tables` of the data folder": remove})
    plant.visit_more()
    plant.wait_complete()
    assert ends(plant.run(["topics", "list", "--json"]), "summaries") == ends(made, "summaries") + 1


def ends(listed: str, topic: str) -> int:
    """The number of records that were written to a topic."""
    found: Mapping[str, list[int]] = {one["topic"]: one["ends"] for one in map(json.loads, listed.splitlines())}
    return sum(found[topic])


def test_stage_whose_changelog_was_lost_starts_over(plant: Plant, play: Play) -> None:
    """The workers of a stage whose changelog was made again end with the line shown; after a reset the stage goes on."""
    plant.forget_log()
    delete(Cluster(plant.broker.address), "catalog-rows-changelog")
    play("Loss of a changelog", {})
    plant.visit_more()
    plant.wait_complete()


def torn(plant: Plant) -> list[str]:
    """The rejections of a large file that cannot be parsed whole; with its body essence names the damage, without it the loss."""
    lines = plant.run(["rejected", "list"]).splitlines()
    return [line.rpartition("torn.gz: ")[2] for line in lines if "torn.gz: " in line]


def lose_bodies(plant: Plant) -> tuple[Path, str]:
    """Let the folder of bodies disappear before essence needs one of them; return where it is, and why the file was rejected."""
    path = plant.tree / "torn.gz"
    if not path.exists():
        path.write_bytes(gzip.compress(random.Random(1).randbytes(100_000))[:-50])
        plant.visit_more()
    plant.wait(lambda: bool(torn(plant)))
    (reason,) = torn(plant)
    assert not reason.startswith(LOST)
    aside = plant.bodies.rename(plant.folder / "aside")
    plant.run(["rejected", "retry", "--all"])
    return aside, reason


def test_bodies_that_come_back_are_read_again(plant: Plant, play: Play) -> None:
    """An object without its body is rejected; with the body from a backup a retry gives what the object gave before."""
    aside, reason = lose_bodies(plant)

    def bring_back() -> None:
        shutil.rmtree(plant.bodies, ignore_errors=True)
        aside.rename(plant.bodies)

    play("Loss of the bodies, with a backup", {"bring the folder back": bring_back})
    plant.wait(lambda: torn(plant) == [reason])


def test_lost_bodies_are_fetched_again(plant: Plant, play: Play) -> None:
    """An object without its body is rejected; a visit of its root fetches it again, though its file has not changed."""
    aside, reason = lose_bodies(plant)
    shutil.rmtree(aside)
    play("Loss of the bodies", {})
    plant.wait(lambda: torn(plant) == [reason])
    assert list(plant.bodies.glob("??/*"))


def test_full_disk_loses_nothing(plant: Plant, play: Play) -> None:
    """A fetcher that cannot store a body ends with a line that says so; with room again the file is fetched."""
    plant.stop()
    plant.fault = "blob.write:1:enospc"
    plant.start()
    plant.visit_more(LARGE)

    def make_room() -> None:
        plant.fault = ""

    play("Full disk", {"make room on the volume": make_room, "restart the workers": plant.restart})


def test_bodies_move_into_object_storage_that_may_fail(plant: Plant, play: Play) -> None:
    """The storage has all bodies of the folder, and gets the new ones; while it fails, workers wait for it."""
    storage = plant.folder / "bucket"
    plant.visit_more(LARGE)
    plant.wait_complete()
    copied = {path.name for path in plant.bodies.glob("??/*")}

    def configure() -> None:
        storage.mkdir()
        plant.settings["BLOBS_URL"] = f"file://{storage}"

    play("From a shared folder to object storage", {"set blobs.url in the settings of all workers": configure})
    assert copied == {path.parent.name for path in storage.glob("??/*/*")}
    plant.visit_more(LARGE)
    plant.wait_complete()
    plant.forget_log()
    aside = storage.rename(plant.folder / "aside")
    storage.write_text("no folder")
    plant.visit_more(LARGE)

    def mend() -> None:
        storage.unlink()
        aside.rename(storage)

    play("Object storage that fails", {"mend the storage": mend})
    assert "its body is not" not in plant.run(["rejected", "list"])
    assert len({path.parent.name for path in storage.glob("??/*/*")} - copied) == 2


def test_stream_for_other_gatherers_is_complete_or_refused(plant: Plant, page: Mapping[str, list[Step]]) -> None:
    """One worker of the feed has all summaries, also after a loss; a second one with another folder says what it lacks."""
    with ExitStack() as running:
        workers = []
        for name in ("first", "second"):
            (plant.folder / name).mkdir()
            settings = {**plant.settings, "DATA": str(plant.folder / name / "data"), "FEED_ENABLED": "true"}
            workers.append(Deployment(plant.folder / name, ["feed"], settings))
            running.callback(workers[-1].stop)
        first, second = workers
        outside = {
            "set feed.enabled = true for the worker of feed and for the gateway": lambda: None,
            "start the worker of feed": first.start,
            "stop the worker of feed": first.stop,
            "delete the folder `feed` of the data folder": lambda: shutil.rmtree(feed_file(Path(first.settings["DATA"])).parent),
            "start a second worker of feed with another data folder": second.start,
        }
        Player(first.run, outside, lambda: second.log() if second.worker else first.log(), {}).play(
            page["The stream for other Gatherers"]
        )
        assert "ok      feed: complete, " in first.run(["doctor"])
        # The partition that it has is read to its end at some time; the other one never.
        second.wait(lambda: "NOT OK  feed: not complete, so it is not served: 1 of 2 partitions " in second.run(["doctor"]))


def test_broker_is_added_changed_and_removed_beside_running_workers(plant: Plant, play: Play) -> None:
    """A Broker on a running cluster gets what its query accepts, also of what was there before, and of a changed query."""
    own = {"DATA": str(plant.folder / "notes"), "BROKERS": str(plant.data / "brokers")}
    (plant.folder / "notes").mkdir()
    stages = [f"{stage}.notes" for stage in ("register", "dedup", "index")]
    late = Deployment(plant.folder / "notes", stages, {**plant.settings, **own})

    def change() -> None:
        late.wait(lambda: plant.found("--broker", "notes") == plant.wanted())
        (plant.data / "brokers" / "notes.toml").write_text("query = '\"number 1\"'\n", "utf-8")

    with ExitStack() as running:
        running.callback(late.stop)
        gateway: dict[str, Callable[[], object]] = {"restart the gateway": lambda: None}
        start = {"start a worker of register.notes, dedup.notes and index.notes": late.start}
        play("Another Broker on a running cluster", gateway | start)
        restart = {"restart the workers of register.notes": late.restart}
        play("A changed Broker", restart | {"change the query in notes.toml on all machines": change})
        late.wait(lambda: plant.found("--broker", "notes") == {url for url in plant.wanted() if url.endswith("/1.txt")})
        play("The end of a Broker", gateway | {"stop the workers of register.notes, dedup.notes and index.notes": late.stop})


def test_password_is_rotated(page: Mapping[str, list[Step]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a new password a running worker goes on, a command with the old one is refused, and a restarted worker logs in."""
    monkeypatch.setattr("streams.kafka.client.reach.FIRST", 1.0)
    file = tmp_path / "password"
    file.write_text(secured.PASSWORD)
    with secured.running(tmp_path) as server, ExitStack() as running:
        security = {"PROTOCOL": "SASL_SSL", "USER": secured.USER, "PASSWORD_FILE": str(file), "CA": server.ca}
        kafka = {"BROKERS": server.login, "PREFIX": secured.PREFIX, **{f"SECURITY_{name}": one for name, one in security.items()}}
        deployment = Deployment(tmp_path, ["catalog"], {f"KAFKA_{name}": value for name, value in kafka.items()})
        running.callback(deployment.stop)
        broker = Broker(server.open, Topics(server.open))

        def work(name: str) -> None:
            broker.append(f"{secured.PREFIX}made", objects(name))
            deployment.wait(lambda: broker.lag(f"{secured.PREFIX}catalog", f"{secured.PREFIX}made", 2) == 0)

        def change() -> None:
            secured.set_password(server, NEW)
            work("with the old password")

        outside = {
            "give the user its new password in Kafka": change,
            "write the new password into the file that kafka.security.password_file names": lambda: file.write_text(NEW),
            "restart the workers": deployment.restart,
        }
        deployment.run(["topics", "apply"])
        deployment.start()
        work("before")
        Player(deployment.run, outside, deployment.log, {}).play(page["Rotation of a password"])
        work("with the new password")


def test_every_section_is_played(page: Mapping[str, list[Step]]) -> None:
    """Each section of the page has steps, and a test here plays it."""
    text = Path(__file__).read_text("utf-8")
    assert page
    assert [heading for heading, steps in page.items() if not steps or f'"{heading}"' not in text] == []
