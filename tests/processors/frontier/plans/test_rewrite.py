"""Rewriting of links, and the limit of queries of one path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.plans.rewrite import NAMES, RULES, Rewriting, newest
from processors.frontier.rows import Table
from processors.frontier.stage import restore
from processors.urls import canonical
from schemas.records import CrawlEvent, Link, Plan, Root, Span, Validators
from tests.processors.frontier.conftest import SITE, Partition, refusals, requests

ID = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("rule", "url", "expected"),
    [
        ("session", f"a/b;jsessionid={ID}?x=1", "a/b?x=1"),
        ("session", f"a/b?PHPSESSID={ID}&x=1", "a/b?x=1"),
        ("session", f"a?sid={ID}", "a"),
        ("session", "a?sid=7&s=whale", "a?sid=7&s=whale"),
        ("session", "(S(abcdefghijklmnopqrstuvwx))/a.aspx", "a.aspx"),
        ("session", "a?utm_source=x", "a?utm_source=x"),
        ("session", "a/..;sid=1/b", "a/..;sid=1/b"),
        ("session", "(S(abcdefghijklmnopqrstuvwx));sid=1/b", "b"),
        ("tracking", "a?utm_source=x&id=3&gclid=5&fbclid", "a?id=3"),
        ("tracking", "a?utmost=x", "a?utmost=x"),
        ("query-order", "a?b=2&a=2&b=1&&a=1", "a?a=2&a=1&b=2&b=1"),
        ("default-document", "a/index.html", "a/"),
        ("default-document", "Default.aspx", ""),
        ("default-document", "a/index.php?id=3", "a/index.php?id=3"),
        ("default-document", "a/myindex.html", "a/myindex.html"),
    ],
)
def test_rule_rewrites_what_it_states(rule: str, url: str, expected: str) -> None:
    """A rule takes out what it states, and nothing that only looks similar."""
    assert Rewriting([newest(rule)]).rewritten(SITE + url) == SITE + expected


PIECES = [
    "a",
    "index.html",
    f";jsessionid={ID}",
    "/",
    "?",
    "&",
    "=",
    "sid=",
    ID,
    "utm_source=1",
    "(S(abcdefghijklmnopqrstuvwx))",
    "..",
]
PARTS = st.lists(st.sampled_from(PIECES), max_size=12)


@given(PARTS, st.sets(st.sampled_from(sorted(RULES))))
def test_rewritten_url_is_canonical_and_stays_so(parts: list[str], rules: set[str]) -> None:
    """What was rewritten is canonical, on the same host, and not rewritten further."""
    url = canonical(SITE + "".join(parts))
    assert url is not None
    rewriting = Rewriting(sorted(rules))
    once = rewriting.rewritten(url)
    assert once.startswith(SITE)
    assert canonical(once) == once
    assert rewriting.rewritten(once) == once
    assert rules or once == url


def test_order_of_rules_does_not_matter() -> None:
    """Rules are applied in one order, however they are named."""
    rules = [newest(name) for name in NAMES]
    url = f"{SITE}index.html?b=1&utm_source=1&sid={ID}"
    assert Rewriting(rules).rewritten(url) == Rewriting(rules[::-1]).rewritten(url) == f"{SITE}index.html?b=1"


def test_files_are_not_rewritten() -> None:
    """A URL of this machine is left as it is."""
    assert Rewriting(sorted(RULES)).rewritten("file:///a/index.html") == "file:///a/index.html"


def test_links_are_rewritten(partition: Partition) -> None:
    """Two links to one page are one request for its rewritten URL; without a rule, they are two."""
    urls = [f"{SITE}x;jsessionid={each * 32}" for each in "ab"]
    (page,) = requests(partition.resolve(partition.seed(Plan(rewrite=("session.1",)))))
    assert [each.url for each in requests(partition.link(page, *urls))] == [f"{SITE}x"]
    plain = Partition()
    (page,) = requests(plain.resolve(plain.seed()))
    assert {each.url for each in requests(plain.link(page, *urls))} == {*urls}


def test_rewritten_children_of_a_listing_are_not_missed(partition: Partition) -> None:
    """A sitemap that names URLs as the rules rewrite them costs no request when it is read again without a change."""
    plan = Plan(rewrite=("tracking.1",), lastmod="trust")
    (page,) = requests(partition.resolve(partition.seed(plan)))
    partition.answer(page)
    children = tuple(Link(url=f"{SITE}{n}?utm_source=map", kind="page", mark="2020-01-01") for n in range(3))

    def listing(run: str) -> CrawlEvent:
        there: dict[str, Any] = {"span": Span(low=b"", high=b"\xff" * 16), "coverage": "open", "links": children}
        root = Root(url=SITE, run=run, host=page.host)
        return CrawlEvent(kind="discovered", host=page.host, time=partition.now, url=f"{SITE}sitemap.xml", root=root, **there)

    asked = requests(partition.give(listing("1")))
    assert {each.url for each in asked} == {f"{SITE}{n}" for n in range(3)}
    for each in asked:
        partition.answer(each, validators=Validators(md5="m"))
    assert partition.give(listing("1")) == []
    assert [each.url for each in requests(partition.seed(run="2"))] == [SITE]
    assert partition.give(listing("2")) == []


def test_redirect_to_the_original_url_exempts_it(partition: Partition) -> None:
    """If the rewritten URL redirects to the original one, that is requested, now and where it is linked later."""
    original, rewritten = f"{SITE}x?utm_source=1", f"{SITE}x"
    (page,) = requests(partition.resolve(partition.seed(Plan(rewrite=("tracking.1",)))))
    (first,) = requests(partition.link(page, original))
    assert first.url == rewritten
    partition.answer(first, "gone", reason="moved")
    (second,) = requests(partition.link(first, original, depth=0, moves=1, trail=(rewritten,)))
    assert second.url == original
    partition.answer(second)
    partition.answer(page)
    for run in ("2", "3"):
        asked = requests(partition.seed(run=run))
        assert original in {each.url for each in asked}, run
        for each in asked:
            partition.answer(each)
    assert not requests(partition.link(page, original))
    known = partition.state(original)
    assert known is not None
    assert known.exempt


def test_known_url_that_a_new_rule_rewrites_is_refused(partition: Partition) -> None:
    """A page gathered before its root had the rule is no longer requested under that URL, but under the rewritten one."""
    (page,) = requests(partition.resolve(partition.seed()))
    (old,) = requests(partition.link(page, f"{SITE}x?gclid=1"))
    partition.answer(old)
    partition.answer(page)
    asked = partition.seed(Plan(rewrite=("tracking.1",)), run="2")
    assert [each.url for each in requests(asked)] == [SITE]
    assert refusals(asked) == {f"{SITE}x?gclid=1": "rewritten by the rules of the root"}
    assert [each.url for each in requests(partition.link(requests(asked)[0], f"{SITE}x?gclid=1"))] == [f"{SITE}x"]


@pytest.mark.parametrize(("plan", "limit"), [(None, 3), (Plan(variants=2), 2), (Plan(variants=0), 9)])
def test_queries_of_one_path_are_limited(plan: Plan | None, limit: int) -> None:
    """Queries of one path are admitted up to the limit of the plan or the settings; other paths have their own."""
    partition = Partition(variants=3, credit=100)
    (page,) = requests(partition.resolve(partition.seed(plan)))
    urls = [f"{SITE}x?n={number}" for number in range(9)]
    given = partition.link(page, *urls, f"{SITE}y?n=1")
    assert {each.url for each in requests(given)} == {*urls[:limit], f"{SITE}y?n=1"}
    assert refusals(given) == dict.fromkeys(urls[limit:], f"trap: more than {limit} queries of one path")
    counts = dict(partition.rows.scan(b"j|"))
    assert sum(map(int, counts.values())) == limit + 1
    restore(partition.rows)
    assert dict(partition.rows.scan(b"j|")) == counts
    partition.answer(next(each for each in requests(given) if each.url == urls[0]), "gone")
    assert Table(partition.rows).variants(urls[0]) == limit - 1
