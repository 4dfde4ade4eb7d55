"""Words of a text as they are counted for keywords and terms."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.essence.summarize._word_counts import word_counter

TEXTS = st.text(st.sampled_from("abZ01_'+- \n\x1c\u2019\u201c\u2014\u00e9\u3042\u0130\u00b2")) | st.text("aZ'", min_size=25)


@pytest.mark.parametrize("kept", ["", "'+-"])
@given(text=TEXTS)
def test_expression(kept: str, text: str) -> None:
    """Counts are those of the regular expression that defines a word, whatever the text has beyond ASCII."""
    defined = re.compile(rf"[^\W\d_][\w{re.escape(kept)}]{{2,29}}")
    assert +word_counter(kept)(text) == Counter(defined.findall(text.lower()))


def test_signs() -> None:
    """Signs beyond ASCII separate words as others do."""
    assert word_counter()("\u201cOpen\u201d\u2014open\u2026 \u2018source\u2019") == {"open": 2, "source": 1}
