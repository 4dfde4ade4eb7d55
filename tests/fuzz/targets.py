"""The targets: every unnester and every summarizer that the packages list, and the other parsers of the project.

A target has a corpus (the golden samples of its part, and its saved inputs in tests/samples/fuzz) and the tokens in its source
code.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from processors.essence import summarize, unnest
from processors.essence.recognize import HEAD, recognize
from processors.essence.stage import EssenceSettings, essence
from processors.essence.summarize import preload, summarizer_for
from processors.essence.unnest import plugins
from schemas.codec import encode
from schemas.records import FetchedObject
from schemas.soif import Attribute, Template, dumps
from schemas.soif_summary import to_template
from tests.fuzz import laws

SAMPLES = Path(__file__).resolve().parents[1] / "samples"
SAVED = SAMPLES / "fuzz"
MAX_WORDS = 600

URLS = (
    *(
        b"http://example.org/a/../b?c#d\n",
        b"../x%2e%zz?\nhttp://a.example/b/c",
        b"file:///d/%ff\nfile:///d/",
        b"http://[::1]:80/\n",
    ),
    *(b"HTTPS://user:pw@EXAMPLE.org.:443/%7e\n", b"http://1.2.3.4../\n", "http://ä.example/ß\n".encode(), b"::ffff:127.0.0.1\n"),
)
QUERIES = (
    *(b'whale OR "sea of" -title:shark (type:PDF NOT author:*)', b"((a b) OR NOT c*) AND d:e", b'x:"a\\"b" --c -(d)'),
    "Straße ÄÖ 鯨 の 海 naïve".encode(),
)
ROBOTS = (
    b"User-agent: *\nDisallow: /a/*$\nAllow: /a/b\nCrawl-delay: 1.5\nSitemap: /s.xml\n\nUser-agent: harvest\nDisallow: /%7E\n",
    b"\xef\xbb\xbfuser agent harvest\r\ncrawl-delay: 1e400\r\nrequest-rate: 1/5\nvisit-time: 0100-0200\n",
)
WORDS = tuple(
    b'OR AND NOT - ( ) " * : type: % %2e .. / ? # @ :80 http:// file:/// User-agent: Disallow: Crawl-delay: { } \t \0'.split(b" ")
)


class Target(NamedTuple):
    """A parser that accepts any bytes."""

    name: str
    run: Callable[[bytes], Hashable]
    """Returns the outcome, the same for the same input. Raises laws.Broken for a violated law; any other exception is a fault."""
    corpus: tuple[bytes, ...]
    words: tuple[bytes, ...]


def _saved(name: str) -> list[bytes]:
    return [p.read_bytes() for p in sorted((SAVED / name).glob("*"))]


def tokens(module: str) -> tuple[bytes, ...]:
    """The constants in the source of a module and of processors that it imports: the tokens of its format."""
    found: dict[bytes, None] = {}
    todo, seen = [module], {module}
    while todo:
        own, near = _constants(todo.pop(0))
        found |= dict.fromkeys(own)
        todo += [other for other in near if other not in seen]
        seen.update(near)
    return tuple(found)[:MAX_WORDS]


@cache
def _constants(module: str) -> tuple[tuple[bytes, ...], tuple[str, ...]]:
    """The constants of one module, and the processors of formats that it imports."""
    spec = importlib.util.find_spec(module)
    tree = ast.parse(Path(str(spec and spec.origin)).read_text("utf-8"))
    found: dict[bytes, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            found |= dict.fromkeys(_cut(node.value))
    near = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
    ours = re.compile(r"processors\.essence\.(?:(?:summarize|unnest)\.(?:\w+\.)?_\w+|formats\.\w+(?:\.\w+)?)")
    return tuple(found), tuple(other for other in near if ours.fullmatch(other) and not other.endswith(("_base", "_streams")))


def _cut(value: str | bytes) -> Iterator[bytes]:
    """A constant if it is short, and its words, since it may be a regular expression."""
    raw = value if isinstance(value, bytes) else value.encode("utf-8", "replace")
    if 0 < len(raw) <= 12:
        yield raw
    if len(raw) <= 400 and b". " not in raw:
        yield from (w for w in re.findall(rb"[@<.%\\]?[\w-]{2,16}[:=>{(]?", raw) if len(w) <= 16)


def _unnesting() -> Iterator[Target]:
    for (name, plugin), module in zip(plugins().items(), unnest.modules(), strict=True):
        samples = [p.read_bytes() for p in sorted((SAMPLES / "unnest" / name).iterdir()) if p.suffix != ".json"]
        corpus = (*samples, *_saved(f"unnest-{name}"))
        yield Target(f"unnest-{name}", partial(laws.unnest, plugin), corpus, tokens(module))


def _summarizing() -> Iterator[Target]:
    for sample in sorted((SAMPLES / "summarize").iterdir()):
        expected = sample.with_suffix(".json")
        if sample == expected:
            continue
        known, body = json.loads(expected.read_text("utf-8")), sample.read_bytes()
        name = known["name"].encode()
        kind = recognize(name, body[:HEAD], known.get("stated", ""))
        module = summarizer_for(kind.type).run.__module__
        run = partial(laws.summarized, kind.type, kind.content_type, name)
        target = f"summarize-{module.rpartition('.')[2]}"
        yield Target(target, run, (body, *_saved(target)), tokens(module))


@cache
def _archives() -> Mapping[str, Path]:
    """The first sample of each unnester."""
    folders = {name: sorted((SAMPLES / "unnest" / name).iterdir()) for name in plugins()}
    return {name: next(p for p in found if p.suffix != ".json") for name, found in folders.items()}


def _records() -> tuple[bytes, ...]:
    """Avro records: some objects, and the records that they yield."""
    made: list[bytes] = []
    settings = EssenceSettings(gatherer="g", limits=laws.LIMITS, files=True)
    for name in ("tar", "mail", "office"):
        data = _archives()[name].read_bytes()
        md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
        obj = FetchedObject(url=laws.URL, version=1, time=1, outcome="fetched", size=len(data), md5=md5, sha256="", body=data)
        made += [encode(r) for r in (obj, *essence(obj, None, settings))]
    return tuple(made)


def _soif() -> tuple[bytes, ...]:
    nothing = Template("FILE", laws.URL, (Attribute("title", b"Whale"), Attribute("a", b""), Attribute("Refresh-Rate", b"60")))
    update = Template("FILE", laws.URL, (), ("UPDATE",))
    return dumps([to_template(laws.SUMMARY)]), dumps([nothing, update, nothing]), b"@DELETE { }\n@FILE {\nb{2}: ab\n}\n"


OTHERS = ("recognize", "soif", "query", "robots", "urls", "avro", "listing", "walk")


def names() -> Sequence[str]:
    """The names of all targets, without the cost of building them."""
    parts = {"unnest": unnest.modules(), "summarize": summarize.modules()}
    return [*(f"{part}-{name.rpartition('.')[2]}" for part, found in parts.items() for name in found), *OTHERS]


def _others() -> Iterator[Target]:
    given = {
        "recognize": (laws.recognized, tuple(p.name.encode() + b"\n" + p.read_bytes() for p in _archives().values())),
        "soif": (laws.soif, _soif()),
        "query": (laws.queried, QUERIES),
        "robots": (laws.robotic, ROBOTS),
        "urls": (laws.located, URLS),
        "avro": (laws.avro, _records()),
        "listing": (laws.listed, (b"a\0b.gz\0c d\0.DS_Store\0\xff\xfe\0%2f\0a.tex\0a.dvi\0",)),
        "walk": (laws.walked, tuple(p.read_bytes() for p in _archives().values())),
    }
    for name, (run, corpus) in given.items():
        words = WORDS if name in ("query", "robots", "urls", "soif") else tokens("processors.essence.recognize.table")
        yield Target(name, run, (*corpus, *_saved(name)), words)


@cache
def targets() -> Mapping[str, Target]:
    """All targets by name."""
    preload()
    return {t.name: t for t in (*_unnesting(), *_summarizing(), *_others())}


def wanted(part: str) -> Sequence[Target]:
    """The target of that name, or those whose names contain it."""
    return [targets()[name] for name in names() if name == part or (part not in targets() and part in name)]
