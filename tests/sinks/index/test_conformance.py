"""Contract of BrokerIndex, tested on each of conftest's ENGINES."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from processors.identity import oid
from processors.query import parse, predicate
from schemas.ports import BrokerIndex, Page
from schemas.query import And, Every, Exists, Most, Or, Phrase, Word
from schemas.records import Removed, Summary

Make = Callable[..., Summary]
Remove = Callable[..., Removed]
Open = Callable[[], BrokerIndex]

NAMES = ["a.b", "weird name", 'q"uo:te', "*", "%41", "a=b", "é", "\u0001\n", "x" * 5_000, "", "-minus", "東京"]
"""Unusual attribute names."""


def urls(index: BrokerIndex, query: str, **options: Any) -> list[str]:
    """Return the URLs that a query finds."""
    return [hit.url for hit in index.search(parse(query), **options).hits]


class TestApplying:
    def test_new_index_is_empty(self, index: BrokerIndex) -> None:
        """A new index has no offsets and no summaries."""
        assert index.offsets() == {}
        assert index.count(Every()) == 0
        assert index.search(Every()) == Page((), 0)
        assert list(index.scroll(Every())) == []

    def test_applied_batch_is_found_with_offsets(self, index: BrokerIndex, summary: Make) -> None:
        """An applied batch is found at once, together with its offsets."""
        index.apply([summary("http://a/", title="white whale")], {0: 7, 3: 2})
        assert urls(index, "whale") == ["http://a/"]
        assert index.offsets() == {0: 7, 3: 2}

    def test_file_facts_match_only_by_attribute(self, index: BrokerIndex, summary: Make) -> None:
        """File facts and link addresses match only queries that name the attribute."""
        about = summary("http://a/", title="whale", owner="root", mode="644", url_references="http://b/whaling")
        index.apply([about], {0: 1})
        assert [index.count(parse(query)) for query in ("root", "644", '"whaling"')] == [0, 0, 0]
        assert urls(index, "owner:root mode:644 url-references:http://b/whaling whale") == ["http://a/"]

    def test_links_are_found_by_url_or_host(self, index: BrokerIndex, summary: Make) -> None:
        """Links are found by the whole URL or by host, case folded, not by their words."""
        index.apply([summary("http://a/", url_references="http://B.example:80/Whaling a?x=1%20=2"), summary("http://b/")], {0: 1})
        found = ['"http://b.example:80/whaling a?x=1%20=2"', "b.example:80", "B.Example:80"]
        assert [urls(index, f"url-references:{link}") for link in found] == [["http://a/"]] * 3
        lost = ["whaling", "b.example", "http://b.example:80/", '"http://b.example:80/whaling"']
        assert [urls(index, f"url-references:{link}") for link in lost] == [[]] * 4
        assert urls(index, "url-references:*") == ["http://a/"]

    def test_terms_are_a_set(self, index: BrokerIndex, summary: Make) -> None:
        """Terms are a set: each is found, by attribute name and without, and they form no phrases."""
        index.apply([summary("http://a/", terms="krill plankton krill"), summary("http://b/", title="krill plankton")], {0: 1})
        assert sorted(urls(index, "plankton")) == ["http://a/", "http://b/"]
        assert urls(index, "terms:krill") == ["http://a/"]
        assert urls(index, '"krill plankton"') == ["http://b/"]
        assert urls(index, 'terms:"krill plankton"') == urls(index, "terms:krill-plankton") == []

    def test_empty_batch_updates_offsets(self, index: BrokerIndex) -> None:
        """A batch without changes updates the offsets of its partitions only."""
        index.apply([], {0: 7, 1: 1})
        index.apply([], {1: 4})
        assert index.offsets() == {0: 7, 1: 4}
        assert index.count(Every()) == 0

    def test_batch_applied_twice_is_idempotent(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """Applying a batch twice has the effect of applying it once."""
        batch: list[Summary | Removed] = [
            summary("http://a/", title="one"),
            summary("http://b/", title="one"),
            removed("http://a/", published=2),
        ]
        for _ in range(2):
            index.apply(batch, {0: 3})
            assert urls(index, "one") == ["http://b/"]
            assert index.count(Every()) == 1
            assert index.offsets() == {0: 3}

    def test_late_redelivery_changes_nothing(self, index: BrokerIndex, summary: Make) -> None:
        """An old batch redelivered after a newer one changes neither summaries nor offsets back."""
        old = [summary("http://a/", published=1, title="old")]
        index.apply(old, {0: 1})
        index.apply([summary("http://a/", published=2, title="new")], {0: 2})
        index.apply(old, {0: 1})
        assert (urls(index, "old"), urls(index, "new")) == ([], ["http://a/"])
        assert index.offsets() == {0: 2}

    def test_newer_summary_replaces_older(self, index: BrokerIndex, summary: Make) -> None:
        """A newer summary, or one with the same counter, replaces the previous one."""
        for published, title in ((1, "first"), (2, "second"), (2, "third")):
            index.apply([summary("http://a/", published=published, title=title)], {0: published})
        assert [hit.title for hit in index.search(Every()).hits] == ["third"]
        assert urls(index, "first OR second") == []

    def test_highest_counter_of_batch_is_applied(self, index: BrokerIndex, summary: Make) -> None:
        """Of several changes of one OID in a batch, the one with the highest counter is applied, in any order."""
        index.apply([summary("http://a/", published=n, title=f"take{n}") for n in (2, 3, 1)], {0: 3})
        assert [hit.title for hit in index.search(Every()).hits] == ["take3"]

    def test_removed_summary_disappears(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """A removed summary disappears; an older summary does not restore it, a newer one does."""
        index.apply([summary("http://a/", published=5, title="whale")], {0: 1})
        index.apply([removed("http://a/", published=6)], {0: 2})
        assert index.count(Every()) == 0
        index.apply([summary("http://a/", published=5, title="whale")], {0: 3})
        assert index.count(Every()) == 0
        index.apply([summary("http://a/", published=7, title="whale")], {0: 4})
        assert urls(index, "whale") == ["http://a/"]

    def test_removal_of_unknown_oid_wins_over_older_summary(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """Removing an unknown OID is no error, and wins over an older summary."""
        index.apply([removed("http://a/", published=6)], {0: 1})
        index.apply([summary("http://a/", published=5)], {0: 2})
        assert index.count(Every()) == 0

    def test_older_removal_removes_nothing(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """A removal older than the summary removes nothing."""
        index.apply([summary("http://a/", published=6)], {0: 1})
        index.apply([removed("http://a/", published=5)], {0: 2})
        assert index.count(Every()) == 1

    def test_similar_oids_are_distinct(self, index: BrokerIndex, summary: Make) -> None:
        """OIDs with a common prefix, or that are not hex, are distinct."""
        names = ["abcdefgh-1", "abcdefgh-2", "abcdefgh-10", "=", "=" * 31, "ab" * 32, "é"]
        for published, title in ((1, "old"), (2, "new")):
            index.apply([summary(f"http://{n}/", oid=n, published=published, title=title) for n in names], {0: published})
        assert list(index.scroll(parse("new"))) == sorted(names)
        assert index.count(parse("old")) == 0

    def test_reopened_index_keeps_state(self, opened: Open, summary: Make, removed: Remove) -> None:
        """Summaries, offsets and counters of removals persist when the index is closed and reopened."""
        with closing(opened()) as index:
            index.apply([summary("http://a/", published=3, title="kept"), removed("http://b/", published=3)], {0: 2, 1: 9})
        with closing(opened()) as index:
            assert index.offsets() == {0: 2, 1: 9}
            index.apply([summary("http://a/", published=2), summary("http://b/", published=2)], {0: 4})
            assert urls(index, "*") == ["http://a/"]
            assert urls(index, "kept") == ["http://a/"]


class TestSearching:
    def test_hit_has_all_fields(self, index: BrokerIndex, summary: Make) -> None:
        """A hit has OID, URL, title, type, score and a snippet with the words marked."""
        index.apply([summary("http://a/#x", title="Moby Dick", type="HTML", description="The white  Whale\nswims")], {})
        [hit] = index.search(parse("whale")).hits
        assert (hit.oid, hit.url, hit.title, hit.type) == (oid("here", "http://a/#x"), "http://a/#x", "Moby Dick", "HTML")
        assert hit.score > 0
        assert hit.snippet == "The white \x02Whale\x03 swims"

    def test_hit_has_the_date_of_its_document(self, index: BrokerIndex, summary: Make) -> None:
        """A hit has the document's own date in seconds, and none if it states none."""
        index.apply([summary("http://a/", title="whale", date="1970-01-02"), summary("http://b/", title="whale")], {})
        assert {hit.url: hit.date for hit in index.search(parse("whale")).hits} == {"http://a/": 86_400, "http://b/": None}

    def test_records_are_those_that_exist(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """Several summaries are read at once, copies among them; removed and unknown ones are left out."""
        kept, copy, gone = summary("http://a/"), summary("http://b/", copy_of=oid("here", "http://a/")), summary("http://c/")
        index.apply([kept, copy, gone], {})
        index.apply([removed("http://c/", published=2)], {})
        assert index.records([kept.oid, copy.oid, gone.oid, "0" * 64]) == {kept.oid: kept, copy.oid: copy}

    def test_plan_is_the_query_of_the_engine(self, index: BrokerIndex, summary: Make) -> None:
        """The plan has the words as the engine looks for them, and says what is left to the predicate."""
        index.apply([summary("http://a/", title="whale")], {})
        assert "whale" in index.plan(parse("Whale"))
        assert "checked with the summaries themselves: =Whale" in index.plan(parse("=Whale"))

    def test_word_in_title_scores_more(self, index: BrokerIndex, summary: Make) -> None:
        """A word in the title scores more than anywhere else; the other attributes are one text."""
        text = "some plain words that fill a value to a common length whale"
        fields = ("title", "keywords", "abstract", "partial-text")
        index.apply([summary(f"http://{at}/", attributes={name: text}) for at, name in enumerate(reversed(fields))], {})
        assert urls(index, "whale") == ["http://3/", "http://0/", "http://1/", "http://2/"]

    def test_title_hit_ranks_before_text_hit(self, index: BrokerIndex, summary: Make) -> None:
        """Of two summaries of the same length, the one with the word in its title ranks before the one with it in its text."""
        title = summary("http://z/", title="About the whale", partial_text="other things")
        index.apply([summary("http://a/", title="About it", partial_text="the whale things"), title], {})
        assert urls(index, "whale") == ["http://z/", "http://a/"]

    def test_conditions_do_not_score(self, index: BrokerIndex, summary: Make) -> None:
        """Conditions filter without changing the score of the words."""
        index.apply([summary("http://a/", title="whale", author="Herman"), summary("http://b/", title="squid")], {})
        plain, chosen = (index.search(parse(query)).hits[0].score for query in ("whale", "whale type:text author:* -squid"))
        assert plain == chosen

    def test_equal_scores_are_ordered_by_url(self, index: BrokerIndex, summary: Make) -> None:
        """Equal scores are ordered by URL, over all pages, for any order of arrival."""
        places = [f"http://h/{number:03}" for number in range(130)]
        shuffled = sorted(places, key=lambda url: oid("x", url))
        for at in range(0, 130, 30):
            index.apply([summary(url, title="whale") for url in shuffled[at : at + 30]], {0: at})
        for query in ("whale", "*", "type:text", "title:*"):
            pages = [urls(index, query, limit=7, offset=at) for at in range(0, 133, 7)]
            assert [url for page in pages for url in page] == places

    def test_pages_have_limit_offset_and_total(self, index: BrokerIndex, summary: Make) -> None:
        """A page has at most `limit` hits from `offset` on, and the total; beyond the end it is empty."""
        index.apply([summary(f"http://{n}/", title="whale " * (n + 1)) for n in range(5)], {})
        whole = index.search(parse("whale"))
        assert whole.total == 5
        assert index.search(parse("whale"), limit=2, offset=1) == Page(whole.hits[1:3], 5)
        assert index.search(parse("whale"), limit=0) == Page((), 5)
        assert index.search(parse("whale"), offset=5) == index.search(parse("whale"), offset=10**12) == Page((), 5)
        assert index.search(parse("whale"), limit=10**12) == whole
        assert index.search(parse("*"), limit=10**12, offset=3).total == 5

    def test_search_excludes_copies(self, index: BrokerIndex, summary: Make) -> None:
        """Search and its total exclude copies unless requested; count and scroll include them; the canonical hit lists them."""
        first = summary("http://a/", title="whale", copies=("http://b/",), copies_count=1)
        second = summary("http://b/", title="whale", copy_of=first.oid)
        index.apply([second, first], {})
        page = index.search(parse("whale"))
        assert [(hit.url, hit.copies, hit.copies_count) for hit in page.hits] == [("http://a/", ("http://b/",), 1)]
        assert page.total == 1
        assert urls(index, "whale", copies=True) == ["http://a/", "http://b/"]
        assert index.count(parse("whale")) == 2
        assert list(index.scroll(parse("whale"))) == sorted([first.oid, second.oid])

    def test_canonical_is_found_by_names_of_copies(self, index: BrokerIndex, summary: Make) -> None:
        """A canonical summary is also found by the file names of its copies, and by words of their paths in the field `copy`."""
        places = ("file:///home/ann/m%C3%B6by%20dick.txt", "http://h/b.zip#old/50%25.tar#Zebra.TXT", "http://h/papers/?q=a/squid")
        first = summary("http://a/", title="whale", file_name="a.txt", copies=places, copies_count=3)
        index.apply([first], {})
        found = ('"möby dick.txt"', "file-name:zebra.txt", "file-name:a.txt", "file-name:papers", "copy:ann", "copy:old", "copy:*")
        for query in (*found, 'copy:"old 50% tar"', "copy:squid"):
            assert urls(index, query) == ["http://a/"], query
            assert predicate(parse(query))(first), query
        for query in ("ann", "old", "file-name:squid", "title:zebra"):
            assert urls(index, query) == [], query
            assert not predicate(parse(query))(first), query

    def test_date_is_found_by_time_day_and_month(self, index: BrokerIndex, summary: Make) -> None:
        """A date is found by its exact time, its day and its month, and by no other."""
        first = summary("http://a/", title="whale", date="2024-03-05T09:00:00Z")
        index.apply([first, summary("http://b/", title="whale", date="5 March 2024")], {})
        for query in ("date:2024-03-05", "date:2024-03", "date:2024-03-05T09:00:00Z", "2024-03-05", "whale date:2024-03-05"):
            assert urls(index, query) == ["http://a/"], query
            assert predicate(parse(query))(first), query
        for query in ("date:2024-03-09", "date:2024-05-03", "date:2024-03-05T10:00:00Z", "date:2024-03-05-2024"):
            assert urls(index, query) == [], query
            assert not predicate(parse(query))(first), query

    def test_promoted_copy_is_found(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """A copy is found once it is published as canonical."""
        first, second = summary("http://a/", title="whale"), summary("http://b/", title="whale", copy_of=oid("here", "http://a/"))
        index.apply([first, second], {})
        index.apply([removed("http://a/", published=2), summary("http://b/", published=2, title="whale")], {})
        assert urls(index, "whale") == ["http://b/"]

    def test_oid_and_object_url_find_summaries(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """An OID and an object URL find their summaries, whatever their form; removed ones are not found."""
        whole, part = summary("http://a/x.zip"), summary("http://a/x.zip#in.txt", object_url="http://a/x.zip")
        loud, odd, gone = summary("http://b/", oid="AB" * 32), summary("http://c/", oid="odd"), summary("http://d/")
        index.apply([whole, part, loud, odd, gone], {})
        index.apply([removed("http://d/", published=2)], {})

        def found(name: str, value: str) -> list[str]:
            return list(index.scroll(Word(value, name)))

        for one in (whole, part, odd):
            assert found("oid", one.oid) == found("oid", one.oid.upper()) == [one.oid]
        assert found("oid", loud.oid) == found("oid", loud.oid.lower()) == [loud.oid]
        assert found("oid", gone.oid) == found("object-url", "http://d/") == []
        assert found("object-url", "http://a/x.zip") == sorted([whole.oid, part.oid])
        assert found("object-url", "http://a/x.zip#in.txt") == found("object-url", "own-url") == []
        assert len(list(index.scroll(Exists("oid")))) == len(list(index.scroll(Exists("object-url")))) == 4

    def test_scroll_gives_each_match_once(self, index: BrokerIndex, summary: Make) -> None:
        """A scroll gives every match once, ordered by OID, also beyond the size of one step."""
        made = [summary(f"http://{n}/", title="odd" if n % 2 else "even") for n in range(5_000)]
        index.apply(made, {})
        assert list(index.scroll(parse("odd"))) == sorted(one.oid for one in made if one.attributes["title"] == ("odd",))

    def test_scroll_is_unaffected_by_writes(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """A scroll in progress gives the state at its start."""
        made = [summary(f"http://{n}/") for n in range(10)]
        index.apply(made, {})
        scroll = index.scroll(Every())
        first = next(scroll)
        index.apply([removed(one.url, published=2) for one in made], {})
        assert [first, *scroll] == sorted(one.oid for one in made)


class TestText:
    @pytest.mark.parametrize(
        ("value", "query"),
        [
            ("東京都に行く", "東京"),
            ("東京都に行く", "に行"),
            ("中文資訊檢索系統", "檢索"),
            ("ﾃｽﾄ ﾃﾞｰﾀ", "データ"),
            ("한국어 문서", "한국"),
            ("ภาษาไทย", "ไทย"),
            ("Straße", "STRASSE"),
            ("e\u0301te\u0301", "ÉTÉ"),
            ("ﬁnal ２０２４", "final 2024"),
            ("हिन्दी भाषा", "हिन्दी"),
            ("co\u00adop\u200berate", "coop erate"),
            ("snake_case x-ray don't", "snake_case x-ray don't"),
            ("x" * 500, "x" * 500),
            ("𝒲hale 🐋 fin", "whale fin"),
        ],
    )
    def test_text_of_any_script_is_found(self, index: BrokerIndex, summary: Make, value: str, query: str) -> None:
        """Text of any script is found by its words, in a dedicated field and in any other attribute."""
        index.apply([summary("http://a/", title=value), summary("http://b/", remark=value)], {})
        assert urls(index, query) == ["http://a/", "http://b/"]
        tree = parse(query)
        words = tree.parts if isinstance(tree, And | Most) else (tree,)
        for name, url in (("title", "http://a/"), ("remark", "http://b/")):
            fielded = And(tuple(Word(word.text, name) for word in words if isinstance(word, Word | Phrase)))
            assert [hit.url for hit in index.search(fielded).hits] == [url]

    def test_unspaced_characters_match_only_in_sequence(self, index: BrokerIndex, summary: Make) -> None:
        """Characters of a script without spaces match only in sequence."""
        index.apply([summary("http://a/", title="京の東")], {})
        assert urls(index, "東京") == []

    @pytest.mark.parametrize("field", ["title", "remark"])
    def test_phrase_matches_within_one_value(self, index: BrokerIndex, summary: Make, field: str) -> None:
        """A phrase matches consecutive words within one value, never across two."""
        index.apply([summary("http://a/", attributes={field: ("the white whale", "ahoy there")})], {})
        assert urls(index, f'"White WHALE" {field}:"the white whale" {field}:"ahoy there"') == ["http://a/"]
        for query in ('"whale ahoy"', f'{field}:"whale ahoy"', '"whale white"', f'{field}:"the whale"'):
            assert urls(index, query) == []

    def test_word_with_attribute_matches_only_there(self, index: BrokerIndex, summary: Make) -> None:
        """A word with an attribute is searched only there, without one everywhere, annotations included."""
        index.apply([summary("http://a/", title="whale", annotations={"Remark": ("see chapter nine",)})], {})
        assert urls(index, "whale remark:nine REMARK:* nine") == ["http://a/"]
        assert urls(index, "title:nine OR remark:whale OR author:*") == []

    def test_exact_fields_are_compared_whole(self, index: BrokerIndex, summary: Make) -> None:
        """Exact fields are compared whole and case folded; a field without a value does not exist."""
        index.apply([summary("http://a/B?c=d", type="HTML", md5="ab" * 16), summary("http://a/", type="Text")], {})
        assert urls(index, "type:html") == urls(index, "md5:*") == urls(index, "url:HTTP://A/b?c=d") == ["http://a/B?c=d"]
        assert urls(index, "object-url:http://a/ content-type:text/plain gatherer:here") == ["http://a/"]
        assert urls(index, 'type:"HTM" OR url:"http" OR url:a OR content-type:text') == []
        assert urls(index, f"oid:{oid('here', 'http://a/')}") == ["http://a/"]

    @pytest.mark.parametrize(
        "name", ["a.b", "weird name", 'q"uo:te', "*", "%41", "a=b", "é", "\u0001\n", "x" * 5_000, "", "-minus", "東京"]
    )
    def test_any_attribute_name_can_be_searched(self, index: BrokerIndex, summary: Make, name: str) -> None:
        """An attribute of any name can be searched, and is not confused with another."""
        index.apply(
            [summary("http://a/", attributes={name: "whale fin"}), summary("http://b/", attributes={name + "z": "whale"})], {}
        )
        assert [hit.url for hit in index.search(Exists(name)).hits] == ["http://a/"]
        if name:
            both = And((Word("whale", name), Phrase("whale fin", name)))
            assert [hit.url for hit in index.search(both).hits] == ["http://a/"]

    def test_large_values_are_found(self, index: BrokerIndex, summary: Make) -> None:
        """Values of 64 kB and more, of one word or many, are found; of bytes that are not UTF-8, the valid parts are."""
        many = " ".join(f"word{n}" for n in range(9_000))
        made = {"title": many, "remark": many, "blob": b"\xff\xfewhale\x00fin\x80", "long": "y" * 70_000}
        index.apply([summary("http://a/", attributes=made), summary("http://b/" + "p" * 70_000, title="path")], {})
        long = "y" * 3_000
        assert urls(index, f'word8999 title:"word8998 word8999" remark:word8999 blob:whale fin long:{long}') == ["http://a/"]
        [hit] = index.search(Word("http://b/" + "p" * 70_000, "url")).hits
        assert hit.title == "path"

    def test_word_without_letters_matches_nothing(self, index: BrokerIndex, summary: Make) -> None:
        """A word without letters or digits matches nothing; an empty OR nothing; an empty AND everything."""
        index.apply([summary("http://a/", title="whale !!!")], {})
        assert (
            index.count(Word("!!!"))
            == index.count(Phrase("", "title"))
            == index.count(Or(()))
            == index.count(Word("", "type"))
            == 0
        )
        assert index.count(And(())) == 1

    def test_not_gives_only_other_summaries(self, index: BrokerIndex, summary: Make, removed: Remove) -> None:
        """NOT gives the summaries that do not match, without removed ones and internal documents of the engine."""
        index.apply(
            [summary("http://a/", title="whale"), summary("http://b/", title="squid"), removed("http://c/", published=1)], {0: 1}
        )
        assert urls(index, "NOT whale") == urls(index, "* -whale") == urls(index, "squid OR (-whale -fin)") == ["http://b/"]
        assert urls(index, "NOT NOT whale") == ["http://a/"]
