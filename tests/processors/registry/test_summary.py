"""The summary of a registration."""

from __future__ import annotations

from processors.essence.stage import EssenceSettings, essence
from processors.identity import oid
from processors.registry.template import MEDIA, Registration, parse
from schemas.records import FetchedObject, Partial, Rejected, Root, Summary
from schemas.soif import parse as parse_soif
from schemas.soif_summary import to_template
from schemas.soif_writer import dumps
from tests.processors.registry.samples import server, template

SETTINGS = EssenceSettings(gatherer="g")


def fetched(registration: Registration, **changed: object) -> FetchedObject:
    """Return the object of a registration."""
    url = registration.object_url
    given: dict[str, object] = {"url": url, "body": registration.encoded(), "content_type": MEDIA, "root": Root(url=url, run="1")}
    return FetchedObject(version=7, time=9, outcome="fetched", **given | changed)  # type: ignore[arg-type]


def test_attributes_are_those_of_the_server() -> None:
    """Type Server, under the server's URL and with its time-to-live; several kinds, statistics and other attributes are kept."""
    one = server(1, keywords="whales")
    summary, end = essence(fetched(one), None, SETTINGS)
    assert isinstance(summary, Summary)
    assert (summary.type, summary.location, summary.shown_url, summary.ttl) == ("Server", one.url, one.url, 3600)
    assert (summary.oid, summary.version) == (oid("g", one.object_url), 7)
    assert summary.attributes["keywords"] == ("whales",)
    assert "time-to-live" not in summary.attributes
    assert getattr(end, "count", 0) == 1
    assert parse_soif(dumps([to_template(summary)]))[0].values("time-to-live") == (b"3600",)


def test_statistics_stay_bytes() -> None:
    """Statistics are data, also where they happen to be text."""
    summary, _ = essence(fetched(parse(template(statistics="plain"))), None, SETTINGS)
    assert isinstance(summary, Summary)
    assert summary.attributes["statistics"] == (b"plain",)


def test_nothing_else_is_a_server() -> None:
    """A page that a server states to be a registration, and a text that is one, have other types."""
    for url in ("http://evil.example/", "http://evil.example/a.server", "file:///x/registration"):
        records = essence(fetched(server(1), url=url, root=Root(url=url, run="1")), None, SETTINGS)
        (summary,) = [record for record in records if isinstance(record, Summary)]
        assert summary.type != "Server"


def test_crash_of_the_reader_removes_nothing() -> None:
    """An object that is not to be read, since it has crashed a child, is rejected in part."""
    letter, end = essence(fetched(server(1)), None, SETTINGS, {"": "crashed"})
    assert isinstance(letter, Rejected)
    assert letter.reason == "crashed"
    assert isinstance(end, Partial)
