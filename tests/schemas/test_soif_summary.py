"""Summaries and removals as SOIF, and conversion of foreign templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.records import Attributes, Record, Removed, Summary
from schemas.soif import Attribute, Template, dumps, parse
from schemas.soif_summary import NAMES, RecordError, parts, to_record, to_template

Anything = Callable[[type[Record]], st.SearchStrategy[Any]]

SUMMARY = Summary(
    oid="ab" * 32,
    url="http://a/x.tar#m/page.html",
    object_url="http://a/x.tar",
    path="m/page.html",
    gatherer="here",
    version=7,
    time=1_700_000_000_123,
    type="HTML",
    content_type="text/html",
    size=2551,
    md5="bea4c43ce6b976b3403c24f6a353f610",
    attributes={"title": ("Whale",), "keywords": ("sea",), "md5": ("theirs",), "bytes": (b"\xff",)},
    annotations={"keywords": ("cetacea", "mammal"), "note": (), "type": ("mine",)},
    copies=("http://b/", "http://c/"),
    copies_count=2,
)
SOIF = b"""@FILE { http://a/x.tar#m/page.html
update-time{14}:\t1700000000.123
time-to-live{8}:\t14515200
refresh-rate{7}:\t2419200
gatherer-name{4}:\there
type{4}:\tHTML
content-type{9}:\ttext/html
file-size{4}:\t2551
md5{32}:\tbea4c43ce6b976b3403c24f6a353f610
oid{64}:\tabababababababababababababababababababababababababababababababab
object-url{14}:\thttp://a/x.tar
member-path{11}:\tm/page.html
summary-version{1}:\t7
copy{9}:\thttp://b/
copy{9}:\thttp://c/
copies-count{1}:\t2
annotated{34}:\tkeywords 2
note 0
attribute-type 1
title{5}:\tWhale
keywords{3}:\tsea
attribute-md5{6}:\ttheirs
bytes{1}:\t\xff
keywords{7}:\tcetacea
keywords{6}:\tmammal
attribute-type{4}:\tmine
}
"""
REMOVED = Removed(oid="ab" * 32, url="http://a/", object_url="http://a/", version=8, time=9_000, reason="gone", published=3)

FOREIGN = b"""@FILE { ftp://a/b.ps
Time-to-Live{7}:\t9676800
Last-Modification-Time{9}:\t774988159
Gatherer-Name{4}:\tthey
Gatherer-Host{3}:\tout
Type{10}:\tPostScript
Update-Time{9}:\t774988159
File-Size{6}:\t164373
Type{4}:\tmore
}
"""


def equal(record: Summary | Removed) -> Summary | Removed:
    """Return the record with equivalent forms unified: UTF-8 as text, no attribute without values."""
    if isinstance(record, Removed):
        return msgspec.structs.replace(record, removed=True)

    def plain(attributes: Attributes, *, empty: bool) -> dict[str, tuple[str | bytes, ...]]:
        return {name: tuple(map(decoded, values)) for name, values in attributes.items() if values or empty}

    return msgspec.structs.replace(
        record, attributes=plain(record.attributes, empty=False), annotations=plain(record.annotations, empty=True)
    )


def decoded(value: str | bytes) -> str | bytes:
    """Return bytes as text if they are UTF-8."""
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return value


def test_summary_has_fixed_soif() -> None:
    """A summary is written as exactly these bytes, and read back unchanged."""
    assert dumps([to_template(SUMMARY)]) == SOIF
    assert to_record(parse(SOIF)[0]) == equal(SUMMARY)


def test_removal_is_written_in_deletions() -> None:
    """A removal is written in a collection of deletions, and read back unchanged."""
    template = to_template(REMOVED)
    assert dumps([template]).startswith(b"@DELETE {\n@FILE { http://a/\nupdate-time{1}:\t9\n")
    assert template.values("removal-reason") == (b"gone",)
    assert to_record(template) == REMOVED


@pytest.mark.parametrize("cls", [Summary, Removed])
@given(data=st.data())
def test_soif_round_trip_is_lossless(cls: type[Summary | Removed], any_record: Anything, data: st.DataObject) -> None:
    """Any summary and any removal with a URL is read back from its SOIF bytes unchanged."""
    record = msgspec.structs.replace(data.draw(any_record(cls)), url="http://a/")
    assert to_record(parse(dumps([to_template(record)]))[0]) == equal(record)


@given(
    st.sampled_from([*NAMES, "annotated", "attribute-md5", "MD5", "a b", "", "%", "@x", "a{1}", "%41", "é", "\x85"]), st.booleans()
)
def test_attributes_of_any_name_round_trip(name: str, annotated: bool) -> None:
    """Attributes of any name are read back under it, as attributes or annotations, and never as properties."""
    extra: Any = {"annotations" if annotated else "attributes": {name: ("v", b"\xff")}}
    record = Summary(oid="o", url="u", object_url="u", gatherer="g", version=1, time=1, type="HTML", **extra)
    assert to_record(parse(dumps([to_template(record)]))[0]) == record


def test_every_field_has_a_name() -> None:
    """The table of names has every field of a summary and a removal."""
    told = {"url", "attributes", "annotations", "removed"}
    assert {*Summary.__struct_fields__, *Removed.__struct_fields__} == {*NAMES.values()} | told


def test_foreign_template_is_converted() -> None:
    """A template of 1994 gives its properties under our names, the first value of each, and the rest as attributes."""
    properties, attributes, annotations = parts(parse(FOREIGN)[0])
    assert properties == {
        "ttl": 9676800,
        "gatherer": "they",
        "type": "PostScript",
        "time": 774988159000,
        "size": 164373,
    }
    assert attributes == {"Last-Modification-Time": ("774988159",), "Gatherer-Host": ("out",), "Type": ("more",)}
    assert annotations == {}


def test_foreign_template_without_required_property_is_refused() -> None:
    """A template without a required property is refused with the property's name."""
    with pytest.raises(RecordError, match="oid"):
        to_record(parse(FOREIGN)[0])


DAMAGED = [
    ("file-size", b"many", "no number"),
    ("file-size", b"", "no number"),
    ("file-size", b"9" * 30, "no number"),
    ("file-size", b"9223372036854775808", "no number"),
    ("update-time", b"1.x", "no time"),
    ("update-time", b"9223372036854775807", "no time"),
    ("update-time", b"noon", "no number"),
    ("type", b"\xff" * 300, "not UTF-8"),
    ("removal-reason", b"boredom", "unknown removal reason"),
    ("annotated", b"title", "no number"),
    ("annotated", b"title 1", "0 values"),
    ("annotated", b"title -1", "0 values"),
    ("annotated", b"\xff 1", "not UTF-8"),
]


@pytest.mark.parametrize(("name", "value", "message"), DAMAGED)
def test_invalid_property_is_refused_with_name(name: str, value: bytes, message: str) -> None:
    """An invalid property is refused with its name, in a message of bounded length."""
    with pytest.raises(RecordError, match=message) as caught:
        parts(Template("FILE", "u", (Attribute(name, value),)))
    assert str(caught.value).startswith(name)
    assert len(str(caught.value)) <= 200


@pytest.mark.parametrize(
    ("ms", "text"), [(0, b"0"), (1, b"0.001"), (-1, b"-0.001"), (1000, b"1"), (793962520000, b"793962520"), (-1500, b"-1.500")]
)
def test_times_are_in_seconds(ms: int, text: bytes) -> None:
    """Times are in seconds, with milliseconds only if they are not zero."""
    template = to_template(msgspec.structs.replace(REMOVED, time=ms))
    assert template.values("update-time") == (text,)
    assert to_record(template).time == ms
