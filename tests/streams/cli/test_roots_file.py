"""`harvest roots apply` and `roots show`: roots as a file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.codec import decode, encode
from schemas.records import CrawlEvent, Plan, Root
from streams.kafka.client import roots as cluster
from streams.logs import StoreLog
from streams.operations.roots_file import RootSection, RootsFileError, parse_roots
from streams.store import Store
from streams.topology.flow import TopologySettings, topology

FULL = """
[[root]]
url = "https://www.example.org/"
depth = 5
urls = 50_000
pause = 5.0
hours = "22:00-06:00 +01:00"
refresh = "7d"
refresh_min = "6h"
ttl = "24w"
hosts = ["www.example.org", "*.Lists.example.org"]
schemes = ["https", "http"]
deny = ['\\.(gif|iso)$', '/calendar/']
allow = []
rewrite = ["session", "tracking"]
map = [{ url = "https://www.example.org/docs/", path = "%s" }]
missing = "fetch"
feeds = true
price = "1d"
variants = 20

[[root]]
url = "http://b.example/"
"""


@pytest.fixture
def file(harvest: Any, tmp_path: Path) -> Path:
    """A file of two roots, one with all options."""
    docs = tmp_path / "docs"
    docs.mkdir()
    path = tmp_path / "roots.toml"
    path.write_text(FULL % docs)
    return path


def test_file_is_applied_and_shown(harvest: Any, file: Path) -> None:
    """Roots of a file are added with their limits; applied again, nothing changes; what `show` prints is such a file."""
    first = harvest("roots", "apply", file)
    assert first.stdout.splitlines()[1] == "added http://b.example/"
    assert "2 added, 0 changed, 0 removed, 0 unchanged\n" in first.stderr
    listed = {root["url"]: root for root in harvest.lines("roots", "list")}
    assert listed["https://www.example.org/"] == {
        "url": "https://www.example.org/",
        "state": "active",
        "depth": 5,
        "urls": 50_000,
        "ttl": 24 * 7 * 86_400,
        "refresh": 7 * 86_400,
    }
    assert listed["http://b.example/"]["depth"] == 10
    again = harvest("roots", "apply", file)
    assert (again.stdout, "0 added, 0 changed, 0 removed, 2 unchanged" in again.stderr) == ("", True)
    shown = harvest("roots", "show", "https://www.example.org/").stdout
    assert r"deny = ['\.(gif|iso)$', " in shown
    assert 'rewrite = ["session.1", "tracking.1"]' in shown
    file.write_text(shown)
    assert "0 added, 0 changed, 0 removed, 1 unchanged" in harvest("roots", "apply", file).stderr
    (as_json,) = harvest.lines("roots", "show", "https://www.example.org/")
    assert (as_json["pause"], as_json["hosts"]) == (5.0, ["www.example.org", "*.lists.example.org"])


def test_changes_are_told_and_dry_run_makes_none(harvest: Any, file: Path) -> None:
    """Changes are printed option by option; with --dry-run nothing else happens."""
    harvest("roots", "apply", file)
    file.write_text('[[root]]\nurl = "http://b.example/"\ndepth = 3\ndeny = ["x"]\n[[root]]\nurl = "http://c.example/"\n')
    for arguments, would in ((("--dry-run",), " (nothing is done)"), ((), "")):
        result = harvest("roots", "apply", file, "--prune", *arguments)
        assert result.stdout.splitlines() == [
            'changed http://b.example/: depth 10 -> 3, deny by the settings -> ["x"]',
            "added http://c.example/",
            "removed https://www.example.org/",
        ]
        assert f"1 added, 1 changed, 1 removed, 0 unchanged{would}\n" in result.stderr
    urls = [root["url"] for root in harvest.lines("roots", "list")]
    assert urls == ["http://b.example/", "http://c.example/"]


def test_empty_file_prunes_nothing(harvest: Any, file: Path) -> None:
    """A file without any root, such as one that was not written to its end, does not remove all roots."""
    harvest("roots", "apply", file)
    file.write_text("")
    assert "has no root, and --prune would remove all" in harvest("roots", "apply", file, "--prune", code=2).stderr
    assert len(list(harvest.lines("roots", "list"))) == 2


def test_roots_that_the_file_does_not_have_stay(harvest: Any, file: Path) -> None:
    """Without --prune, other roots stay, and are counted; `roots add` keeps the limits of a plan."""
    harvest("roots", "add", "http://d.example/")
    harvest("roots", "apply", file)
    assert "1 root not in the file (--prune removes what is not)" in harvest("roots", "apply", file, "--dry-run").stderr
    harvest("roots", "add", "https://www.example.org/")
    assert "0 changed, 0 removed, 2 unchanged" in harvest("roots", "apply", file).stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[[root]]\nurl = "http://a/"\n\ndetph = 3', "4: detph: no such option (did you mean depth?)"),
        ('[[root]]\nurl = "http://a/"\nzzz = 3', "3: zzz: no such option (there are url, depth, "),
        (
            '[[root]]\nurl = "http://a/"\n[[root]]\nurl = "http://b/"\ndepth = "x"',
            "5: depth: input should be a valid integer, not",
        ),
        ('[[root]]\nurl = "http://a/"\ndeny = ["("]', "3: deny: '(' is no expression of RE2: missing ): ("),
        ('[[root]]\nurl = "http://a/"\ndeny = "x"', "3: deny: input should be a valid list, not 'x'"),
        (
            '[[root]]\nurl = "http://a/"\nrefresh = "7 days"',
            "3: refresh: a duration is a number of seconds, or text with a",
        ),
        ('[[root]]\nurl = "http://a/"\nhours = "22-6"', "3: hours: '22-6' is not of the form 22:00-06:00 +01:00"),
        ('[[root]]\nurl = "http://a/"\nrewrite = ["sesion"]', "3: rewrite: 'sesion' is no rule (did you mean session?)"),
        ('[[root]]\nurl = "http://a/"\nhosts = ["a/b"]', "3: hosts: 'a/b' is not a host"),
        ('[[root]]\nurl = "http://a/"\nschemes = ["file"]', "3: schemes: 'file' is none that can be gathered from servers"),
        ('[[root]]\nurl = "http://a/"\nmap = [{ ur = "http://a/d/", path = "/x" }]', "3: ur: no such option (did you mean url?)"),
        ('[[root]]\nurl = "http://a/"\nmap = [{ url = "http://a/d/", path = "/no/such" }]', "1: map: /no/such is not a folder"),
        ('[[root]]\nurl = "http://a/"\n[[root]]\nurl = "http://A:80"', "3: http://a/ is in line 1 already"),
        ('[[root]]\nurl = "/no/such"', "1: /no/such: No such file or directory"),
        ('[[root]]\nurl = "http://[/"', "1: http://[/: not a URL"),
        ('[[root]]\nurl = "/"\npause = 3', "3: pause: is an option of servers, and / is on this machine"),
        ("[[root]]\ndepth = 3", "1: root: url is missing"),
        ("[[roots]]", "1: roots: a file of roots has tables [[root]] and nothing else"),
        ("[root]", "1: root: a root is a table of its own, [[root]]"),
        ("root =", " not TOML: Invalid value"),
    ],
)
def test_mistake_is_one_line(harvest: Any, tmp_path: Path, text: str, line: str) -> None:
    """A mistake is one line with file, line and option, and adds no root."""
    (tmp_path / "roots.toml").write_text(text)
    result = harvest("roots", "apply", "roots.toml", code=1 if "no/such" in text or "[/" in text else 2)
    assert result.stderr.startswith(f"harvest: roots.toml:{line}")
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "harvest-data").exists()


def test_unreadable_file_is_one_line(harvest: Any, tmp_path: Path) -> None:
    """A file that is missing, a folder, a pipe, or no text is reported in one line, without waiting."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "bytes").write_bytes(b"\xff")
    reasons = {"absent": "No such file or directory", "pipe": "not a file", "folder": "Is a directory", "bytes": "not UTF-8"}
    for name, reason in reasons.items():
        assert harvest("roots", "apply", name, code=2).stderr == f"harvest: {name}: {reason}\n"


VALUES = [
    "3",
    "-1",
    "1e99",
    "nan",
    "true",
    '""',
    '"x"',
    '"7d"',
    '"\\u0000"',
    "[]",
    '["("]',
    "['a', 3]",
    "{}",
    "2026-01-01",
    "[{}]",
    "[[1]]",
]
MAPS = [
    '[{ url = "http://a/d/", path = "/\\u0000" }]',
    '[{ url = 3, path = "/" }]',
    '[{ url = "http://a/d/", path = "/x", z = 1 }]',
]


@given(st.lists(st.tuples(st.sampled_from([*RootSection.model_fields, "zzz"]), st.sampled_from([*VALUES, *MAPS])), max_size=4))
def test_any_values_are_a_plan_or_one_line(options: list[tuple[str, str]]) -> None:
    """Whatever the values of options are, the file is read, or the mistake is one line with its place."""
    text = "\n".join(["[[root]]", 'url = "http://a/"', *(f"{name} = {value}" for name, value in options)])
    try:
        found, mistake = parse_roots(text, "f"), ""
    except RootsFileError as error:
        found, mistake = [], str(error)
    assert all(decode(encode(each.plan)) == each.plan for each in found)
    assert found or re.fullmatch(r"f:(\d+: \w+: | not TOML: ).+", mistake)


def test_orders_on_a_cluster_carry_the_plans(tmp_path: Path) -> None:
    """On Kafka, as in a data folder, `seeded` events in every partition carry the plan, and unread ones are taken into account."""
    roots = [Root(url=f"http://{name}.example/", run="") for name in "ab"]
    drawn = topology(TopologySettings())
    with StoreLog(Store(tmp_path / "d", {topic.name: 3 for topic in drawn.topics})) as log:
        cluster.ask(log, roots, {roots[0].url: Plan(pause=7)})
        events = [decode(each.value or b"") for partition in range(3) for each in log.read("crawl", partition, 0, 9)]
        plans = [(each.url, each.plan) for each in events if isinstance(each, CrawlEvent)]
        assert sorted(plans, key=str) == sorted([(roots[0].url, Plan(pause=7)), (roots[1].url, None)] * 3, key=str)
        assert cluster.plans(log, drawn) == {roots[0].url: Plan(pause=7)}
        cluster.ask(log, roots[:1])
        assert cluster.plans(log, drawn) == {roots[0].url: Plan(pause=7)}
        cluster.drop(log, roots[:1])
        assert cluster.plans(log, drawn) == {}
