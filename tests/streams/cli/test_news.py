"""A real news server, whose groups change between runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.servers.debian_servers import public_folder
from tests.servers.inn import News, inn
from tests.servers.relay import Relay

ALLOW = ("--allow", "127.0.0.0/8", "--pause", "0", "--data", "d")


def article(number: int, groups: str = "local.one") -> bytes:
    """Return an article with its number in all that is specific to it."""
    head = f"From: Author {number} <author@example.org>\nNewsgroups: {groups}\nSubject: Number {number}\n"
    return f"{head}Message-ID: <{number}@example.org>\n\nText of article {number}.\n.hidden file\n".encode()


def gather(harvest: Any, *arguments: str) -> dict[str, Any]:
    """Run `harvest gather`; return its closing table."""
    table: dict[str, Any] = harvest.lines("gather", *arguments, *ALLOW)[0]
    return table


def held(harvest: Any) -> dict[str, str]:
    """Title of each search result by the identifier of its article."""
    hits = harvest.lines("search", "*", "--data", "d", "--limit", "100")
    return {hit["url"].rpartition("/")[2]: hit["title"] for hit in hits}


def asked(relay: Relay) -> list[str]:
    """Return the requests since the last call, without those that every connection has."""
    commands = [line.decode() for line in relay.heard if line not in (b"MODE READER", b"QUIT")]
    relay.heard.clear()
    return sorted(re.sub(r"^OVER .*", "OVER", line) for line in commands)


@pytest.fixture
def news() -> Iterator[News]:
    """A news server with three articles in one group, one of them in the other group too."""
    with public_folder() as folder, public_folder() as scratch, inn(folder, scratch) as server:
        server.post(article(1), article(2), article(3, "local.one,local.two"))
        yield server


@pytest.mark.parametrize("lastmod", ["auto", "ignore"])
def test_changes_of_a_group_are_gathered(harvest: Any, news: News, monkeypatch: pytest.MonkeyPatch, lastmod: str) -> None:
    """New articles are added, cancelled ones removed; a pass over what has not changed requests nothing but the overview.

    The setting about the lastmod of sitemaps does not matter.
    """
    monkeypatch.setenv("HARVEST_ROOTS_LASTMOD", lastmod)
    with Relay(news.address) as relay:
        root = f"news://{relay.address}/local.one"
        assert gather(harvest, root)["added"] == 3
        assert held(harvest) == {f"{n}@example.org": f"Number {n}" for n in (1, 2, 3)}
        listing = ["GROUP local.one", "OVER"]
        assert asked(relay) == [*(f"ARTICLE <{n}@example.org>" for n in (1, 2, 3)), *listing]
        shown = harvest("show", f"{root.rpartition('/')[0]}/2@example.org", "--data", "d").stdout
        assert re.search(r"(?m)^type\{\d+\}:\tNews$", shown)
        assert "Text of article 2.\n.hidden file" in shown

        assert gather(harvest, root)["nothing_changed"]
        assert asked(relay) == listing

        news.post(article(4))
        news.control("cancel", "<1@example.org>")
        table = gather(harvest, root)
        assert (table["added"], table["changed"], table["removed"]) == (1, 0, 1)
        assert asked(relay) == ["ARTICLE <4@example.org>", *listing]
        assert set(held(harvest)) == {f"{n}@example.org" for n in (2, 3, 4)}


def test_pattern_gathers_all_groups_that_match(harvest: Any, news: News) -> None:
    """A pattern lists groups, each of which lists its articles; an article of two groups is one object, requested once."""
    with Relay(news.address) as relay:
        root = f"news://{relay.address}/local.*"
        assert gather(harvest, root)["added"] == 3
        listing = ["GROUP local.one", "GROUP local.two", "LIST ACTIVE local.*", "OVER", "OVER"]
        assert asked(relay) == [*(f"ARTICLE <{n}@example.org>" for n in (1, 2, 3)), *listing]

        assert gather(harvest, root)["nothing_changed"]
        assert asked(relay) == listing

        news.control("newgroup", "local.three")
        news.post(article(5, "local.three"))
        news.control("rmgroup", "local.one")
        table = gather(harvest, root)
        # Article 3 is in another group too.
        assert (table["added"], table["removed"]) == (1, 2)
        assert set(held(harvest)) == {"3@example.org", "5@example.org"}


def test_newest_articles_are_listed(harvest: Any, news: News) -> None:
    """A root with a limit has the newest articles, and the older ones go as new ones come; the group itself counts as one."""
    news.post(*(article(number) for number in range(4, 9)))
    root = f"news://{news.address}/local.one"
    gather(harvest, root, "--max-urls", "4")
    assert set(held(harvest)) == {f"{n}@example.org" for n in (6, 7, 8)}
    news.post(article(9), article(10))
    table = gather(harvest, root, "--max-urls", "4")
    assert (table["added"], table["removed"]) == (2, 2)
    assert set(held(harvest)) == {f"{n}@example.org" for n in (8, 9, 10)}
