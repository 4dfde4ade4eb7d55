"""Answers of the API, as OpenAPI describes them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from processors.query.facets import FACETS
from schemas.ports import Sort
from sinks.gateway.export import Compression, Format
from sinks.gateway.state import MAX_CHOICES, MAX_HIT, MAX_TEXT, State


def _values(description: str = "", alias: str | None = None) -> Any:
    return Field(default_factory=list, max_length=MAX_CHOICES, alias=alias, description=description)


class Parameters(BaseModel):
    """What is searched. An unknown parameter is an error: a misspelled one would change what is found."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field("", max_length=MAX_TEXT, description="The query; empty: all that the other parameters leave.")
    type: list[str] = _values("Types; a hit has one of them.")
    site: list[str] = _values("Hosts, or names above them.")
    language: list[str] = _values()
    author: list[str] = _values()
    year: list[str] = _values("Years of the documents' own dates.")
    gatherer: list[str] = _values()
    not_type: list[str] = _values("Types that no hit has.", "not-type")
    not_site: list[str] = _values(alias="not-site")
    not_language: list[str] = _values(alias="not-language")
    not_author: list[str] = _values(alias="not-author")
    not_year: list[str] = _values(alias="not-year")
    not_gatherer: list[str] = _values(alias="not-gatherer")
    since: str = Field("", max_length=40, alias="from", description="First year, month or day of the documents' own dates.")
    until: str = Field("", max_length=40, alias="to", description="The last one.")
    inside: str = Field("", max_length=MAX_TEXT, alias="in", description="URL or name of a folder or an archive.")
    like: str = Field("", pattern=r"^([0-9a-f]{64})?$", description="OID of the summary that hits are similar to.")
    copies: bool = Field(False, description="Whether each copy is a hit of its own.")

    def state(self, sort: Sort = "relevance", size: int = 10, page: int = 1) -> State:
        """Return the state of a search page with these parameters."""
        chosen = tuple((facet, value) for facet in FACETS for value in getattr(self, facet) if value.strip())
        excluded = tuple((facet, value) for facet in FACETS for value in getattr(self, f"not_{facet}") if value.strip())
        place, like = self.inside.strip(), self.like
        return State(self.q, chosen, excluded, self.since, self.until, place, like, self.copies, sort, size, page)


class SearchParameters(Parameters):
    """What is searched, and which hits are returned."""

    sort: Sort = "relevance"
    size: int = Field(10, ge=0, le=100, description="Hits on a page.")
    page: int = Field(1, ge=1, le=MAX_HIT, description=f"Hits beyond the first {MAX_HIT:,} are in the export only.")
    facets: bool = Field(True, description="Whether the hits are counted by type, site, language, author, year and gatherer.")


class ExportParameters(Parameters):
    """What is exported, and how."""

    format: Format = "jsonl"
    compression: Compression = Field("none", description="Form of the file, apart from any Content-Encoding.")


class ErrorModel(BaseModel):
    """Why a request has no answer."""

    error: str
    position: int | None = None
    """Position of the mistake in `q`, in code points from 0; null if it has none."""


class HitModel(BaseModel):
    """A hit. `snippet` is plain text; `marks` are the ranges in it that matched, in code points."""

    oid: str
    url: str
    title: str
    type: str
    date: str
    score: float
    snippet: str
    marks: list[tuple[int, int]]
    attributes: dict[str, str]
    copies: list[str]
    copies_count: int


class FacetModel(BaseModel):
    """A value of a facet; `total` is the number of hits with this value chosen."""

    value: str
    total: int


class SearchModel(BaseModel):
    """A page of hits. `query`: what was searched, as text. `left_out`: what was not looked for, or is not shown."""

    query: str
    total: int
    hits: list[HitModel]
    facets: dict[str, list[FacetModel]]
    left_out: list[str]
    spelling: str
    """The query in another spelling; empty if there is none."""


class ViewModel(BaseModel):
    """A view with the number of hits in it."""

    path: str
    total: int


class ViewsModel(BaseModel):
    """Views in order of path."""

    views: list[ViewModel]


class WordModel(BaseModel):
    """A word with the number of summaries that have it."""

    word: str
    total: int


class CompletionModel(BaseModel):
    """Words that begin like the last word of `q`, the most frequent first."""

    words: list[WordModel]


class SummaryModel(BaseModel):
    """A summary under the names of its Avro record (`harvest describe Summary`)."""

    model_config = {"extra": "allow"}

    oid: str
    url: str
    type: str
    attributes: dict[str, list[Any]]


class RootModel(BaseModel):
    """State of a root."""

    url: str
    state: str
    detail: str


class HostModel(BaseModel):
    """State of a host that is being gathered."""

    name: str
    waiting: int
    outstanding: int
    detail: str


class StageModel(BaseModel):
    """Progress of a stage."""

    name: str
    lag: int


class RejectionModel(BaseModel):
    """Number of rejected records with a reason, and an example."""

    reason: str
    total: int
    url: str


class StatusModel(BaseModel):
    """What the pipeline is doing."""

    gatherer: str
    run: str
    roots: list[RootModel]
    hosts: list[HostModel]
    stages: list[StageModel]
    rejections: list[RejectionModel]
    more: list[str]


class EventModel(BaseModel):
    """Event that concerned a URL; `time`: ms since the epoch."""

    time: int
    topic: str
    event: str
    reason: str
    version: int


class HistoryModel(BaseModel):
    """Events that concerned a URL, in order."""

    events: list[EventModel]
