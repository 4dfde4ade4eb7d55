"""Checks of this machine, of its safety layers and of the data folder: for `harvest doctor` and the gateway's status page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from streams.cli.common import explained, rebuild_command

if TYPE_CHECKING:
    from streams.config.settings import Settings

ROOM = 1 << 30
"""Free bytes below which the disk is reported as nearly full."""


PARTS, SMALL = 8, 100_000
"""Parts of the store that are named; bytes below which a part is not."""
DAY = 86_400
MISSING = 5
"""Missing rights that are named."""


class Check(NamedTuple):
    """Result of one check."""

    check: str
    ok: bool
    detail: str


def checks(found: Settings) -> Iterator[Check]:
    """Make all checks, one after the other; none raises an error."""
    yield Check("python", sys.version_info >= (3, 11), _python())
    for name, look in (("libmagic", _magic), ("sqlite", _sqlite), ("index engine", _tantivy)):
        yield _tried(name, look)
    yield from _layers(found)
    if found.essence.own or found.essence.packages:
        yield _tried("own summarizers", lambda: _own(found))
    if found.kafka.brokers:
        yield from _cluster(found)
    if found.blobs.url:
        yield _tried("object storage", lambda: _storage(found))
    brokers = _brokers(found)
    if found.index.url:
        for name in brokers:
            yield _tried(_of(name, "index server"), lambda name=name: _server(found, name))  # type: ignore[misc]
    for name in brokers:
        yield _tried(_of(name, "data folder"), lambda name=name: _folder(found, name))  # type: ignore[misc]
    if not found.kafka.brokers:
        yield from _removals(found)
        yield from _sizes(found)
    yield _room(found.data)


def backup_check(folder: Path) -> Check:
    """Read and verify the latest backup in a folder, or one backup."""

    def look() -> str:
        from streams.cli.common import counted
        from streams.operations.restore import find_backup, verify_backup

        backup = find_backup(folder)
        held = verify_backup(backup)
        return f"{backup}: gatherer {held.gatherer or '-'}, {counted(held.bodies, 'body', 'bodies')}, by harvest {held.harvest}"

    return _tried("backup", look)


def _cluster(found: Settings) -> Iterator[Check]:
    """Yield the checks of a cluster."""
    yield _tried("kafka", lambda: _kafka(found))
    if found.kafka.security.protocol != "PLAINTEXT":
        yield _tried("kafka ACLs", lambda: _acls(found))
    if found.feed.enabled:
        yield _tried("feed", lambda: _feed(found))
    for name in _streamed(found):
        yield _tried(f"stream of {name}", lambda name=name: _feed(found, name))  # type: ignore[misc]


def _removals(found: Settings) -> Iterator[Check]:
    """Yield a failed check for each root that has removals in doubt; one that holds if none has."""
    from streams.embedded.outcomes import doubts
    from streams.store import Store, StoreError

    try:
        with Store(found.data, readonly=True) as store:
            doubted = doubts(store)
    except StoreError:
        return  # the check of the data folder says so
    yield from (Check("removals", False, doubt.line) for doubt in doubted)
    if not doubted:
        yield Check("removals", True, "none in doubt")


def _sizes(found: Settings) -> Iterator[Check]:
    """Yield what takes the bytes of the data folder and of its store, and what the retention costs, if there is a store."""
    from streams.cli.common import megabytes
    from streams.config.topology import topology_of
    from streams.operations.folder_sizes import folder_sizes
    from streams.store import Store, StoreError

    try:
        with Store(found.data, readonly=True) as store:
            sizes = folder_sizes(found.data, store, topology_of(found))
    except (StoreError, OSError):
        return  # the check of the data folder says so
    for name, parts in (("sizes", sizes.entries), ("sizes in the store", sizes.store[:PARTS])):
        shown = [f"{part} {megabytes(size)}" for part, size in parts if size >= SMALL]
        yield Check(name, True, ", ".join(shown) or "all small")
    bodies = megabytes(dict(sizes.entries).get("blobs", 0))
    kept = f"topics {megabytes(sizes.history)}, bodies {bodies}, for {found.retention / DAY:g} days (setting retention)"
    yield Check("kept for harvest why", True, kept)


def _brokers(found: Settings) -> list[str]:
    from streams.config.topology import brokers_of

    return [broker.name for broker in brokers_of(found)]


def _streamed(found: Settings) -> list[str]:
    from streams.config.topology import brokers_of

    return [broker.name for broker in brokers_of(found) if broker.stream]


def _of(broker: str, check: str) -> str:
    """The name of a check that is made for each Broker; that of `MAIN` names none."""
    from processors.broker.definition import MAIN

    return check if broker == MAIN else f"{check}, Broker {broker}"


def _tried(name: str, look: Callable[[], str]) -> Check:
    try:
        return Check(name, True, look())
    except Exception as error:  # noqa: BLE001 - whatever does not work is what is asked for
        mistake = explained(error)
        return Check(name, False, mistake[0] if mistake else f"{type(error).__name__}: {error}"[:200])


def _python() -> str:
    """Return version and location, and whether Python is a slow build (the Makefile makes the same check)."""
    from sysconfig import get_config_var

    # Debian's Python, which is below /usr, does not record its build options.
    fast = sys.base_prefix == "/usr" or "--enable-optimizations" in (get_config_var("CONFIG_ARGS") or "")
    slow = "" if fast else ", built without --enable-optimizations: all takes longer than it need"
    return f"{sys.version.split()[0]} in {sys.base_prefix}{slow}"


def _magic() -> str:
    import magic

    found = magic.from_buffer(b"%PDF-1.4\n", mime=True)
    return f"version {magic.version()}, knows a PDF: {found}"  # type: ignore[no-untyped-call]


def _storage(found: Settings) -> str:
    from streams.cli.wiring import blob_settings
    from streams.store.object_storage import ObjectStorage

    ObjectStorage(blob_settings(found)).check(write=True)
    return "bodies can be stored and read"


def _sqlite() -> str:
    import apsw

    return f"version {apsw.sqlite_lib_version()}"


def _tantivy() -> str:
    from importlib.metadata import version

    from sinks.index.tantivy import index as tantivy_index

    return f"{tantivy_index.TantivyIndex.__name__} on tantivy {version('tantivy')}"


def _layers(found: Settings) -> Iterator[Check]:
    import msgspec

    from streams.sandbox.plain import layers
    from streams.sandbox.values import SandboxLimits

    try:
        # With the limits of `gather`, so that the report is true for it.
        for layer in layers(msgspec.convert(found.sandbox.model_dump(), SandboxLimits)):
            yield Check(f"sandbox: {layer.name}", layer.active, layer.detail)
    except Exception as error:  # noqa: BLE001 - whatever does not work is what is asked for
        yield Check("sandbox", False, f"no child can be made: {type(error).__name__}: {error}"[:200])


def _own(found: Settings) -> str:
    """Load the operator's own summarizers in a forkserver, and return their numbers."""
    from streams.cli.common import counted
    from streams.cli.wiring import own_additions
    from streams.edges.extensions import count_extensions
    from streams.sandbox.early import PRELOAD, WORK
    from streams.sandbox.plain import PlainPool

    added = own_additions(found)
    with PlainPool(WORK, None, PRELOAD, added.ordered()):
        return ", ".join(counted(count, what) for what, count in count_extensions(added).items())


def _kafka(found: Settings) -> str:
    """Return brokers, protocol, login, topics, partitions, and the version of Kafka. Raises ClusterError, ClientSettingsError."""
    from streams.cli.common import counted
    from streams.config.topology import topology_of
    from streams.kafka.client.api_versions import broker_protocol
    from streams.kafka.client.cluster import Cluster, ClusterError
    from streams.kafka.client.log import KafkaLog

    brokers = ",".join(found.kafka.brokers)
    drawn = topology_of(found)
    cluster = Cluster.of(found.kafka)
    with KafkaLog(cluster, drawn) as log:
        there, wanted = log.topics(), [topic.name for topic in drawn.topics]
    if missing := [name for name in wanted if name not in there]:
        some = f"{missing[0]} and {len(missing) - 1:,} more are" if len(missing) > 1 else f"{missing[0]} is"
        raise ClusterError(f"{brokers}: {some} not there (harvest topics apply)")
    topics = f"{counted(len(wanted), 'topic')} of {counted(there['crawl'], 'partition')}"
    speaks = broker_protocol(cluster)
    return f"{brokers}: {cluster.security.summary()}, {topics}{f', {speaks}' if speaks else ''}"


def _acls(found: Settings) -> str:
    """Return that the login has the rights of all stages. Raises ClusterError, which names what is missing."""
    from streams.config.topology import topology_of
    from streams.kafka.client.acls import rights_of_stages
    from streams.kafka.client.admin import Admin
    from streams.kafka.client.cluster import Cluster, ClusterError

    cluster = Cluster.of(found.kafka)
    missing = Admin(cluster).missing_rights(rights_of_stages(topology_of(found)))
    if missing:
        first = [f"{one.who}: {' '.join(one.operations)} on {one.kind} {cluster.prefix}{one.name}" for one in missing[:MISSING]]
        more = f"; and {len(missing) - MISSING:,} more" if len(missing) > MISSING else ""
        raise ClusterError(f"refused: {'; '.join(first)}{more} (streams/kafka/README.md lists them)")
    return "grant what all stages need"


def _feed(found: Settings, broker: str = "") -> str:
    """Return the state of a feed in the data folder, which a worker fills. Raises FeedPartial, ClusterError."""
    from sinks.feed.errors import FeedPartial
    from streams.cli.common import open_log
    from streams.operations.feed import feed_report

    with open_log(found) as log:
        whole, text = feed_report(found.data, log, broker)
    if not whole:
        raise FeedPartial(text)
    return text


def _server(found: Settings, broker: str) -> str:
    """Return the state of a Broker's index on OpenSearch. Raises IndexUnreachable."""
    from contextlib import closing

    from schemas.query import Every
    from sinks.index.errors import IndexMissing
    from streams.cli.common import counted
    from streams.operations.indexes import open_index

    try:
        with closing(open_index(found, broker)) as index:
            return f"answers, {counted(index.count(Every()), 'summary', 'summaries')}"
    except IndexMissing:
        return "answers, no index yet"


def _folder(found: Settings, broker: str) -> str:
    from streams.store import StoreError
    from streams.store.data_folder import gatherer, known
    from streams.store.schema import FILE, check_index
    from streams.topology.flow import archive

    folder = found.data
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder}: not a folder")
    with known(folder) as store:
        if store is None:
            if not found.kafka.brokers:  # the workers' index has its log on Kafka
                check_index(folder / FILE)
            return f"{folder}: {'no store of its own' if folder.exists() else 'none yet'}"
        if damage := store.damage():
            raise StoreError(f"{folder}: damaged: {damage}")
        size = (folder / FILE).stat().st_size
        sealed = "" if os.access(folder, os.W_OK) else ", may only be read"
        topic = archive(broker).name
        index = _index(found, broker, summaries=topic in store.topics() and any(store.ends(topic)))
        return f"{folder}: gatherer {gatherer(store) or '-'}, store of {size:,} bytes, {index}{sealed}"


def _index(found: Settings, broker: str, *, summaries: bool) -> str:
    """Return the state of the index in the data folder; `summaries`: the store has some for it. Raises IndexDamaged."""
    from streams.store.data_folder import index_folder

    path = index_folder(found.data, broker)
    if found.index.url:
        return "indexed elsewhere"  # searches query the server
    if not (summaries or path.exists()):
        return "no index yet"
    from sinks.index.errors import IndexDamaged, IndexMissing
    from sinks.index.tantivy.checksums import damage
    from sinks.index.tantivy.index import TantivyIndex

    try:
        if not path.is_dir():
            raise IndexDamaged(f"the index is {'no folder' if path.exists() else 'missing'}: {path}")
        TantivyIndex(path, writable=False).close()
        if wrong := damage(path):
            raise IndexDamaged(f"the index is damaged: {path}: {wrong}")
    except IndexMissing:
        return "no index yet"
    except IndexDamaged as error:
        raise IndexDamaged(f"{error} (make it anew: {rebuild_command(broker)})") from None
    return "indexed"


def _room(folder: Path) -> Check:
    import shutil

    place = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(place).free
    return Check("disk space", free >= ROOM, f"{free:,} bytes free at {place}")
