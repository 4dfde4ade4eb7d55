"""Keywords of texts in scripts other than Latin."""

import pytest

from processors.essence.summarize._general import keywords

TEXTS = [
    ("Для лодки и для весла. Лодка, чтобы плыть; весло, чтобы лодку вести. Это море, это ветер: море и ветер.", "море ветер"),
    ("Για τη θάλασσα και για τον άνεμο: η θάλασσα είναι μεγάλη, ο άνεμος είναι μεγάλος. Θάλασσα!", "θάλασσα"),
    ("東京湾の船。東京湾には船舶が多い。船舶は港に入る。", "東京湾 船舶"),
    ("计算机科学。计算机科学与计算机。", "计算机"),
    ("データベースの設計。データベースを作る。設計は大切。", "データベース 設計"),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_keywords_are_frequent_words_in_any_script(text: str, wanted: str) -> None:
    """Frequent words are keywords, with or without spaces between words; function words and parts of words are not."""
    found = keywords(text)
    assert set(wanted.split()) <= set(found)
    assert not {"для", "чтобы", "это", "για", "είναι", "東京", "算机", "ベース"} & set(found)
