"""Avro single-object encoding of every record."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from fastavro import schemaless_reader
from fastavro.schema import to_parsing_canonical_form
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import codec
from schemas.codec import HEADER, MAGIC, DecodeError, decode, encode, parsed_schema, publish, rabin, record_type, schema_text
from schemas.records import RECORDS, Record, Removed, Summary, Tick

Anything = Callable[[type[Record]], st.SearchStrategy[Any]]
TICK = Tick(time=1_700_000_000_123, ends={"made-0": 7})


def forget() -> None:
    """Clear the codec's memory of summaries and their bytes, so that decoding reads the bytes."""
    codec._memory._by_id.clear()
    codec._memory._by_data.clear()


def crc64(text: bytes) -> int:
    """Return CRC-64-AVRO as the Avro specification defines it, bit by bit."""
    empty = 0xC15D213AA4D7A795
    crc = empty
    for byte in text:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (empty & -(crc & 1))
    return crc


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_encoded_record_decodes_to_itself(cls: type[Record], any_record: Anything, data: st.DataObject) -> None:
    """An encoded record decodes to an equal record of the same class, which the header alone determines."""
    record = data.draw(any_record(cls))
    wire = encode(record)
    forget()
    assert record_type(wire) is record_type(wire[:HEADER]) is cls
    assert decode(wire) == record
    assert type(decode(wire)) is cls


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_any_avro_reader_can_read_it(cls: type[Record], any_record: Anything, data: st.DataObject) -> None:
    """The bytes after the header are plain Avro: a reader with the schema alone gets the fields."""
    record = data.draw(any_record(cls))
    plain = schemaless_reader(io.BytesIO(encode(record)[HEADER:]), parsed_schema(cls.__name__), None)
    assert isinstance(plain, dict)
    assert list(plain) == list(cls.__struct_fields__)


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
def test_header_is_magic_and_fingerprint(cls: type[Record]) -> None:
    """The header is the magic and the little-endian CRC-64-AVRO of the canonical form of the schema."""
    canonical = to_parsing_canonical_form(schema_text(cls.__name__)).encode()
    assert rabin(cls.__name__) == struct.pack("<Q", crc64(canonical))


@given(st.one_of(st.binary(), st.tuples(st.sampled_from(RECORDS), st.binary()).map(lambda p: MAGIC + rabin(p[0].__name__) + p[1])))
def test_any_bytes_decode_or_raise_decode_error(data: bytes) -> None:
    """Any bytes decode to a record or raise DecodeError with a bounded message, and nothing else."""
    message = ""
    try:
        decode(data)
    except DecodeError as error:
        message = str(error)
    assert len(message) <= 200


@pytest.mark.parametrize("cls", RECORDS, ids=lambda cls: cls.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_truncated_or_extended_record_is_refused(cls: type[Record], any_record: Anything, data: st.DataObject) -> None:
    """A record truncated anywhere, or with an extra byte, is refused."""
    wire = encode(data.draw(any_record(cls)))
    cut = data.draw(st.integers(0, len(wire) - 1))
    for damaged in (wire[:cut], wire + b"\0"):
        with pytest.raises(DecodeError):
            decode(damaged)


def test_unknown_schema_in_header_is_reported() -> None:
    """Bytes with an unknown schema raise an error that says so."""
    with pytest.raises(DecodeError, match="c3010000000000000000"):
        decode(MAGIC + bytes(8))
    with pytest.raises(DecodeError, match="missing"):
        record_type(b"")


def test_record_beyond_its_bounds_is_refused() -> None:
    """A field value that the class refuses is an error of the writer."""
    removed = Removed(oid="o", url="u", object_url="u", version=1, time=2, reason="gone")
    wire = encode(removed)
    assert decode(wire) == removed
    with pytest.raises(DecodeError):
        decode(wire.replace(b"\x02o", b"\x02\xff"))


def test_unknown_schema_raises_file_not_found() -> None:
    """Loading an unknown schema raises FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        schema_text("Nothing")


def test_encoded_bytes_are_stable() -> None:
    """The bytes of a record are the same in every version: this one is fixed."""
    golden = MAGIC + rabin("Tick") + bytes.fromhex("f6a1abfef962020c6d6164652d300e0000")
    assert encode(TICK) == golden
    assert decode(golden) == TICK


COPIES = st.lists(st.text()).map(tuple)
SAID = st.fixed_dictionaries(
    {
        "published": st.integers(0, 1 << 60),
        "copy_of": st.text(),
        "copies": COPIES,
        "copies_count": st.integers(0, 200),
        "views": COPIES,
    }
)


@given(data=st.data(), said=SAID)
def test_published_summary_differs_only_in_changed_fields(any_record: Anything, data: st.DataObject, said: dict[str, Any]) -> None:
    """A republished summary differs only in the changed fields, and has the bytes of a newly built one."""
    summary = data.draw(any_record(Summary))
    for known in (decode(encode(summary)), msgspec.structs.replace(summary)):
        assert isinstance(known, Summary)
        made = publish(known, **said)
        plain = msgspec.structs.replace(summary, **said)
        assert made == plain
        assert encode(made) == encode(plain)


def test_foreign_encoding_is_not_published() -> None:
    """Other writers' encodings of a value, of which Avro allows several, do not enter published bytes."""
    summary = Summary(oid="1", url="u", object_url="u", gatherer="g", version=1, time=1, type="Text", published=0)
    wire = encode(summary)
    assert wire.endswith(bytes(6))
    longer = wire[:-6] + b"\x80\x00" + bytes(5)
    found = decode(longer)
    assert found == summary
    assert isinstance(found, Summary)
    assert encode(publish(found, published=1)) == wire[:-6] + b"\x02" + bytes(5)


FIRST = (
    b"\xc3\x01\xed\r^\x94\xf2\x82\xfb2\x040a\x18http://h/a#m\x14http://h/a\x02m\x02g\x0e\x12\x08Text0application/octet-stream"
    b"\x06\x04c3\x00\x80\xf0\xeb\r\x80\xa8\xa7\x02\x00\x04\ntitle\x04\x00\x02A\x00\x02B\x00\x02x\x02\x02\x02\xff\x00\x00\x00\x10\x00\x00\x00"
)
"""A summary in the first version of its schema."""
GOLDEN = MAGIC + bytes.fromhex("93604aa1eff2055d") + FIRST[10:] + bytes(2)
"""The same in the present one."""


def test_summary_has_fixed_bytes() -> None:
    """A summary has these bytes, remembered or not, and they decode to that summary; so do those of the first version."""
    summary = Summary(
        oid="0a",
        url="http://h/a#m",
        object_url="http://h/a",
        path="m",
        gatherer="g",
        version=7,
        time=9,
        type="Text",
        size=3,
        md5="c3",
        attributes={"title": ("A", "B"), "x": (b"\xff",)},
        published=8,
    )
    assert [encode(summary), encode(summary)] == [GOLDEN, GOLDEN]
    forget()
    assert decode(GOLDEN) == summary
    assert decode(FIRST) == summary
