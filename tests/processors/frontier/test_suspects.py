"""Samples that had changed under an equal mark: what the row of their host records."""

from __future__ import annotations

from processors.frontier.listed import MAX_SUSPECTS, ListedHandlers
from processors.frontier.rows import Table
from processors.frontier.settings import FrontierSettings
from processors.frontier.state import HostState
from processors.identity import url_digest
from schemas.ports import Origin
from schemas.records import Root
from streams.simulator import MemoryRows

HOST = "http://a.test"
ROOT = Root(url=f"{HOST}/", run="r2")
OLD, NEW = url_digest(f"{HOST}/old"), url_digest(f"{HOST}/new")
NOW = 1_000_000


def handlers(site: HostState) -> ListedHandlers:
    """Return handlers at a time, with the row of a host."""
    table = Table(MemoryRows())
    table.put_host(HOST, site)
    return ListedHandlers(table, NOW, Origin("crawl", 0, 1), FrontierSettings())


def test_samples_of_a_run_are_recorded_together() -> None:
    """Samples of one run are added to each other, each once, up to the limit; the run that found the first is kept."""
    found = handlers(HostState(marks_until=2 * NOW, suspects=(OLD,), suspected="r1"))
    for digest in (NEW, OLD, *(url_digest(f"{HOST}/{number}") for number in range(2 * MAX_SUSPECTS))):
        found.suspect_marks(HOST, digest, ROOT)
    site = found.table.host(HOST)
    assert (site.suspects[:2], len(site.suspects), site.suspected) == ((OLD, NEW), MAX_SUSPECTS, "r1")


def test_sample_after_the_refresh_begins_anew() -> None:
    """Once the marks count again, a sample that had changed is not added to those of an earlier run."""
    found = handlers(HostState(marks_until=NOW - 1, suspects=(OLD,), suspected="r1"))
    found.suspect_marks(HOST, NEW, ROOT)
    site = found.table.host(HOST)
    assert (site.suspects, site.suspected) == ((NEW,), "r2")
    assert site.marks_until > NOW


def test_marks_count_again_once_all_changes_are_stated() -> None:
    """Marks count again when a listing states the change of every sample; one that is not stated is enough for them not to."""
    for stated, until in ((True, 0), (False, 2 * NOW)):
        found = handlers(HostState(marks_until=2 * NOW, suspects=(OLD, NEW), suspected="r2"))
        found.judge_suspect(HOST, OLD, stated=True)
        assert found.table.host(HOST).suspects == (NEW,)
        found.judge_suspect(HOST, NEW, stated=stated)
        site = found.table.host(HOST)
        assert (site.suspects, site.marks_until) == ((), until)
