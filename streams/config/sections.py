"""The sections of `harvest.toml`, read by `streams/config/settings.py`; a test compares them with the values made from them."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from schemas.plan import MAX_PAUSE
from streams.config.base import Section, mistake
from streams.config.client_settings import client_settings
from streams.config.connections import Connection, KafkaSecurity, secret

MIB = 1 << 20
DAY = 86_400
YEAR = 366 * DAY
AGE = 100 * YEAR
"""Upper limit of all times: a later end that no time or row could hold is a mistake."""
MOST = 1 << 50
"""Upper limit of all sizes and counts: a thousand times the capacity of any machine."""


class RootDefaults(Section):
    """Defaults for roots. Files and folders have no limits of depth and count of their own."""

    depth: int = Field(default=10, ge=-1, le=1_000_000)
    """Maximum number of links from a root to a page, for http(s); -1: no limit."""
    urls: int = Field(default=10_000, ge=0, le=MOST)
    """Maximum number of URLs of a root, over all partitions, for http(s); 0: no limit. Files have that of `--max-urls`."""
    ttl: int = Field(default=24 * 7 * DAY, gt=0, le=AGE)
    """Time-to-live: an object that could not be refreshed for this long expires."""
    refresh: int = Field(default=4 * 7 * DAY, gt=0, le=AGE)
    """Refresh-rate: time until `harvest run` requests an object again; a page that was seen to change may be requested sooner.
    Changes in local roots are noticed besides (`watch`)."""
    sitemaps: Literal["auto", "yes", "no"] = "auto"
    """Which sitemaps of a root's server are read: `auto` those that its robots.txt names, `yes` /sitemap.xml too, `no` none."""
    lastmod: Literal["auto", "trust", "ignore"] = "auto"
    """Whether an equal mark of a sitemap or FTP listing saves a request: `auto` while samples (one page in 20, of a large root
    about 300) confirm it, `trust` always, `ignore` never."""
    feeds: bool = False
    """Whether RSS and Atom feeds that pages name are read as lists of pages. A feed that is a root always is."""
    refresh_min: int = Field(default=DAY // 4, gt=0, le=AGE)
    """Shortest time between two refreshes of a page; at `refresh` or above it, all pages are refreshed at the fixed rate."""
    price: int | None = Field(default=None, ge=0, le=AGE)
    """Time for which one more request must keep a page current: less means more requests; default: a quarter of `refresh`."""
    variants: int = Field(default=500, ge=0, le=MOST)
    """Maximum number of queries of one path of a host: a page with more of them is most likely a trap; 0: no limit."""


class Fetch(Section):
    """How objects are fetched."""

    user_agent: str = Field(default="Harvest/0.1", min_length=1)
    """User-Agent sent to servers; begins with the product token that is looked up in robots.txt files."""
    pause: float = Field(default=1.0, ge=0, le=MAX_PAUSE / 1000)
    """Between the end of a request and the start of the next, for each host and for each address; at most an hour."""
    patience: float = Field(default=10.0, ge=0, le=YEAR)
    """Longest wait for the pause between two requests to a host; a URL that would wait longer is queued again by the frontier."""
    dns_timeout: float = Field(default=10.0, gt=0, le=YEAR)
    """Time limit for resolving a host name."""
    connect_timeout: float = Field(default=10.0, gt=0, le=YEAR)
    """Time limit for opening a connection."""
    answer_timeout: float = Field(default=30.0, gt=0, le=YEAR)
    """Time limit from the request to the end of the header, and between two pieces of the body."""
    total_timeout: float = Field(default=600.0, gt=0, le=YEAR)
    """Time limit for one exchange, body included."""
    grace: float = Field(default=20.0, ge=0, le=YEAR)
    """Time of an exchange after which the peer must keep up `min_rate`."""
    min_rate: int = Field(default=500, ge=0, le=MOST)
    """Minimum rate in bytes per second, averaged over an exchange."""
    max_body: int = Field(default=64 * MIB, gt=0, le=MOST)
    """Maximum size of a body from the network, as received and as decoded."""
    max_file: int = Field(default=1024 * MIB, gt=0, le=MOST)
    """Maximum size of a local file."""
    max_ratio: int = Field(default=200, gt=0, le=MOST)
    """Maximum ratio of decoded to received bytes, for bodies that decode to more than 1 MiB."""
    allow: tuple[str, ...] = ()
    """Local networks (CIDR) to which connections are allowed."""
    concurrency: int = Field(default=200, gt=0, le=100_000)
    """Maximum number of simultaneous exchanges."""
    ftp_idle: float = Field(default=60.0, ge=0, le=YEAR)
    """Time for which the control connection to an FTP server is kept after an exchange."""
    ftp_recursive: bool = True
    """Whether an ls-lR that an FTP directory has, and that is younger than the refresh-rate, replaces the listings below it."""
    spool: str = ""
    """Folder for bodies on their way to the blob store; empty: the system's temporary folder."""


class Select(Section):
    """Which objects are summarized."""

    profile: Literal["file-server", "software-archive", "web"] = "file-server"
    """The environment: the initial set of selection rules."""
    stop_names: tuple[str, ...] = (".DS_Store", "._*", "Thumbs.db", "desktop.ini", ".nfs*", "*.part", "*.crdownload")
    """Stop list by name: shell patterns for the last component."""
    stop_types: tuple[str, ...] = ("Core",)
    """Stop list by type: Essence's names."""
    off: tuple[str, ...] = ()
    """Selection rules to switch off, besides those that the profile leaves out."""


class Budgets(Section):
    """Limits for one root object, including everything nested in it."""

    entries: int = Field(default=200_000, gt=0, le=MOST)
    """Maximum number of members; beyond 10,000, no more than one for each 32 bytes of the object."""
    bytes: int = Field(default=4 << 30, gt=0, le=MOST)
    """Maximum output of containers and encodings, each level counted."""
    ratio: int = Field(default=200, gt=0, le=MOST)
    """Maximum ratio of an object's output to its size ..."""
    ratio_from: int = Field(default=64 * MIB, ge=0, le=MOST)
    """... applied once the output has this size."""
    depth: int = Field(default=16, gt=0, le=100)
    """Maximum nesting of containers and encodings."""
    names: int = Field(default=32 * MIB, gt=0, le=MOST)
    """Maximum total length of member names."""
    memory: int = Field(default=8 * MIB, gt=0, le=MOST)
    """A member's body up to this size is kept in memory, a larger one in an anonymous file."""
    member: int = Field(default=256 * MIB, gt=0, le=MOST)
    """Maximum size of a body that must be loaded as a whole."""


class Essence(Section):
    """Recognition, unnesting, selection, summarizing."""

    select: Select = Select()
    limits: Budgets = Budgets()
    entries: bool = True
    """Make a summary for each entry of a list (packages, bibliographies, indexes by hand)."""
    full_text: int = Field(default=0, ge=0, le=MIB)
    """Bytes of full text in a summary (attribute `full-text`), which then replaces its partial text; 0: none."""
    packages_members: bool = False
    """Keep a summary for each file of an archive that is a software package, beside the summary of the package."""
    files: bool = False
    """Write a record for every unnested file (topic `files`)."""
    own: str = ""
    """Folder of the operator's own rules (rules.toml) and summarizers (*.py)."""
    packages: tuple[str, ...] = ()
    """Installed packages whose summarizers (entry points `harvest.summarizers`) are used."""


class Frontier(Section):
    """When URLs are fetched."""

    credit: int = Field(default=8, gt=0, le=10_000)
    """Maximum number of outstanding requests for one host; fewer if more pauses than fit into `fetch.patience`."""
    tries: int = Field(default=3, gt=0, le=100)
    """Attempts for a URL in one run."""
    backoff: int = Field(default=2_000, ge=0, le=AGE * 1_000)
    """ms before the second attempt; four times as long before each further one."""
    patience: int = Field(default=60_000, ge=0, le=AGE * 1_000)
    """ms; a retry later than this is left to the next run."""
    robots_ttl: int = Field(default=DAY * 1_000, gt=0, le=DAY * 1_000)
    """ms that a robots.txt file is valid (RFC 9309, 2.4: at most 24 hours)."""
    doubt: bool = True
    """Hold removals that look like an unmounted disk or a broken server (`processors/frontier/doubt.py`)."""
    doubt_share: float = Field(default=0.5, ge=0, le=1)
    """Share of its objects that a root may lose in one run, if it has at least `doubt_least`; 1: any."""
    doubt_least: int = Field(default=20, gt=0, le=MOST)
    """Number of objects from which on a root, or an empty folder, has much to lose."""


class Sandbox(Section):
    """Limits for one parser process."""

    memory: int = Field(default=384 * MIB, gt=0, le=MOST)
    """Maximum address space beyond that at the start of the process."""
    cpu: int = Field(default=1_800, gt=0, le=YEAR)
    """Maximum CPU time for one object."""
    deadline: float = Field(default=60.0, gt=0, le=YEAR)
    """Maximum wall-clock time without progress."""
    whole: float = Field(default=1_800.0, gt=0, le=YEAR)
    """Maximum wall-clock time for one object, with all retries of its members; the rest of the object is then given up."""
    frame: int = Field(default=16 * MIB, ge=4 * MIB, le=1 << 30)
    """Maximum length of one record, and of the input that a child process gets at once, which may be some MiB."""
    total: int = Field(default=1 << 30, gt=0, le=MOST)
    """Maximum length of all records of one object, or of small objects that a child process gets together."""
    tasks: int = Field(default=10_000, gt=0, le=MOST)
    """Tasks after which a child process is replaced."""
    growth: int = Field(default=128 * MIB, gt=0, le=MOST)
    """Growth of resident memory after which a child process is replaced."""
    file_size: int = Field(default=256 * MIB, gt=0, le=MOST)
    """Maximum length of an anonymous file."""
    files: int = Field(default=64, gt=8, le=1 << 20)
    """Maximum number of open files."""


with warnings.catch_warnings():
    # pydantic warns that `register` shadows a method of every class with ABCMeta; nobody calls that method.
    warnings.simplefilter("ignore", UserWarning)

    class Kafka(Section):
        """Connection to Kafka; without brokers the topology runs in the data folder."""

        brokers: tuple[str, ...] = ()
        """Bootstrap brokers (HOST:PORT); none: everything is in the data folder."""
        prefix: str = Field(default="", max_length=100, pattern=r"^[A-Za-z0-9.-]*$")
        """Prefix of the names of all topics and consumer groups."""
        partitions: int = Field(default=12, gt=0, lt=4_096)
        """Partitions of each topic; fixed once the topics are created."""
        replication: int = Field(default=1, gt=0, le=100)
        """Replicas of each partition."""
        registry: str = ""
        """URL of a Schema Registry; empty: values are in Avro's single-object encoding."""
        register: bool = True
        """Whether to register schemas that are missing in the registry; use false in production."""
        security: KafkaSecurity = KafkaSecurity()
        client: dict[str, str] = Field(default={})
        """Further settings of librdkafka, a table; in the environment NAME=VALUE, separated by commas."""

        @field_validator("client", mode="before")
        @classmethod
        def _client(cls, value: Any) -> dict[str, str]:
            return client_settings(value)

        @field_validator("registry")
        @classmethod
        def _without_login(cls, value: str) -> str:
            if "@" in value:
                raise mistake("user and password belong to kafka.security.registry_user and registry_password")
            return value


class Index(Connection):
    """Location of a Broker's index."""

    url: str = Field(default="", pattern=r"^(https?://[^/?#]+/?)?$")
    """OpenSearch (http://HOST:PORT, https://HOST); empty: the index is in the data folder."""
    name: str = Field(default="harvest", max_length=100, pattern=r"^[a-z0-9][a-z0-9-]*$")
    """Prefix of the names of indexes on OpenSearch."""
    timeout: float = Field(default=10.0, gt=0, le=YEAR)
    """Time that OpenSearch may take for an answer to a search or a check; a worker without one for so long is not ready."""
    user: str = Field(default="", max_length=1_000, pattern="^[^:]*$")
    """User of OpenSearch (HTTP basic authentication)."""
    password_file: str = ""
    """File with the user's password."""
    password: SecretStr = secret()
    """The user's password; better as a file, or in the environment."""
    ca: str = ""
    """File with the CA (PEM) that signs the certificate of OpenSearch; empty: the system's."""
    certificate: str = ""
    """File with the certificate (PEM) of this client, for a server that wants one (mTLS)."""
    key: str = ""
    """File with the key (PEM) of the certificate."""
    key_password_file: str = ""
    """File with the password of the key."""
    key_password: SecretStr = secret()
    """Password of the key, if it is encrypted."""
    check_hostname: bool = True
    """Whether the certificate of OpenSearch must be for the name in `url`."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        """Check what belongs together, then the files."""
        encrypted = urlsplit(self.url).scheme == "https"
        if "@" in self.url and self.user:
            raise mistake("given twice, also in index.url", "user")
        self._group("index.user", bool(self.user), "user", "password")
        self._useless("index.url with https", encrypted, "ca", "certificate", "key")
        self._check_certificates("ca")
        return self


class Weights(Section):
    """Weights of the parts of a score, beside that of a word's form in the whole text, which is 1."""

    title: float = Field(default=0.3, ge=0, le=1_000)
    """Of a form in the title."""
    exact: float = Field(default=0.2, ge=0, le=1_000)
    """Of a bare word as it is written, in the best field."""


class Search(Section):
    """How summaries are searched."""

    weights: Weights = Weights()
    freshness: float = Field(default=0, ge=0, le=1_000)
    """Greatest part of its score that a hit's own date adds; 0: none. The best 1,000 hits are ordered so."""
    half_life: float = Field(default=YEAR, gt=0, le=AGE)
    """Time after which freshness adds half as much."""
    links: float = Field(default=0, ge=0, le=1_000)
    """Greatest part of its score that links to a hit add, by the number of summaries with such a link; 0: none."""
    checked: int = Field(default=5_000, gt=0, le=1_000_000)
    """Maximum number of summaries that are read to answer a search; one that needs more is refused."""

    languages: tuple[str, ...] = ("en",)
    """Languages whose words are found in all their forms (ISO 639-1), that of unknown texts first; a new index is made for them."""

    @field_validator("languages")
    @classmethod
    def _stemmed(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        from processors.query.forms import LANGUAGES  # noqa: PLC0415 - the stemmer is loaded by those who ask for it

        for language in value:
            if language not in LANGUAGES:
                raise ValueError(f"no stems are known for {language!r}; known: {', '.join(sorted(LANGUAGES))}")
        return value


class Worker(Section):
    """Health endpoints and group membership of `harvest run` and `harvest worker`."""

    host: str = "127.0.0.1"
    """Address of /livez, /readyz and /metrics."""
    port: int = Field(default=0, ge=0, le=65_535)
    """Port of these endpoints; 0: off. A command that runs several stages also uses the ports behind it, one for each stage."""
    ports: int = Field(default=1, ge=1, le=10_000)
    """Ports from `port` on, of which each worker takes the first free one, for many workers on a host; 1: as above."""
    stall: float = Field(default=60.0, gt=0, le=YEAR)
    """Time without progress, while there is lag, after which a process exits; the time that one record may take is added."""
    session: float = Field(default=10.0, ge=6, le=1_800)
    """Time without a heartbeat after which a worker's partitions are assigned to others."""
    instance: str = Field(default="", pattern=r"^[A-Za-z0-9._-]{0,200}$")
    """Name of this worker over restarts: its partitions stay reserved until `session` is over (static membership)."""


class Log(Section):
    """Logs on standard error."""

    format: Literal["text", "json"] = "text"
    """text: lines for people; json: one JSON object a line."""
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level of a logged line. Libraries: from warning on, with debug from info on, since lower levels would show secrets."""
    trace: bool = False
    """Log a line of level info for each record written: stage, topic, partition, offset, URL, OID, version."""
