"""Rules added by an operator: new types, more names for built-in types, types by place, and mistakes in all of them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence import extensions, recognize
from processors.essence.extensions import OwnError, parse_rules
from processors.essence.recognize import recognize as recognized
from processors.essence.summarize import Facts, Found, Summarizer, SummaryError, summarize, summarizers
from schemas.records import Summary
from schemas.soif import Attribute, Template, dumps

RECIPE = """
[types.Recipe]
media = "text/x-recipe"
text = true
suffixes = ["recipe"]
patterns = ['^Serves \\d+']
"""


@pytest.fixture
def install() -> Iterator[Callable[..., None]]:
    """Function that activates rules, plug-ins and a program runner; the previous state is restored afterwards."""

    def put(text: str, run: extensions.Run | None = None, **plugins: Any) -> None:
        extensions.install(parse_rules(text), {f"{name}.py": plugin for name, plugin in plugins.items()}, run)

    yield put
    extensions.uninstall()


def summarize_body(kind: str, body: bytes = b"") -> Found:
    """Return the summarizer's result for a body of a type."""
    found = Found()
    summarize(Facts(b"soup", "file:///soup", kind, "text/x-recipe", len(body), 0, ""), io.BytesIO(body), found)
    return found


def test_new_type_is_recognized(install: Callable[..., None]) -> None:
    """A new type is recognized by its suffix and its content, unless the content contradicts the name."""
    install(RECIPE)
    assert recognized(b"cake.recipe", b"flour\n") == ("Recipe", "text/x-recipe", "name")
    assert recognized(b"cake", b"Cake\nServes 4\n") == ("Recipe", "text/x-recipe", "content")
    assert recognized(b"cake.recipe", b"\x89PNG\r\n\x1a\n\0\0").type == "Image"
    extensions.uninstall()
    assert recognized(b"cake.recipe", b"flour\n").type == "RawText"


def test_operator_type_takes_precedence(install: Callable[..., None]) -> None:
    """The operator's type takes precedence for a suffix that a built-in type has, too."""
    install('[types.Sage]\nmedia = "text/x-sage"\ntext = true\nextends = "Python"\nsuffixes = ["py"]\n')
    assert recognized(b"x.py", b"import os\n").type == "Sage"
    assert summarize_body("Sage", b'"""Rings."""\n').text("title") == "Rings."


def test_names_are_added_to_builtin_type(install: Callable[..., None]) -> None:
    """Listed names are added to those of the built-in type."""
    install('[types.Python]\nsuffixes = ["sage"]\nnames = ["wscript"]\n[types.Zip]\nstarts = ["MYZIP"]\n')
    assert recognized(b"x.sage", b"import os\n").type == "Python"
    assert recognized(b"wscript", b"import os\n").type == "Python"
    assert recognized(b"x.py", b"import os\n").type == "Python"
    assert recognized(b"x", b"MYZIP\0\1").type == "Zip"


def test_place_determines_type(install: Callable[..., None]) -> None:
    """A place determines the type of its files before name and source, unless the content contradicts."""
    install('[[places]]\nurl = "http://a.example/logs/*"\ntype = "ChangeLog"\n')
    told = recognize.placed("http://a.example/logs/2026/x.html")
    assert told == "ChangeLog"
    assert recognize.placed("http://b.example/logs/x.html") == ""
    assert recognized(b"x.html", b"made a change\n", "text/html", told) == ("ChangeLog", "text/plain", "operator")
    assert recognized(b"x.html", b"%PDF-1.4\n\0\0", "", told).type == "PDF"


def test_place_applies_to_members_and_compressed_files(install: Callable[..., None], run: Any, tar: Any) -> None:
    """A place pattern may match members of an archive, and compressed files."""
    install('[[places]]\nurl = "file:///d/x?*a/notes"\ntype = "ChangeLog"\n')
    types = {r.path: r.type for r in run(tar([("a/notes", gzip.compress(b"more salt\n"))])) if isinstance(r, Summary)}
    assert types == {"a/notes": "ChangeLog", "": "Tar"}


def test_operator_summarizer_replaces_builtin(install: Callable[..., None]) -> None:
    """An operator's summarizer replaces a built-in one; its exceptions become reasons."""

    def run(facts: Facts, body: Any, found: Found) -> None:
        found.add("salt", body.read().decode())
        if "!" in found.text("salt"):
            raise RuntimeError("too much")

    install(RECIPE, mine=Summarizer(types=("Recipe", "Python"), run=run))
    assert summarize_body("Recipe", b"a pinch").attributes["salt"] == ["a pinch"]
    assert summarize_body("Python", b"import salt").attributes["salt"] == ["import salt"]
    assert "Python" in summarizers()
    with pytest.raises(SummaryError, match="Recipe: RuntimeError: too much"):
        summarize_body("Recipe", b"salt!")


def test_additional_summarizer_adds_attributes(install: Callable[..., None]) -> None:
    """An additional summarizer or program adds attributes for each type that it names and for their subtypes."""

    def count(facts: Facts, body: Any, found: Found) -> None:
        found.add("lines", str(body.read().count(b"\n")))

    def ask(name: str, facts: Facts, body: Any) -> bytes:
        return dumps([Template("FILE", "-", (Attribute("asked", f"{name} of {facts.type}".encode()),))])

    counts = Summarizer(types=("RawText", "README"), run=count, beside=True)
    install('[programs.Unrecognized]\ncommand = ["/bin/true"]\nbeside = true\n', ask, mine=counts, other=counts)
    notes = summarize_body("FAQ", b"What is it?\nSoup.\n").attributes
    assert (notes["headings"], notes["lines"], notes["asked"]) == (["What is it?"], ["2"], ["Unrecognized of FAQ"])
    script = summarize_body("Python", b"def soup():\n    pass\n").attributes
    assert (script["functions"], script["asked"]) == (["soup"], ["Unrecognized of Python"])
    assert "lines" not in script
    extensions.uninstall()
    assert "lines" not in summarize_body("FAQ", b"What is it?\n").attributes


def test_printed_soif_adds_attributes(install: Callable[..., None]) -> None:
    """All attributes of all printed templates are added, bytes too, except reserved ones."""
    attributes = (Attribute("Yield", b"4"), Attribute("raw", b"\xff"), Attribute("reason", b"none"))
    printed = dumps([Template("FILE", "-", attributes), Template("FILE", "-", (Attribute("yield", b"5"),))])
    install(RECIPE + '[programs.Recipe]\ncommand = ["/bin/true"]\n', lambda *_: printed)
    assert {n: v for n, v in summarize_body("Recipe").attributes.items() if n != "title"} == {"yield": ["4", "5"], "raw": [b"\xff"]}


@pytest.mark.parametrize("printed", [b"Hello", b"@FILE { -\na{5}:\tb\n}\n", b"@FILE { -"])
def test_invalid_printed_soif_rejects_file(install: Callable[..., None], printed: bytes) -> None:
    """Invalid SOIF rejects the file with the offset of the fault."""
    install(RECIPE + '[programs.Recipe]\ncommand = ["/bin/true"]\n', lambda *_: printed)
    with pytest.raises(SummaryError, match="the program gave no SOIF"):
        summarize_body("Recipe")


MISTAKES = [
    ("[types", "Expected ']'"),
    ("[kinds.X]", "unknown field `kinds`"),
    ("[types.X]\ncolour = 1", "unknown field `colour`"),
    ('[types.X]\nsuffixes = "x"', "types[...].suffixes"),
    ("[types.X]\ntext = true", "types.X: a type that is new has a media type"),
    ('[types."a b"]\nmedia = "a/b"', "types.a b: the name of a type is letters and digits"),
    ('[types.X]\nmedia = "a/b"\nextends = "Y"', "types.X: there is no type Y"),
    ('[types.X]\nmedia = "a/b"\nnames = ["("]', "types.X: '(' is no pattern"),
    ('[types.X]\nmedia = "a/b"\npatterns = ["\\u20ac"]', "is no pattern"),
    ('[types.X]\nmedia = "a/b"\nstarts = ["\\u20ac"]', "is no signature"),
    ('[types.X]\nmedia = "a/b"\nstarts = [""]', "an empty suffix or signature"),
    ('[types.Python]\nmedia = "a/b"', "types.Python: media cannot be changed"),
    ('[[places]]\nurl = "*"\ntype = "Y"', "places: *: there is no type Y"),
    ('[[places]]\nurl = "*"', "missing required field `type`"),
    ('[programs.Y]\ncommand = ["/bin/true"]', "programs.Y: there is no type Y"),
    ('[programs.Python]\ncommand = ["true"]', "whole path of a program"),
    ("[programs.Python]\ncommand = []", "whole path of a program"),
    ('[programs.Python]\ncommand = ["/bin/true"]\nseconds = 0', "seconds are above 0"),
    ('[programs.Python]\ncommand = ["/bin/true"]\nreads = ["x"]', "named by whole paths"),
    ("x = " + "[" * 5_000, ""),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_one_line(text: str, said: str) -> None:
    """A mistake in the rules is reported in one line that names its subject, and nothing takes effect."""
    with pytest.raises(OwnError) as caught:
        parse_rules(text)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert recognize.table() is recognize.shipped()


def test_invalid_plugin_is_a_mistake(install: Callable[..., None]) -> None:
    """A plug-in that is not a Summarizer, has an unknown type, or conflicts with another is a mistake."""
    good = Summarizer(types=("Recipe",), run=lambda *_: None)
    with pytest.raises(OwnError, match=r"^mine\.py: SUMMARIZER is a int, not a Summarizer$"):
        install(RECIPE, mine=3)
    with pytest.raises(OwnError, match=r"^mine\.py: there is no type Recipe"):
        install("", mine=good)
    with pytest.raises(OwnError, match=r"^other\.py: mine\.py summarizes Recipe already$"):
        install(RECIPE, mine=good, other=good)
    with pytest.raises(OwnError, match=r"^mine\.py: a program summarizes Recipe already$"):
        install(RECIPE + '[programs.Recipe]\ncommand = ["/bin/true"]\n', mine=good)
    assert "Recipe" not in recognize.table().rules


@given(st.text(max_size=200))
def test_any_text_is_rules_or_a_mistake(text: str) -> None:
    """Any text is either valid rules or raises the declared error."""
    said = "rules"
    try:
        parse_rules(text)
    except OwnError as error:
        said = str(error)
    assert said
    assert "\n" not in said
