"""The template by which a server registers: what it may state, and each mistake."""

from __future__ import annotations

import pytest

from processors.registry.template import LONGEST, MAX_BODY, MAX_STATISTICS, RegistrationError, is_registration, parse
from schemas import soif
from tests.processors.registry.samples import made, server, template, withdrawal

MISTAKES = {
    "no SOIF": (b"<html>", "not SOIF"),
    "nothing": (b"", "one template"),
    "two": (template() * 2, "one template"),
    "another type": (soif.dumps([made("http://h.example/")._replace(type="FILE")]), "one template"),
    "in another collection": (soif.dumps([made("http://h.example/")._replace(within=("UPDATE",))]), "one template"),
    "cut short": (template()[:-3], "not SOIF"),
    "too long": (b"@SERVER { http://h.example/\n" + b" " * MAX_BODY, "at most"),
    "no name": (template(name=None), "name: is missing"),
    "an odd name": (template(name="a b"), "name: up to"),
    "a long name": (template(name="a" * 101), "name: up to"),
    "no kind": (template(kind=None), "kind: is missing"),
    "another kind": (template(kind="cache"), "kind: gatherer or broker"),
    "no title": (template(title=" "), "title: is missing"),
    "no time-to-live": (template(time_to_live=None), "time-to-live: is missing"),
    "a century": (template(time_to_live="3155760000"), "time-to-live: from 60"),
    "one second too long": (template(time_to_live=str(LONGEST + 1)), "time-to-live: from 60"),
    "too short": (template(time_to_live="59"), "time-to-live: from 60"),
    "negative": (template(time_to_live="-3600"), "time-to-live: from 60"),
    "no number": (template(time_to_live="\u0663\u0663\u0663"), "time-to-live: from 60"),
    "no count": (template(summaries="many"), "summaries: one number"),
    "no URL": (template(""), "URL: "),
    "a file": (template("file:///etc/passwd"), "URL: "),
    "a script": (template("javascript:alert(1)"), "URL: "),
    "a password": (template("http://u:p@h.example/"), "URL: "),
    "no host": (template("http:///x"), "URL: "),
    "a fragment": (template("http://h.example/#x"), "URL: "),
    "a long URL": (template("http://h.example/" + "x" * 1_000), "URL: "),
    "a broken address": (template("http://[::1/"), "URL: "),
    "a control": (template(title="a\x1b[2J"), "title: a control character"),
    "bytes": (template(title=b"\xff\xfe"), "title: text in UTF-8"),
    "a long value": (template(description="x" * 4_001), "description: at most 4,000"),
    "an odd attribute": (template(Ä="x"), "the name of an attribute"),
    "two titles": (template(Title="again"), "title: given twice"),
    "much statistics": (template(statistics=b"\xff" * (MAX_STATISTICS + 1)), "not SOIF"),
    "many attributes": (template(**{f"a{n}": "x" for n in range(60)}), "not SOIF"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_one_line(name: str) -> None:
    """Each mistake is a bounded line that names what is wrong."""
    data, says = MISTAKES[name]
    with pytest.raises(RegistrationError) as caught:
        parse(data)
    assert says in str(caught.value)
    assert len(str(caught.value)) <= 250
    assert "\n" not in str(caught.value)


def test_registration_is_read_back() -> None:
    """What is encoded is read as the same; bytes of statistics, several kinds and other attributes included."""
    both = soif.parse(template(statistics=b"\xff\x00" * 1_000, keywords="reports"))[0]
    data = soif.dumps([both._replace(attributes=(*both.attributes, soif.Attribute("kind", b"gatherer")))])
    found = parse(data)
    assert parse(found.encoded()) == found
    assert (found.name, found.ttl, found.url) == ("cs", 3600, "http://h.example/")
    assert found.template().values("kind") == (b"broker", b"gatherer")


def test_withdrawal_is_read_back() -> None:
    """A withdrawal has the URL and the name alone, and names the same object."""
    gone = withdrawal(server(1))
    assert parse(gone.encoded()) == gone
    assert gone.object_url == server(1).object_url


def test_identity_is_name_and_url() -> None:
    """Two names, or two URLs, are two servers; the same URL in another form, another title or time-to-live are the same one."""
    one = server(1)
    assert server(1, name="other").object_url != one.object_url
    assert parse(template("http://other.example/", name="server-1")).object_url != one.object_url
    assert parse(template("HTTP://h1.Example:80", name="server-1", title="New", time_to_live="60")).object_url == one.object_url
    assert is_registration(one.object_url)
