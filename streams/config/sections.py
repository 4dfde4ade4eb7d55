"""The sections of `harvest.toml`, as `streams/config/settings.py` reads them; what they become is held to them by a test."""

from __future__ import annotations

import warnings
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

MIB = 1 << 20
DAY = 86_400
YEAR = 366 * DAY
AGE = 100 * YEAR
"""Times are at most this: an end that no time or row could hold is a mistake."""
MOST = 1 << 50
"""Sizes and counts likewise: a thousand times what any machine has."""


def refuse_nul(value: object) -> object:
    """A value as it is; no path, name or address holds a NUL. Raises ValueError."""
    if isinstance(value, str) and "\0" in value:
        raise ValueError("a NUL can be in no setting")
    return value


class Section(BaseModel):
    """A table of `harvest.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def _no_nul(cls, value: object) -> object:
        return refuse_nul(value)


class RootDefaults(Section):
    """What a root gets that is not told otherwise. Files and folders have no limits of depth and count of their own."""

    depth: int = Field(default=10, ge=-1, le=1_000_000)
    """Links from a root to what is still fetched, for http(s); -1: no limit."""
    urls: int = Field(default=10_000, ge=0, le=MOST)
    """URLs of a root at the most, for http(s); 0: no limit."""
    ttl: int = Field(default=24 * 7 * DAY, gt=0, le=AGE)
    """Time-to-live: what could not be refreshed for so long expires."""
    refresh: int = Field(default=4 * 7 * DAY, gt=0, le=AGE)
    """Refresh-rate: when `harvest run` asks again."""


class Fetch(Section):
    """How bytes are brought in."""

    user_agent: str = Field(default="Harvest/0.1", min_length=1)
    """What servers are told; begins with the product token that robots.txt files are asked for."""
    pause: float = Field(default=1.0, ge=0, le=YEAR)
    """Between the end of a request and the start of the next, for each host and for each address."""
    patience: float = Field(default=10.0, ge=0, le=YEAR)
    """What would wait longer for its host goes back to the queue."""
    dns_timeout: float = Field(default=10.0, gt=0, le=YEAR)
    """For the address of a name."""
    connect_timeout: float = Field(default=10.0, gt=0, le=YEAR)
    """For a connection."""
    answer_timeout: float = Field(default=30.0, gt=0, le=YEAR)
    """From the request to the end of the header, and between two pieces of the body."""
    total_timeout: float = Field(default=600.0, gt=0, le=YEAR)
    """For one exchange, body included."""
    grace: float = Field(default=20.0, ge=0, le=YEAR)
    """After this time of an exchange a peer has to keep up `min_rate`."""
    min_rate: int = Field(default=500, ge=0, le=MOST)
    """Bytes per second, on the average of an exchange."""
    max_body: int = Field(default=64 * MIB, gt=0, le=MOST)
    """Of a body from the network, as received and as decoded."""
    max_file: int = Field(default=1024 * MIB, gt=0, le=MOST)
    """Of a local file."""
    max_ratio: int = Field(default=200, gt=0, le=MOST)
    """Decoded to received bytes, for what decodes to more than 1 MiB."""
    allow: tuple[str, ...] = ()
    """Networks (CIDR) of local targets that may be dialled."""
    concurrency: int = Field(default=200, gt=0, le=100_000)
    """Exchanges at once."""
    spool: str = ""
    """Folder for bodies on their way to the blob store; empty: the system's folder for temporary files."""


class Select(Section):
    """What is worth a summary."""

    profile: Literal["file-server", "software-archive", "web"] = "file-server"
    """The environment: which selection rules there are at first."""
    stop_names: tuple[str, ...] = (".DS_Store", "._*", "Thumbs.db", "desktop.ini", ".nfs*", "*.part", "*.crdownload")
    """Stop list by name: shell patterns for the last component."""
    stop_types: tuple[str, ...] = ("Core",)
    """Stop list by type: Essence's names."""
    off: tuple[str, ...] = ()
    """Selection rules that do not apply, besides those that the profile leaves out."""


class Budgets(Section):
    """What one root object may cost, with all that is nested in it."""

    entries: int = Field(default=200_000, gt=0, le=MOST)
    """Members; beyond 10,000, no more than one for each 32 bytes of the object."""
    bytes: int = Field(default=4 << 30, gt=0, le=MOST)
    """What comes out of containers and encodings, each level counted."""
    ratio: int = Field(default=200, gt=0, le=MOST)
    """How many times its own size an object may give ..."""
    ratio_from: int = Field(default=64 * MIB, ge=0, le=MOST)
    """... once it has given this much."""
    depth: int = Field(default=16, gt=0, le=100)
    """Containers and encodings inside each other."""
    names: int = Field(default=32 * MIB, gt=0, le=MOST)
    """Names of members."""
    memory: int = Field(default=8 * MIB, gt=0, le=MOST)
    """A member's body up to this size is held in memory, above in an anonymous file."""
    member: int = Field(default=256 * MIB, gt=0, le=MOST)
    """A body that must be held whole may have at most this size."""


class Essence(Section):
    """Recognition, unnesting, selection, summarizing."""

    select: Select = Select()
    limits: Budgets = Budgets()
    entries: bool = True
    """Give each entry of a list (packages, bibliographies, indexes by hand) a summary of its own."""
    full_text: int = Field(default=0, ge=0, le=MIB)
    """Bytes of full text that a summary may have (attribute `full-text`) in place of its partial text; 0: none."""
    files: bool = False
    """Give the facts of every file unnested (topic `files`)."""
    own: str = ""
    """Folder of your own rules (rules.toml) and summarizers (*.py)."""
    packages: tuple[str, ...] = ()
    """Installed packages whose summarizers (entry points `harvest.summarizers`) count."""


class Frontier(Section):
    """When a URL is fetched."""

    credit: int = Field(default=8, gt=0, le=10_000)
    """Requests outstanding for one host."""
    tries: int = Field(default=3, gt=0, le=100)
    """Attempts at a URL in one run."""
    backoff: int = Field(default=2_000, ge=0, le=AGE * 1_000)
    """ms before the second try; four times as long before each further one."""
    patience: int = Field(default=60_000, ge=0, le=AGE * 1_000)
    """ms; a retry later than this is left to the next run."""
    robots_ttl: int = Field(default=DAY * 1_000, gt=0, le=DAY * 1_000)
    """ms that a robots.txt file holds (RFC 9309, 2.4: at most 24 hours)."""


class Sandbox(Section):
    """What one child that parses may use."""

    memory: int = Field(default=384 * MIB, gt=0, le=MOST)
    """Address space beyond what it has at its start."""
    cpu: int = Field(default=1_800, gt=0, le=YEAR)
    """CPU time of one object."""
    deadline: float = Field(default=60.0, gt=0, le=YEAR)
    """Wall-clock time without a sign of life."""
    whole: float = Field(default=1_800.0, gt=0, le=YEAR)
    """Wall-clock time of one object, with all tries at its members; then what was not reached of it is given up."""
    frame: int = Field(default=16 * MIB, ge=4 * MIB, le=1 << 30)
    """Length of one record; and of what a child is handed at once, which may be some MiB."""
    total: int = Field(default=1 << 30, gt=0, le=MOST)
    """Length of all records of one object, and of small ones that a child is handed together."""
    tasks: int = Field(default=10_000, gt=0, le=MOST)
    """Tasks after which a child is replaced."""
    growth: int = Field(default=128 * MIB, gt=0, le=MOST)
    """Resident memory that a child may gain before it is replaced."""
    file_size: int = Field(default=256 * MIB, gt=0, le=MOST)
    """Length of an anonymous file."""
    files: int = Field(default=64, gt=8, le=1 << 20)
    """Open files."""


with warnings.catch_warnings():
    # `register` is a method of every class that has ABCMeta, of which pydantic warns; nobody calls it.
    warnings.simplefilter("ignore", UserWarning)

    class Kafka(Section):
        """Where the topology runs on Kafka; without brokers it runs in the data folder."""

        brokers: tuple[str, ...] = ()
        """Brokers to begin with (HOST:PORT); none: everything is in the data folder."""
        prefix: str = Field(default="", max_length=100, pattern=r"^[A-Za-z0-9.-]*$")
        """What the names of all topics and groups begin with."""
        partitions: int = Field(default=12, gt=0, lt=4_096)
        """Partitions of each topic; fixed once the topics are made."""
        replication: int = Field(default=1, gt=0, le=100)
        """Copies of each partition."""
        registry: str = ""
        """URL of a Schema Registry; empty: values are in Avro's single-object encoding."""
        register: bool = True
        """Whether schemas that the registry does not have are registered; false for production."""


class BrokerSection(Section):
    """A Broker over the Gatherer's database, by its name."""

    query: str = Field(default="", max_length=4_000)
    """The summaries that the Broker accepts, as a query; empty: all. A changed query applies to what comes from then on."""
    ttl: int | None = Field(default=None, gt=0, le=AGE)
    """The longest time-to-live that its summaries state; default: their own."""


class Index(Section):
    """Where a Broker's index is."""

    url: str = Field(default="", pattern=r"^(https?://[^/?#]+/?)?$")
    """OpenSearch (http://HOST:PORT, https://USER:PASSWORD@HOST); empty: the index is in the data folder."""
    name: str = Field(default="harvest", max_length=100, pattern=r"^[a-z0-9][a-z0-9-]*$")
    """What the names of indexes there begin with."""


class Worker(Section):
    """What a process that goes on says of itself: `harvest run`, `harvest worker`."""

    host: str = "127.0.0.1"
    """The address that /livez, /readyz and /metrics are served on."""
    port: int = Field(default=0, ge=0, le=65_535)
    """Its port; 0: they are not served. Where one command runs several stages, those behind it too, one for each."""
    stall: float = Field(default=60.0, gt=0, le=YEAR)
    """What has records to read and stands still for so long (and for what one record may take) is taken for dead."""
    session: float = Field(default=10.0, ge=6, le=1_800)
    """Without a sign of life for so long, a worker's partitions are given to others."""
    instance: str = Field(default="", pattern=r"^[A-Za-z0-9._-]{0,200}$")
    """This worker's own name, from start to start: until `session` is over its partitions wait for it (static membership)."""


class Log(Section):
    """What is said on standard error."""

    format: Literal["text", "json"] = "text"
    """text: lines for a person; json: one JSON object a line."""
    trace: bool = False
    """A line for each record written: stage, topic, partition, offset, URL, OID, version."""
