"""The topology: stages, topics and tables, declared once as data, in flow order.

Both runners and the simulator execute this one value; `harvest describe` draws it. Nothing registers by import side effect.
mypy checks the wiring: a stage's function accepts the record types of its input topics and yields those of its output topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Generic, Literal, TypeVar

import msgspec

from processors.broker import dedup, expiry, register, tagging
from processors.broker.definition import Broker
from processors.broker.settling import Registered
from processors.broker.views import key_of
from processors.frontier import stage as frontier
from processors.frontier.settings import FrontierSettings
from processors.gatherer import catalog
from schemas.ports import Origin, Rows
from schemas.records import (
    Annotation,
    Complete,
    Confirmed,
    CrawlEvent,
    FetchedObject,
    FetchRequest,
    File,
    Holder,
    Partial,
    Record,
    Rejected,
    Removed,
    Role,
    Summary,
    Tick,
    View,
    Withdrawn,
)

R_co = TypeVar("R_co", bound=Record, covariant=True)
In = TypeVar("In", bound=Record)
Out = TypeVar("Out", bound=Record)

Keep = Literal["compact", "delete", "always"]
"""What ends a record: "compact": a newer one of its key; "delete": the age `retention`; "always": age alone never does.

Records of "always" end with a change (annotations) or with a success (rejections).
"""


@dataclass(frozen=True)
class Topic(Generic[R_co]):
    """A topic: its record types, key and retention. `key` returns the text of a record's key."""

    name: str
    carries: tuple[type[R_co], ...]
    key: Callable[[Any], str]
    keep: Keep
    says: str
    public: bool = False


@dataclass(frozen=True)
class Stage(Generic[In, Out]):
    """A stage that decides: a pure function of its rows and one record."""

    name: str
    inputs: tuple[Topic[In], ...]
    outputs: tuple[Topic[Out], ...]
    process: Callable[[Rows, In, Origin], Iterator[Out]]
    rows: str
    """Content of its table, in a few words."""
    deadline: Callable[[Rows], int | None] | None = None
    """Time of the next tick that its rows need (ms since the epoch); None: the stage does not depend on time."""
    derived: tuple[bytes, ...] = ()
    """Prefixes of rows that can be rebuilt from the others, and need no changelog."""
    restore: Callable[[Rows], None] | None = None
    """Rebuilds the derived rows, when a partition is assigned after anything but a clean stop."""
    restart: Callable[[Rows, Mapping[str, int]], tuple[str, ...]] | None = None
    """Returns the input topics that must be read from the beginning, given the rows and the committed offset of each input,
    and of former inputs if the runner knows them.

    Called with the rows of a partition whenever it is taken, before anything is read; what it writes to them must be durable
    before the first record. It returns the same topics until a tick has completed that reading (`processors/broker/reading.py`).
    `Origin.committed` of these topics starts at 0 then.
    """

    @property
    def ticks(self) -> Topic[Tick] | None:
        """The stage's topic of ticks, written by the owner of each partition (law 4)."""
        if self.deadline is None:
            return None
        return Topic(f"{self.name}.ticks", (Tick,), lambda _: "", "delete", "time, as an event")


@dataclass(frozen=True)
class Edge(Generic[In, Out]):
    """A stage with side effects: fetches bytes (fetch), parses them in sandboxed children (essence), or exports records (sink)."""

    name: str
    inputs: tuple[Topic[In], ...]
    outputs: tuple[Topic[Out], ...]
    kind: Literal["fetch", "sandbox", "sink"]
    says: str


class TopologySettings(msgspec.Struct, frozen=True):
    """The settings that the topology depends on."""

    frontier: FrontierSettings = FrontierSettings()
    brokers: tuple[Broker, ...] = (Broker(),)
    feed: bool = False
    """Whether the Gatherer's database is kept ready as one stream."""


def outputs_of(stage: Stage[Any, Any] | Edge[Any, Any]) -> tuple[Topic[Any], ...]:
    """Return the topics that a stage writes, apart from its ticks: its outputs, and `rejected`, which every stage may write."""
    return (*(topic for topic in stage.outputs if topic.name != REJECTED.name), REJECTED)


@dataclass(frozen=True)
class Topology:
    """All stages and topics, in flow order."""

    stages: tuple[Stage[Any, Any] | Edge[Any, Any], ...]
    topics: tuple[Topic[Record], ...] = field(init=False)

    def __post_init__(self) -> None:
        seen: dict[str, Topic[Record]] = {}
        for stage in self.stages:
            ticks = stage.ticks if isinstance(stage, Stage) else None
            for topic in (*stage.inputs, *((ticks,) if ticks else ()), *stage.outputs):
                seen.setdefault(topic.name, topic)
        object.__setattr__(self, "topics", tuple(seen.values()))

    def topic(self, name: str) -> Topic[Record]:
        """Return a topic by name. Raises KeyError."""
        return next((t for t in self.topics if t.name == name), None) or _unknown(name)

    def stage(self, name: str) -> Stage[Any, Any] | Edge[Any, Any]:
        """Return a stage by name. Raises KeyError."""
        return next((s for s in self.stages if s.name == name), None) or _unknown(name)

    def writers(self, topic: Topic[Record]) -> tuple[str, ...]:
        """Return the names of the stages that write a topic (law 1)."""
        return tuple(s.name for s in self.stages if topic.name in {t.name for t in outputs_of(s)})

    def written_by(self, topic: Topic[Record]) -> str:
        """Return the writers of a topic for a reader of the documentation."""
        names = self.writers(topic)
        return "all stages" if len(names) == len(self.stages) else ", ".join(names) or "the command line"

    def readers(self, topic: Topic[Record]) -> tuple[str, ...]:
        """Return the names of the stages that read a topic."""
        return tuple(s.name for s in self.stages if topic.name in {t.name for t in s.inputs})


def _unknown(name: str) -> Any:
    raise KeyError(name)


CRAWL = Topic("crawl", (CrawlEvent,), lambda r: r.host, "delete", "outcomes of URLs, and discovered URLs")
FETCHES = Topic("fetches", (FetchRequest,), lambda r: r.address or r.host, "delete", "a URL is to be fetched")
OBJECTS = Topic("objects", (FetchedObject,), lambda r: r.url, "delete", "an object was fetched, or is gone", public=True)
FILES = Topic("files", (File,), lambda r: r.object_url, "delete", "a file was unnested: facts", public=True)
MADE = Topic[Summary | Complete | Partial | Withdrawn | Confirmed](
    "made",
    (Summary, Complete, Partial, Withdrawn, Confirmed),
    lambda r: r.object_url,
    "delete",
    "an object was summarized, or is unchanged",
)
ANNOTATIONS = Topic("annotations", (Annotation,), lambda r: r.object_url, "always", "someone described a URL by hand")
SUMMARIES = Topic[Summary | Removed](
    "summaries", (Summary, Removed), lambda r: r.oid, "compact", "the Gatherer's database", public=True
)
REJECTED = Topic("rejected", (Rejected,), lambda r: r.url, "always", "something could not be processed", public=True)


def holders(broker: str) -> Topic[Holder]:
    """Return the topic of holders of a content that joined and left, in one Broker."""
    return Topic(f"holders.{broker}", (Holder,), lambda r: r.content, "delete", "a content gained or lost a holder")


def copies(broker: str) -> Topic[Role]:
    """Return the topic of dedup's answers: the role of each holder."""
    return Topic(f"copies.{broker}", (Role,), lambda r: r.oid, "delete", "a summary is canonical, or a copy")


def archive(broker: str) -> Topic[Summary | Removed]:
    """Return the Broker's archive, from which its index is rebuilt."""
    return Topic(f"broker.{broker}", (Summary, Removed), lambda r: r.oid, "compact", "the Broker's archive", public=True)


def views(broker: str) -> Topic[View]:
    """Return the topic of the definitions of a Broker's views; each is written to every partition."""
    return Topic(f"views.{broker}", (View,), lambda r: key_of(r.path), "compact", "a view is defined, or removed")


FETCH = Edge[FetchRequest, FetchedObject | CrawlEvent | Rejected](
    "fetch", (FETCHES,), (OBJECTS, CRAWL, REJECTED), "fetch", "HTTP and files; courtesy, conditional requests"
)
ESSENCE = Edge[FetchedObject, File | Summary | Complete | Partial | Withdrawn | Confirmed | CrawlEvent | Rejected](
    "essence", (OBJECTS,), (FILES, MADE, CRAWL, REJECTED), "sandbox", "recognize, unnest, select, summarize"
)


FEED = "feed"
"""Name of the stage that keeps the Gatherer's database ready as one stream."""
REGISTER = "register."
"""Begins the name of a Broker's stage that decides what it holds."""
STREAM = "stream."
"""Begins the name of the stage that keeps a Broker's archive ready as one stream."""


def streamed(stage: str) -> str | None:
    """Return the Broker whose archive a stage keeps as a stream, "" for the Gatherer's database; None: it keeps no stream."""
    if stage == FEED:
        return ""
    return stage.removeprefix(STREAM) if stage.startswith(STREAM) else None


def gatherer(settings: TopologySettings) -> tuple[Stage[Any, Any] | Edge[Any, Any], ...]:
    """Return the stages from roots to the Gatherer's database."""
    decide = partial(frontier.frontier, settings=settings.frontier)
    return (
        Stage[CrawlEvent | Tick, frontier.Output](
            "frontier",
            (CRAWL,),
            (FETCHES, OBJECTS, CRAWL, REJECTED),
            decide,
            "URLs, hosts, queues, schedule",
            deadline=frontier.deadline,
            derived=frontier.DERIVED,
            restore=frontier.restore,
        ),
        FETCH,
        ESSENCE,
        Stage[catalog.Input, catalog.Catalogued](
            "catalog", (MADE, ANNOTATIONS), (SUMMARIES,), catalog.catalog, "members of objects, annotations"
        ),
        *(
            (Edge[Summary | Removed, Record](FEED, (SUMMARIES,), (), "sink", "what other Gatherers collect"),)
            if settings.feed
            else ()
        ),
    )


def _sources(plan: register.Plan) -> tuple[Topic[Summary | Removed], ...]:
    return tuple(archive(name) if name else SUMMARIES for name in plan.sources.names)


def broker(defined: Broker) -> tuple[Stage[Any, Any] | Edge[Any, Any], ...]:
    """Return the stages of one Broker: its Registry, its duplicates, its index, its stream. Raises QueryError."""
    name, plan = defined.name, register.Plan.of(defined)
    tagged = tagging.Tagging(
        partial(register.register, plan=plan),
        partial(register.deadline, plan=plan),
        partial(register.restart, plan=plan),
        defined.languages,
    )
    return (
        Stage[Summary | Removed | Role | View | Tick, Registered](
            REGISTER + name,
            (views(name), *_sources(plan), copies(name)),
            (archive(name), holders(name)),
            tagged.process,
            "versions, publish counters, roles, views",
            deadline=tagged.deadline,
            derived=(expiry.DERIVED,),
            restore=partial(register.restore, plan=plan),
            restart=tagged.restart,
        ),
        Stage[Holder | Tick, Role](
            f"dedup.{name}",
            (holders(name),),
            (copies(name),),
            dedup.dedup,
            "holders of each content, by rank",
            deadline=dedup.deadline,
            derived=(b"d|",),
            restore=dedup.restore,
        ),
        Edge[Summary | Removed, Record](f"index.{name}", (archive(name),), (), "sink", "what `harvest search` asks"),
        *(
            (Edge[Summary | Removed, Record](STREAM + name, (archive(name),), (), "sink", "what other Gatherers collect"),)
            if defined.stream
            else ()
        ),
    )


@lru_cache(maxsize=8)
def topology(settings: TopologySettings) -> Topology:
    """Return the topology for some settings; drawn once for equal ones. Raises QueryError."""
    return Topology((*gatherer(settings), *(stage for defined in settings.brokers for stage in broker(defined))))
