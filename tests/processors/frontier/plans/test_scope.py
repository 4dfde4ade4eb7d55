"""Scope of a root: schemes, hosts and expressions, each refusal with its rule."""

from __future__ import annotations

from typing import Any

import pytest

from processors.frontier.plans.scope import OTHER_SERVER, Scope
from processors.identity import frontier_key, url_digest
from schemas.records import Link, Plan, Root, Span, Validators
from tests.processors.frontier.conftest import SITE, Partition, refusals, requests

ROOT = Root(url=SITE, run="1", host="http://a.test")
MOVED = Root(url=SITE, run="1", host="https://www.a.test")


@pytest.mark.parametrize(
    ("plan", "root", "url", "reason"),
    [
        (Plan(), ROOT, "http://a.test/x", ""),
        (Plan(), ROOT, "http://b.test/x", OTHER_SERVER),
        (Plan(), ROOT, "https://a.test/x", OTHER_SERVER),
        (Plan(), MOVED, "https://www.a.test/x", ""),
        (Plan(), Root(url=SITE, run="1"), "http://b.test/x", ""),
        (Plan(schemes=("http", "https")), ROOT, "https://a.test/x", ""),
        (Plan(schemes=("http", "https")), ROOT, "https://b.test/x", OTHER_SERVER),
        (Plan(schemes=("https",)), ROOT, "http://a.test:8080/x", "not of the schemes of the root: http"),
        (Plan(hosts=("b.test",)), ROOT, "http://b.test/x", ""),
        (Plan(hosts=("b.test",)), ROOT, "http://b.test:81/x", "not of the hosts of the root"),
        (Plan(hosts=("b.test:81",)), ROOT, "http://b.test:81/x", ""),
        (Plan(hosts=("b.test",)), ROOT, "http://a.test/x", "not of the hosts of the root"),
        (Plan(hosts=("b.test",)), ROOT, "https://b.test/x", "not of the schemes of the root: https"),
        (Plan(hosts=("b.test",)), MOVED, "https://b.test/x", ""),
        (Plan(hosts=("*.b.test",)), ROOT, "http://x.y.b.test/x", ""),
        (Plan(hosts=("*.b.test",)), ROOT, "http://b.test/x", "not of the hosts of the root"),
        (Plan(hosts=("*.b.test",)), ROOT, "http://notb.test/x", "not of the hosts of the root"),
        (Plan(deny=(r"\.gif$",)), ROOT, "http://a.test/x.gif", r"deny of the root: \.gif$"),
        (Plan(deny=(r"\.gif$",)), ROOT, "http://a.test/x.gift", ""),
        (Plan(allow=("/a/", "/b/")), ROOT, "http://a.test/b/c", ""),
        (Plan(allow=("/a/", "/b/")), ROOT, "http://a.test/c", "matches no allow of the root"),
        (Plan(allow=("/a/",), deny=("/a/b",)), ROOT, "http://a.test/a/b", "deny of the root: /a/b"),
        (Plan(hosts=("b.test",), deny=("test",)), ROOT, "http://b.test/x", "deny of the root: test"),
    ],
)
def test_link_is_refused_by_the_first_rule_it_fails(plan: Plan, root: Root, url: str, reason: str) -> None:
    """A link is admitted, or refused with the name of the rule."""
    assert Scope(plan).refusal(url, frontier_key(url), 1, root) == reason


def test_root_is_in_its_scope() -> None:
    """A root, and where it moved to, is fetched although it matches no rule for its links."""
    plan = Plan(hosts=("b.test",), schemes=("https",), allow=("/x/",), deny=("a",))
    assert not Scope(plan).refusal(SITE, "http://a.test", 0, ROOT)
    assert not Scope(plan).refusal("https://www.a.test/", "https://www.a.test", 0, MOVED)


def test_expression_takes_linear_time() -> None:
    """An expression for which a backtracking matcher would not end is matched at once."""
    assert not Scope(Plan(deny=("(a+)+$",))).refusal(f"{SITE}{'a' * 1_900}!", "http://a.test", 1, ROOT)


def test_refused_links_are_reported_and_not_requested(partition: Partition) -> None:
    """Links outside of the scope are refused with their rule; others are requested."""
    (page,) = requests(partition.resolve(partition.seed(Plan(deny=("/private",), hosts=("a.test", "b.test")))))
    given = partition.link(page, f"{SITE}x", f"{SITE}private")
    assert [each.url for each in requests(given)] == [f"{SITE}x"]
    assert refusals(given) == {f"{SITE}private": "deny of the root: /private"}
    (other,) = requests(partition.link(page, "http://b.test/"))
    assert other.kind == "resolve"


def test_known_url_outside_of_a_changed_scope_is_not_requested(partition: Partition) -> None:
    """After a change of the scope, pages outside of it are refused, and requested again when it is changed back."""
    (page,) = requests(partition.resolve(partition.seed(Plan())))
    partition.answer(page)
    (found,) = requests(partition.link(page, f"{SITE}x"))
    partition.answer(found)
    given = partition.seed(Plan(deny=("x",)), run="2")
    assert [each.url for each in requests(given)] == [SITE]
    assert refusals(given) == {f"{SITE}x": "deny of the root: x"}
    partition.answer(requests(given)[0])
    assert {each.url for each in requests(partition.seed(Plan(), run="3"))} == {SITE, f"{SITE}x"}


def test_url_of_another_root_is_requested_for_it(partition: Partition) -> None:
    """A page that one root refuses is requested while another root asks for it."""
    (page,) = requests(partition.resolve(partition.seed(Plan())))
    partition.answer(page)
    (found,) = requests(partition.link(page, f"{SITE}x"))
    partition.answer(found)
    (other,) = requests(partition.seed(url=f"{SITE}other"))
    partition.answer(requests(partition.link(other, f"{SITE}x"))[0])
    assert {each.url for each in requests(partition.seed(Plan(deny=("x",)), run="2"))} >= {f"{SITE}x"}


def test_denied_child_of_a_folder_is_removed(partition: Partition) -> None:
    """A file that a plan denies now is removed as if its folder no longer listed it, and a new one is refused."""
    top = "file:///w/"
    names = sorted((f"{top}a.iso", f"{top}b.txt"), key=url_digest)
    links = tuple(Link(url=name, kind="file", size=1, mtime=1, inode=1) for name in names)
    listing: dict[str, Any] = {"span": Span(low=b"", high=b"\xff" * 16), "links": links}
    (folder,) = requests(partition.seed(url=top, host="", depth=-1))
    for each in (folder, *requests(partition.link(folder, *names, **listing))):
        partition.answer(each, rules="", validators=Validators(size=1, mtime=1, inode=1))
    (again,) = requests(partition.seed(Plan(deny=(r"\.iso$",)), run="2", url=top, host="", depth=-1))
    given = partition.link(again, *names, **listing)
    assert partition.state(f"{top}a.iso") is None
    assert partition.state(f"{top}b.txt") is not None
    assert refusals(given) == {f"{top}a.iso": r"deny of the root: \.iso$"}
