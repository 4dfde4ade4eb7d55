from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.listings import ftp
from processors.essence.listings.ftp import normalize, parse
from processors.essence.listings.listing_format import ListedChild, ParsedListing
from processors.urls import canonical

NOW = 1_732_800_000_000
"""2024-11-28, 13:20 UTC."""
URL = "ftp://example.org/pub/"

SAMPLES: dict[str, tuple[ftp.Form, bytes, bytes]] = {
    "proftpd, MLSD": (
        "MLSD",
        (
            b"modify=20240102030405;perm=flcdmpe;type=cdir;unique=FD00U2;UNIX.group=65534;UNIX.mode=0755;UNIX.owner=0; .\r\n"
            b"modify=20240102030405;perm=flcdmpe;type=pdir;unique=FD00U1;UNIX.group=65534;UNIX.mode=0755;UNIX.owner=0; ..\r\n"
            b"modify=20240102030405;perm=adfr;size=12;type=file;unique=FD00U4;UNIX.group=0;UNIX.mode=0644; a  b;c.txt\r\n"
            b"modify=20240102030405;perm=flcdmpe;type=dir;unique=FD00U5;UNIX.group=0;UNIX.mode=0755;UNIX.owner=0; sub\r\n"
            b"modify=20240102030405;perm=adfr;size=3;type=OS.unix=symlink;unique=FD00U6;UNIX.mode=0777; link\r\n"
        ),
        b"type=file;size=12;modify=20240102030405; a  b;c.txt\ntype=dir; sub\n",
    ),
    "IIS, MLSD": (
        "MLSD",
        b"Type=file;Size=1024990;Modify=19980130010322.123;Perm=r; A.ZIP\r\nType=OS.unix=slink:/x; l\r\nType=file; unknown\r\n",
        b"type=file;size=1024990;modify=19980130010322.123; A.ZIP\ntype=file; unknown\n",
    ),
    "GNU ls": (
        "LIST",
        (
            b"total 12K\n"
            b"drwxr-xr-x.  2 root root        4096 Jan 12  2023 sub\n"
            b"-rw-r--r--+ 12 someone Domain Users 7 Nov 28 14:05 today\n"
            b"-rw-r--r--   1 root root           8 Nov 29 00:05 east of here\n"
            b"-rw-r--r--   1 root root           9 Dec  1 08:05 last year\n"
            b"lrwxrwxrwx   1 root root           3 Jan 12  2023 link -> sub\n"
            b"brw-rw----   1 root disk      8,   0 Jan 12  2023 sda\n"
            b"srwxr-xr-x   1 root root           0 Jan 12  2023 socket\n"
        ),
        (
            b"type=file;size=8;modify=202411290005; east of here\ntype=file;size=9;modify=202312010805; last year\n"
            b"type=dir; sub\ntype=file;size=7;modify=202411281405; today\n"
        ),
    ),
    "GNU ls, long-iso and full-iso": (
        "LIST",
        b"-rw-r--r-- 1 root root 12 2024-01-02 10:11 a\n-rw-r--r-- 1 root root 13 2024-01-02 10:11:12.000000000 +0100 b\n",
        b"type=file;size=12;modify=202401021011; a\ntype=file;size=13;modify=20240102101112; b\n",
    ),
    "vsftpd": (
        "LIST",
        (
            b"drwxr-xr-x    2 ftp      ftp          4096 Jan 02 03:04 sub\r\n"
            b"-rw-r--r--    1 ftp      ftp            12 Jan 02  2023  x y \r\n"
        ),
        b"type=file;size=12;modify=20230102;  x y \ntype=dir; sub\n",
    ),
    "proftpd": (
        "LIST",
        (
            b"-rw-r--r--   1 ftp      nogroup        12 Jan  2 03:04 5 Jan  1 2000 x\r\n"
            b"drwxr-xr-x   2 ftp      nogroup      4096 Feb 29  2024 d\r\n"
        ),
        b"type=file;size=12;modify=202401020304; 5 Jan  1 2000 x\ntype=dir; d\n",
    ),
    "IIS": (
        "LIST",
        (
            b"01-02-24  10:11AM       <DIR>          a directory\r\n"
            b"01-02-1998  12:11AM              1,234 f.txt\r\n"
            b"12-31-97  12:00PM                    0 empty\r\n"
            b"01-02-24  10:11       <JUNCTION>     elsewhere [C:\\]\r\n"
        ),
        b"type=dir; a directory\ntype=file;size=0;modify=199712311200; empty\ntype=file;size=1234;modify=199801020011; f.txt\n",
    ),
    "without links or group": (
        "LIST",
        b"-rw-r--r-- ftp 12 Jan  2  2023 a\n-rw-r--r--   1 12 Jan  2  2023 b\n",
        b"type=file;size=12;modify=20230102; a\ntype=file;size=12;modify=20230102; b\n",
    ),
}


def lines(body: bytes) -> list[bytes]:
    """Split what a server sent as the adapter does."""
    return [line.removesuffix(b"\r") for line in body.split(b"\n")[: None if not body.endswith(b"\n") else -1]]


def read(body: bytes, form: ftp.Form = "MLSD", url: str = URL) -> ParsedListing:
    """Normalize and parse a listing."""
    return parse(io.BytesIO(normalize(lines(body), form, NOW)), url)


@pytest.mark.parametrize("name", SAMPLES)
def test_listing_of_each_server_has_its_normal_form(name: str) -> None:
    """Files and directories are normalized with size and time; links, devices and sockets are left out. All is read."""
    form, body, expected = SAMPLES[name]
    normal = normalize(lines(body), form, NOW)
    assert normal == expected
    assert normalize(lines(normal), "MLSD", NOW) == normal
    assert parse(io.BytesIO(normal), URL).whole


def test_children_have_url_kind_and_mark() -> None:
    """A file is a page marked with size and time, a directory a listing without a mark; without one of both there is no mark."""
    found = read(b"type=file;size=12;modify=20240102030405; a\r\ntype=dir;modify=20240102030405; d\r\ntype=file;size=3; s\r\n")
    assert found == ParsedListing(
        children=(
            ListedChild(url=f"{URL}a", mark="12 20240102030405"),
            ListedChild(url=f"{URL}d/", kind="listing"),
            ListedChild(url=f"{URL}s"),
        ),
        coverage="complete",
    )


def test_names_are_percent_encoded() -> None:
    """Every byte of a name that a URL cannot contain is percent-encoded, UTF-8 or not; below the root directory too."""
    found = read(b"type=file; a b;type=i?#%41\\\xff\xc3\xa4\ntype=dir; %2F\n", url="ftp://h/%2F/")
    assert [child.url for child in found.children] == ["ftp://h/%2F/%252F/", "ftp://h/%2F/a%20b%3Btype=i%3F%23%2541%5C%FF%C3%A4"]
    assert found.whole


REFUSED = [b"a/b", b"/etc/passwd", b"../x", b"a\rb", b"a\0b", b"x" * 13_000]


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: ascii(name[:20]))
def test_impossible_name_is_no_child_and_ends_certainty(name: bytes) -> None:
    """A name that no file has becomes no child; what is missing in such a listing proves nothing."""
    for body, form in (
        (b"type=file; %s\ntype=file; ok\n", "MLSD"),
        (b"-rw-r--r-- 1 a a 1 Jan  1 2020 %s\ntype=file; ok\n", "LIST"),
    ):
        found = read(body % name, form)  # type: ignore[arg-type]
        assert [child.url for child in found.children] == ([f"{URL}ok"] if form == "MLSD" else [])
        assert (found.whole, len(found.reason) <= 200, found.reason.isprintable()) == (False, True, True)


@pytest.mark.parametrize("name", [b".", b".."])
def test_directory_itself_and_its_parent_are_left_out(name: bytes) -> None:
    """`.` and `..`, which some servers list, are no children and no damage."""
    for body, form in ((b"type=dir; %s\n", "MLSD"), (b"drwxr-xr-x 1 a a 1 Jan  1 2020 %s\n", "LIST")):
        assert read(body % name, form) == ParsedListing(children=(), coverage="complete")  # type: ignore[arg-type]


BROKEN = [
    b"<html><title>busy</title>",
    b"-rw-r--r-- 1 a a 12 Mai 32 x",
    b"-rw-r--r-- 1 a a Jan",
    b"size=1; a",
    b"type=file;nonsense",
    b"-?????????? ? ? ? ? ? x",
]


@pytest.mark.parametrize("line", BROKEN)
@pytest.mark.parametrize("form", ["MLSD", "LIST"])
def test_broken_line_ends_certainty(line: bytes, form: ftp.Form) -> None:
    """A line that is no entry may have been a file: the others are children, and the listing is not whole."""
    good = b"type=file; ok" if form == "MLSD" else b"-rw-r--r-- 1 a a 1 Jan  1 2020 ok"
    found = read(b"%s\r\n%s\r\n" % (line, good), form)
    assert [child.url for child in found.children] == [f"{URL}ok"]
    assert not found.whole
    assert "a line that is no entry" in found.reason or "without a type" in found.reason


def test_line_without_end_is_bounded() -> None:
    """A body of one endless line is read in pieces, none of which is an entry."""
    found = parse(io.BytesIO(b"type=file; " + b"x" * 10_000_000), URL)
    assert (found.children, found.whole) == ((), False)


def test_number_of_children_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a listing with more children than the limit only those are read, and it is not whole."""
    monkeypatch.setattr(ftp, "MAX_CHILDREN", 3)
    for number, whole in ((3, True), (4, False)):
        found = read(b"".join(b"type=file; %d\n" % n for n in range(number)))
        assert (len(found.children), found.whole) == (3, whole)


@pytest.mark.parametrize("url", ["http://h/", "ftp://h/x", "file:///"])
def test_other_url_has_no_ftp_listing(url: str) -> None:
    """A body with our media type under any other URL is refused: a web server may send that type too."""
    with pytest.raises(ValueError, match="not the URL of an FTP directory"):
        parse(io.BytesIO(), url)


YEARS = [
    (b"Nov 28 14:05", b"202411281405"),
    (b"Nov 29 00:05", b"202411290005"),
    (b"Nov 30 00:05", b"202311300005"),
    (b"Jan  1 00:05", b"202401010005"),
]


@pytest.mark.parametrize(("date", "expected"), YEARS)
def test_date_without_year_is_the_last_one(date: bytes, expected: bytes) -> None:
    """A date without a year is the last before now, where a server may be a day ahead."""
    assert b"modify=" + expected in normalize([b"-rw-r--r-- 1 a a 1 " + date + b" x"], "LIST", NOW)


def test_first_of_january_may_be_tomorrow() -> None:
    """On the last day of a year, the first of January is tomorrow."""
    assert b"=202501010005;" in normalize([b"-rw-r--r-- 1 a a 1 Jan  1 00:05 x"], "LIST", 1_735_640_000_000)


NAMES = st.binary(min_size=1, max_size=30).filter(lambda name: not set(name) & set(b"/\0\r\n") and name not in (b".", b".."))


@given(names=st.sets(NAMES, max_size=8))
def test_every_possible_name_is_a_canonical_child(names: set[bytes]) -> None:
    """Each file has a canonical URL of its own directly below the directory, whatever its name, by MLSD and by LIST."""
    for form, line in (("MLSD", b"type=file; %s\n"), ("LIST", b"-rw-r--r-- 1 a a 1 Jan  1 2020 %s\n")):
        found = read(b"".join(line % name for name in names), form)  # type: ignore[arg-type]
        assert found.whole
        assert len(found.children) == len(names)
        assert all(canonical(child.url) == child.url and "/" not in child.url.removeprefix(URL) for child in found.children)


@given(body=st.binary(max_size=200), form=st.sampled_from(["MLSD", "LIST"]))
def test_no_input_raises_and_the_normal_form_is_stable(body: bytes, form: ftp.Form) -> None:
    """Whatever a server sends is normalized and parsed; normalized again it is the same, and children are canonical."""
    normal = normalize(lines(body), form, NOW)
    assert normalize(normal.split(b"\n")[:-1], "MLSD", NOW) == normal
    assert all(canonical(child.url) == child.url for child in parse(io.BytesIO(normal), URL).children)


ALMOST = st.text("-drwx01 aJnMay:2<DIR>PMtype=file;size=modify", max_size=60)


@given(text=ALMOST, form=st.sampled_from(["MLSD", "LIST"]))
def test_almost_entries_are_stable(text: str, form: ftp.Form) -> None:
    """What resembles an entry is either one, or unreadable."""
    normal = normalize([text.encode()], form, NOW)
    assert normalize(normal.split(b"\n")[:-1], "MLSD", NOW) == normal
