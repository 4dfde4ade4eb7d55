"""Another Gatherer's streams: which summaries they become, and what a bad stream removes (nothing)."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from processors.essence.collected import LISTING
from processors.identity import oid
from schemas.records import Complete, CrawlEvent, Partial, Rejected, Summary
from schemas.soif import Attribute, Template, dumps
from schemas.soif_summary import to_template
from tests.processors.essence.collected_streams import LIST, PART, ROOT, UNUSED_PART, collected, foreign, gone, stream, summaries


def test_summaries_are_kept_as_they_are() -> None:
    """Type, size, digests, lifetimes and attributes are those of the source; OID, URL and version are ours."""
    sent = foreign("a", type="PDF", content_type="application/pdf", size=3, md5="a" * 32, sha256="b" * 64, ttl=77, refresh=66)
    (made, end) = collected(stream(replace(sent, annotations={"note": ("n",)})))
    assert isinstance(made, Summary)
    assert isinstance(end, Complete)
    assert end.count == 1
    assert made.url == f"{PART}#{sent.oid}"
    assert (made.oid, made.path, made.object_url) == (oid("us", made.url), sent.oid, PART)
    assert (made.gatherer, made.version, made.attempt) == ("us", 5, end.attempt)
    assert made.location == sent.url
    for name in ("type", "content_type", "size", "md5", "sha256", "ttl", "refresh"):
        assert getattr(made, name) == getattr(sent, name)
    own = {"foreign-oid": (sent.oid,), "foreign-gatherer": ("source",), "via": ("source",)}
    assert made.attributes == {"title": ("a",), "note": ("n",), **own}


def test_last_template_of_an_oid_counts() -> None:
    """A superseded template gives nothing, and neither does one that is removed behind it."""
    records = collected(stream(foreign("a", type="Old"), foreign("b"), foreign("a", type="New"), gone("b")))
    assert [(one.location[-1], one.type) for one in summaries(records)] == [("a", "New")]
    # A removal says that the stream is no mere list; what it has is still everything.
    assert isinstance(records[-1], Complete)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (stream(foreign("a"), foreign("b"))[:-40], "cut|end of the data"),
        (stream(foreign("a"))[:400], "end of the data"),
        (dumps([Template("GATHERER"), to_template(foreign("a"))]), "cut short"),
        (stream(foreign("a"), count=2), "it has 1 templates, not 2"),
        (stream(foreign("a"), tail=b"@FILE { http://x/\n}\n"), "behind its end"),
        (b"<html>Sign in</html>", "byte 0"),
        (b"", "no template"),
        (b"@UPDATE {\n}\n", "no template"),
        (dumps([Template("END")]), "no template"),
        (b"\x1f\x8b\x00binary", "byte 0"),
    ],
)
def test_bad_stream_removes_nothing(body: bytes, why: str) -> None:
    """A stream that is cut short, has a wrong count, or is none is rejected, and fetched again as a whole; nothing is removed."""
    letter, event, end = collected(body)
    assert isinstance(letter, Rejected)
    assert event == UNUSED_PART
    assert isinstance(end, Partial)
    assert end.count == 0
    assert any(one in letter.reason for one in why.split("|"))


def test_gateway_that_redirects_is_collected() -> None:
    """A gateway may have moved: what is at the other address is a stream or nothing, and never an object of its own."""
    there = "https://other.example/gatherer/soif/3"
    assert [one.location for one in summaries(collected(stream(foreign("a")), url=there))] == [foreign("a").url]
    letter, *rest = collected(b"<html>Sign in</html>", "text/html", url=there)
    assert isinstance(letter, Rejected)
    assert not summaries(rest)


def test_bad_template_is_left_out() -> None:
    """A template with a property that cannot be read is rejected; the others are taken, and the whole is fetched again."""
    bad = to_template(foreign("bad"))._replace(within=("UPDATE",))
    bad = bad._replace(attributes=(Attribute("file-size", b"many"), *(a for a in bad.attributes if a.name != "file-size")))
    body = stream(foreign("a"), foreign("b"), count=3).replace(b"}\n@END", dumps([bad])[len(b"@UPDATE {\n") :] + b"@END", 1)
    records = collected(body)
    assert [one.location[-1] for one in summaries(records)] == ["a", "b"]
    assert [type(one) for one in records[-3:]] == [Rejected, CrawlEvent, Partial]
    assert records[-2] == UNUSED_PART


def test_own_summaries_are_left_out() -> None:
    """What comes from this Gatherer, directly or by way of others, is not collected: a ring comes to rest."""
    direct = foreign("a", gatherer="us", oid=oid("us", "http://www.example.org/a"))
    around = foreign("b", attributes={"via": ("us", "other")})
    other = foreign("c", attributes={"via": ("other", "third")})
    (made,) = summaries(collected(stream(direct, around, other)))
    assert made.location[-1] == "c"
    assert made.attributes["via"] == ("other", "third", "source")


def test_gatherer_of_the_same_name_is_rejected() -> None:
    """A stream from a Gatherer with our own name is rejected, with the reason: two on one machine have the same name by default."""
    letter, _, end = collected(stream(foreign("a")), gatherer="source")
    assert isinstance(letter, Rejected)
    assert isinstance(end, Partial)
    assert "the name of this one, source" in letter.reason


def test_collected_twice_keeps_the_location() -> None:
    """A Gatherer of Gatherers passes on where the object is, not where its summary was collected."""
    (first,) = summaries(collected(stream(foreign("a"))))
    (second,) = summaries(collected(stream(first), gatherer="them"))
    assert second.location == "http://www.example.org/a"
    assert second.attributes["via"] == ("source", "us")
    assert second.attributes["foreign-oid"] == (first.oid,)


def test_hostile_properties_are_bounded() -> None:
    """Whatever a template states, the summary is a valid one of the part: its OID, no digests that are none, no lifetime of 0."""
    sent = foreign("a", url="file:///etc/passwd", md5="../x", sha256="Z" * 64, size=0, ttl=0, type="x" * 5_000, path="../../p")
    (made,) = summaries(collected(stream(replace(sent, published=9, copy_of="c", copies=("d",), copies_count=1))))
    assert made.location == "file:///etc/passwd"
    assert made.url == f"{PART}#{sent.oid}"
    assert (made.md5, made.sha256, made.ttl, len(made.type)) == ("", "", 1, 200)
    assert (made.published, made.copy_of, made.copies, made.copies_count) == (0, "", (), 0)


def test_large_attributes_are_left_out() -> None:
    """A record has room for some attributes; further ones are left out, and the summary stays."""
    attributes = {"title": ("t",), "large": ("x" * (3 << 20),)}
    (made,) = summaries(collected(stream(foreign("a", attributes=attributes))))
    assert made.attributes["title"] == ("t",)
    assert "large" not in made.attributes


def test_stream_of_1995() -> None:
    """Templates of other Gatherers have an OID computed of their Gatherer and URL; DELETE and REFRESH remove nothing by absence."""
    update = (
        b"@UPDATE {\n@FILE { ftp://ftp.example.org/a.ps\nGatherer-Name{3}:\tOld\nType{10}:\tPostScript\nMD5{32}:\t"
        + b"a" * 32
        + b"\n}\n}\n"
    )
    rest = (
        b"@DELETE {\n@FILE { ftp://ftp.example.org/b\n}\n}\n@REFRESH {\n@FILE { ftp://ftp.example.org/c\nUpdate-Time{1}:\t1\n}\n}\n"
    )
    (made, end) = collected(update)
    assert isinstance(made, Summary)
    assert isinstance(end, Complete)
    assert (made.location, made.type, made.path) == (
        "ftp://ftp.example.org/a.ps",
        "PostScript",
        oid("Old", "ftp://ftp.example.org/a.ps"),
    )
    assert made.attributes["via"] == ("Old",)
    records = collected(rest + update)
    assert len(summaries(records)) == 1
    assert isinstance(records[-1], Partial)


def test_listing_leads_to_the_parts() -> None:
    """The parts are links below the listing; other URLs in it are not followed."""
    urls = ("0", "1", "http://source.example/gatherer/soif/2", "http://other.example/gatherer/soif/3", "/etc", "", "file:///etc/")
    events = collected(dumps([Template("GATHERER"), *(Template("PART", url) for url in urls)]), LISTING, LIST)
    links = [link.url for event in events if isinstance(event, CrawlEvent) for link in event.links]
    assert links == [f"{LIST}{number}" for number in range(3)]
    assert isinstance(events[-1], Complete)
    assert events[-1].count == 0
    assert [type(one) for one in collected(b"", LISTING, LIST)] == [Rejected, CrawlEvent, Partial]


@pytest.mark.parametrize("url", [LIST, PART])
def test_other_page_in_place_of_a_stream_removes_nothing(url: str) -> None:
    """What a proxy answers instead, with a status of success, is no summary, and what was collected stays."""
    letter, _, end = collected(b"<html><title>Sign in</title></html>", media="text/html", url=url)
    assert isinstance(letter, Rejected)
    assert isinstance(end, Partial)
    assert "text/html" in letter.reason


def test_only_collected_roots_give_foreign_summaries() -> None:
    """The same bytes in any other root are a document as any other."""
    (made,) = summaries(collected(stream(foreign("a")), root=replace(ROOT, url="http://source.example/")))
    assert made.url == PART
    assert not made.location
