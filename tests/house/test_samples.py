"""The sample corpus and the sample site have the properties that the tests and the demonstration rely on."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import tarfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest

from tests.samples import make_corpus
from tests.samples.site_server import REDIRECTS, Site, pages

WORD = make_corpus.NESTED_WORD.encode()
LINK = re.compile(rb'href="?([^">\s]+)')


@pytest.fixture
def site() -> Iterator[Site]:
    """The site, served for one test."""
    with Site() as running:
        yield running


def status(url: str, headers: dict[str, str] | None = None) -> int:
    """Return the final status of a URL, following redirects."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=100) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_corpus_is_the_same_each_time(tmp_path: Path) -> None:
    """The corpus has the same bytes and dates each time it is generated."""
    make_corpus.write(tmp_path)
    written = {p.relative_to(tmp_path).as_posix(): p for p in tmp_path.rglob("*") if p.is_file()}
    assert {name: p.read_bytes() for name, p in written.items()} == make_corpus.members()
    assert {p.stat().st_mtime for p in written.values()} == {make_corpus.DATE}


def test_nested_word_is_only_in_innermost_file() -> None:
    """The word is found only by opening three nested archives."""
    files = make_corpus.members()
    assert not [name for name, body in files.items() if WORD in body]
    with zipfile.ZipFile(io.BytesIO(files["archives/bundle.zip"])) as outer:
        papers = gzip.decompress(outer.read("papers.tar.gz"))
    assert WORD not in papers
    with tarfile.open(fileobj=io.BytesIO(papers)) as middle:
        field = middle.extractfile("deep/field.tar.bz2")
        assert field is not None
        assert WORD in bz2.decompress(field.read())


def test_corpus_holds_copies() -> None:
    """Some files have the same content, as input for the elimination of duplicates."""
    files = make_corpus.members()
    assert files["copies/README"] == files["README"]
    assert files["copies/gathering-again.txt"] == files["notes/gathering.txt"]


def test_site_links_lead_somewhere() -> None:
    """Every link of the site leads to one of its pages, to its redirect, or to the one page that is missing."""
    files = pages()
    links = {urljoin(path, link.decode()) for path, body in files.items() if path.endswith(".html") for link in LINK.findall(body)}
    assert links - set(files) - set(REDIRECTS) == {"/lost.html"}
    assert set(REDIRECTS.values()) <= set(files)


def test_site_answers_as_a_server_does(site: Site) -> None:
    """Pages, a redirect, a missing page and an unchanged page are answered as HTTP requires (RFC 9110)."""
    with urllib.request.urlopen(site.url, timeout=100) as answer:
        etag = answer.headers["ETag"]
    assert status(site.url + "old/harvest.html") == 200
    assert status(site.url + "lost.html") == 404
    assert status(site.url, {"If-None-Match": etag}) == 304
    assert site.asked == ["/", "/old/harvest.html", "/harvest.html", "/lost.html", "/"]


def test_site_forbids_one_page(site: Site) -> None:
    """robots.txt forbids an existing, linked page, so that obeying it can be tested."""
    rules = site.files["/robots.txt"].decode()
    assert "Disallow: /private/" in rules
    assert status(site.url + "private/draft.html") == 200
