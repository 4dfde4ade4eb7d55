from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from processors.frontier.robots import Rule, RuleIndex, allowed

texts = st.text("ab/", max_size=12)
rules = st.builds(Rule, st.booleans(), st.lists(texts, min_size=1, max_size=4).map(tuple), st.booleans())


@given(st.lists(rules, max_size=30), texts)
def test_index_finds_first_rule_that_matches(given_rules: list[Rule], path: str) -> None:
    """The index gives the rule that trying all of them in order gives."""
    assert RuleIndex(given_rules).decisive(path) == next((rule for rule in given_rules if rule.matches(path)), None)


def test_rules_that_cannot_match_are_not_tried() -> None:
    """Of 40,000 patterns with asterisks, only those are tried whose piece begins as a part of the path does."""
    tried = []

    class Counted(Rule):
        def matches(self, path: str) -> bool:
            tried.append(self)
            return super().matches(path)

    index = RuleIndex([Counted(False, ("/", f"{n:05}x"), anchored=False) for n in range(40_000)])
    assert index.decisive("/a/31415x") == index._rules[31_415]
    assert len(tried) <= 20
    assert index.decisive("/a/b") is None


def test_large_file_decides_as_a_small_one() -> None:
    """A long robots.txt is indexed whole."""
    lines = "".join(f"Disallow: /*/private{n}$\n" for n in range(5_000))
    robots = f"User-agent: *\n{lines}Allow: /open/\n".encode()
    assert not allowed(robots, "harvest", "http://a.test/x/private4321")
    assert allowed(robots, "harvest", "http://a.test/x/private5000")
