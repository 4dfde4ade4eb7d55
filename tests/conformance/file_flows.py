"""Flows of files and folders, and of the views of Brokers: written once for both runners, with their assertions."""

from __future__ import annotations

import os

from tests.conformance.ground import Flow, Ground, gather, harvest
from tests.faults.corpus import Corpus
from tests.samples import make_corpus
from tests.samples.make_corpus import gzipped, tar, zipped


def whale(of: str) -> bytes:
    """A text with the flow's name, so that the texts of two flows are no copies of each other."""
    return f"The white whale.\nIt swims in {of}.\n".encode()


def a_tree_that_changes(ground: Ground) -> Flow:
    """Copies are listed, the next holder is promoted when one is removed, and members missing from an archive are removed."""
    text = whale("a file and its copies")
    members = {"in/whale.txt": text, "in/thistle.txt": b"A thistle, in an archive.\n"}
    ground.write({"whale.txt": text, "notes/copy.txt": text, "a.zip": zipped({**members, "b.tar.gz": gzipped(tar(members))})})
    ground.write({"thistle.html": "<title>Thistle and whale</title>Of both.", "empty.txt": "", "notes/empty.txt": ""})
    found = yield gather(ground.folder)
    inner = [f"a.zip#b.tar.gz#in/{name}.txt" for name in ("thistle", "whale")]
    files = {"whale.txt", "notes/copy.txt", "thistle.html", "empty.txt", "notes/empty.txt"}
    assert set(found.archive) == {*files, "a.zip", "a.zip#b.tar.gz", *inner, "a.zip#in/thistle.txt", "a.zip#in/whale.txt"}
    assert found.copies(ground) == {
        "whale.txt": ["notes/copy.txt", "a.zip#in/whale.txt", inner[1]],
        "a.zip#in/thistle.txt": [inner[0]],
    }
    assert set(found.hits['"white whale"']) == {"whale.txt", "notes/copy.txt", "a.zip#in/whale.txt", inner[1]}

    (ground.folder / "whale.txt").unlink()
    ground.write({"a.zip": zipped(members), "thistle.html": "<title>Of the whale alone</title>No more of the other."})
    found = yield gather(ground.folder)
    assert found.removed == {"whale.txt": "gone"} | dict.fromkeys(["a.zip#b.tar.gz", *inner], "member_missing")
    assert found.copies(ground) == {"notes/copy.txt": ["a.zip#in/whale.txt"]}
    assert set(found.hits["title:whale"]) == {"thistle.html", "notes/copy.txt", "a.zip#in/whale.txt"}

    before = found.archive
    found = yield gather(ground.folder)
    assert found.archive == before

    (ground.folder / "a.zip").unlink()
    ground.write({"whale.txt": text, "a.zip/b.txt": "A folder now.\n"})
    (ground.folder / "empty.txt").rename(ground.folder / "moved.txt")
    found = yield gather(ground.folder)
    assert set(found.archive) == {"whale.txt", "notes/copy.txt", "thistle.html", "moved.txt", "notes/empty.txt", "a.zip/b.txt"}
    assert found.copies(ground) == {"whale.txt": ["notes/copy.txt"]}


def roots_that_come_and_go(ground: Ground) -> Flow:
    """A removed root takes along the objects that no other root needs; a paused one and its objects stay."""
    make_corpus.write(ground.folder / "corpus")
    notes = os.listdir(ground.folder / "corpus" / "notes")
    found = yield gather(ground.folder, ground.folder / "corpus" / "notes")
    assert len({one.type for one in found.archive.values()}) > 10
    before = found.archive
    found = yield harvest("roots", "pause", ground.folder)
    assert (found.archive, found.roots) == (before, {"./": "paused", "corpus/notes/": "active"})
    found = yield harvest("roots", "remove", ground.folder)
    assert (set(found.archive), found.roots) == ({f"corpus/notes/{name}" for name in notes}, {"corpus/notes/": "active"})
    assert found.copies(ground) == {}
    assert set(found.removed.values()) == {"expired"}
    found = yield harvest("roots", "remove", ground.folder / "corpus" / "notes")
    assert (found.summaries, found.archive, found.hits["*"], found.roots) == ({}, {}, {}, {})


def what_is_said_by_hand(ground: Ground) -> Flow:
    """Annotations, also of members, are found, survive a new summary, and can be removed."""
    ground.write({"notes/sea.txt": "Of the sea.\n", "b.zip": zipped({"m.txt": b"A member, of the sea too.\n"})})
    member = f"file://{ground.folder}/b.zip#m.txt"
    yield gather(ground.folder)
    yield harvest("annotate", ground.folder / "notes" / "sea.txt", "keywords=leviathan", "rating=5", "rating=6")
    found = yield harvest("annotate", member, "keywords=leviathan")
    assert set(found.hits["keywords:leviathan"]) == {"notes/sea.txt", "b.zip#m.txt"}
    ground.write({"notes/sea.txt": "Of the sea and the whale.\n"})
    found = yield gather(ground.folder)
    assert found.archive["notes/sea.txt"].annotations == {"keywords": ("leviathan",), "rating": ("5", "6")}
    found = yield harvest("annotate", ground.folder / "notes" / "sea.txt", "keywords=")
    assert set(found.hits["keywords:leviathan"]) == {"b.zip#m.txt"}


def what_is_damaged(ground: Ground) -> Flow:
    """An unreadable file is rejected with the reason, and its readable part stays; once it is repaired, the rejection is gone."""
    text = gzipped(whale("what is damaged"))
    whole = gzipped(tar({f"{name}.txt": f"{name}, of a whale, {'x' * 600}\n".encode() for name in ("one", "two", "three")}))
    ground.write({"a.tar.gz": whole, "b.txt.gz": text, "large.txt": "x"})
    yield gather(ground.folder)
    cut = gzipped(tar({"one.txt": b"one, of a whale\n", "two.txt": b"x" * 9_000}))
    ground.write({"a.tar.gz": cut[:-30], "b.txt.gz": text[:-9], "large.txt": b"x" * 4_000_001})
    found = yield gather(ground.folder)
    assert set(found.rejected) == {"a.tar.gz", "a.tar.gz#two.txt", "b.txt.gz", "large.txt"}
    assert {"a.tar.gz#two.txt", "a.tar.gz#three.txt"} <= set(found.archive)
    assert "reason" in found.archive["b.txt.gz"].attributes
    ground.write({"a.tar.gz": whole, "b.txt.gz": text, "large.txt": "x and more"})
    found = yield gather(ground.folder)
    assert found.rejected == {}
    assert not [name for name, one in found.archive.items() if "reason" in one.attributes]


def what_is_tried_again(ground: Ground) -> Flow:
    """A retried dead letter that fails again is listed again, and the summaries are unchanged."""
    ground.write({"b.txt.gz": gzipped(whale("what is tried again"))[:-9]})
    first = yield gather(ground.folder)
    found = yield harvest("rejected", "retry", ground.folder / "b.txt.gz")
    assert found == first
    assert set(found.rejected) == {"b.txt.gz"}


def a_large_family(ground: Ground) -> Flow:
    """More copies than the list can have are all counted; after a removal the next one is promoted with the remaining copies."""
    ground.write({f"{number:03}.txt": "The licence of everything.\n" for number in range(130)})
    found = yield gather(ground.folder)
    (canonical,) = found.copies(ground)
    assert (canonical, found.archive[canonical].copies_count, len(found.archive[canonical].copies)) == ("000.txt", 129, 100)
    for number in range(60):
        (ground.folder / f"{number:03}.txt").unlink()
    found = yield gather(ground.folder)
    assert found.copies(ground) == {"060.txt": [f"{number:03}.txt" for number in range(61, 130)]}
    assert set(found.hits["canonical"]) == {"060.txt"}
    for number in range(61, 130):
        ground.write({f"{number:03}.txt": f"A licence of its own: {number}.\n"})
    found = yield gather(ground.folder)
    assert found.copies(ground) == {}
    assert {one.copy_of for one in found.archive.values()} == {""}


def odd_files(ground: Ground) -> Flow:
    """Odd names, links, large bodies and lists with entries give the same results, and are removed."""
    odd = (b"caf\xe9 #1%.txt", b"new\nline.txt", "\N{CJK UNIFIED IDEOGRAPH-6DF1}.txt".encode())
    for name in odd:
        (ground.folder / name.decode("utf-8", "surrogateescape")).write_text(f"An odd name: {name!r}.\n")
    ground.write({"long.txt": "The white whale begins.\n" + "".join(f"Line {n} of it.\n" for n in range(9_000)), "old.txt~": "x\n"})
    ground.write({"list.bib": "".join(f"@book{{k{n}, title={{Whale {n}}}, author={{Melville}}}}\n" for n in range(4))})
    ground.write({"twice.zip": zipped({"a#b/m.txt": b"one member\n", "..": b"\n", "m.txt.gz": gzipped(b"in gzip\n")})})
    (ground.folder / "link").symlink_to("long.txt")
    (ground.folder / "nowhere").symlink_to("nothing")
    found = yield gather(ground.folder)
    assert {"caf%E9%20%231%25.txt", "new%0Aline.txt", "%E6%B7%B1.txt"} <= set(found.archive)
    assert "full-text" in found.archive["long.txt"].attributes
    assert [name for name in found.archive if name.startswith("list.bib#")]
    ground.write({"list.bib": "@book{k2, title={Whale 2}, author={Melville}}\n"})
    (ground.folder / "link").unlink()
    (ground.folder / "link").symlink_to("list.bib")
    for name in odd:
        (ground.folder / name.decode("utf-8", "surrogateescape")).unlink()
    found = yield gather(ground.folder)
    assert set(found.removed.values()) == {"gone", "member_missing"}


def a_tree_by_chance(ground: Ground) -> Flow:
    """Any tree, with any changes, gives the same results; the oracle of `tests/faults` defines which."""
    corpus = Corpus(bytes(ground.folder), 11, 250)
    corpus.build()
    for _ in range(3):
        found = yield gather(ground.folder)
        assert set(found.hits["*"]) == set(found.archive) == set(found.summaries)
        corpus.disturb()


def views_that_come_and_go(ground: Ground) -> Flow:
    """Summaries are tagged with the views that they are in, also with those that are made, changed and removed later."""
    ground.write({"whale.html": "<title>A whale</title>White.", "thistle.html": "<title>A thistle</title>Of no whale."})
    ground.write({"w.txt": whale("views")})
    outline = ground.folder.with_name("views.txt")
    outline.write_text("sea: whale\n  pages: type:HTML\n    white: white\n      titled: title:whale\n", "utf-8")
    yield harvest("view", "import", "main", outline)
    found = yield gather(ground.folder)
    assert found.archive["whale.html"].views == ("sea", "sea/pages", "sea/pages/white", "sea/pages/white/titled")
    assert found.archive["thistle.html"].views == ("sea", "sea/pages")
    assert found.archive["w.txt"].views == ("sea",)
    found = yield harvest("view", "create", "whales", "plants", "thistle")
    assert {name: one.views for name, one in found.others["whales"].items()} == {"whale.html": (), "thistle.html": ("plants",)}
    found = yield harvest("view", "create", "main", "sea/pages/white", "thistle OR white")
    assert found.archive["thistle.html"].views == ("sea", "sea/pages", "sea/pages/white")
    found = yield harvest("view", "remove", "main", "sea/pages/white/titled")
    assert found.archive["whale.html"].views == ("sea", "sea/pages", "sea/pages/white")
