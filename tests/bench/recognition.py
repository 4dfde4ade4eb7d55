"""Measures recognition on corpora that other projects label, and the outcomes of all their files.

Types: `recognize` gets the name and the first 64 kB, as in the walk; the share of right answers is taken for each type, and the
average is over types, so that a hundred images weigh no more than one font. Outcomes: `harvest gather` on all corpora, in its
sandbox; each path must have one outcome, and no process may have been terminated.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from processors.essence.recognize import HEAD, UNRECOGNIZED, recognize
from schemas.records import Rejected, Summary
from streams.logs import StoreLog
from streams.operations.dead_letters import standing
from streams.store import Store
from tests.bench import corpora
from tests.bench.figures import Figure, Goal
from tests.bench.labelled import Labelled, Labels, all_labelled, labels
from tests.bench.outcomes import outcomes, records
from tests.bench.packages import debian_source, opened, sdist
from tests.bench.tree import gather

SOURCES = ("groff", "libarchive", "rcs", "cssc", "unrtf", "chroma")
SDISTS = ("pdfminer.six==20250506", "openpyxl==3.1.5", "python-pptx==1.0.2", "odfpy==1.4.1")
"""Packages without labels: they are only summarized."""
NAMELESS = frozenset({"file"})
"""Corpora whose file names carry no information: `x.testfile`."""
_COMMON = "file-name target-uri owner group mode last-modification-time title strings language keywords encoding reason"
COMMON = frozenset(_COMMON.split())
"""Attributes that files of any type may have."""
TROUBLE = ("crashed", "timed out", "out of memory", "too much output", "failed", "lost")
"""Prefixes of the reasons of rejections after a process was terminated."""
TOLD = 12
"""Maximum number of files, labels or types named in a line."""
PAPER = "Essence: 97.5 on an FTP server, 71.15 on a department's file server (by size)"


class Answer(NamedTuple):
    """The type found for one labeled file, with its name and without."""

    file: Labelled
    wanted: str
    found: str
    nameless: str


def answers(files: Sequence[Labelled], table: Labels) -> list[Answer]:
    """Recognize all files that are judged."""
    asked = []
    for file in files:
        wanted = table.wanted(file.label) if judged(file) else ""
        if wanted:
            with file.path.open("rb") as body:
                head = body.read(HEAD)
            name = b"" if file.corpus in NAMELESS else file.path.name.encode()
            asked.append(Answer(file, wanted, recognize(name, head).type, recognize(b"", head).type))
    return asked


def judged(file: Labelled) -> bool:
    """Whether a file is judged: it has a label and is not empty."""
    return bool(file.label) and file.path.stat().st_size > 0


def by_type(found: Sequence[Answer], table: Labels, *, named: bool = True) -> dict[str, float]:
    """The percentage of right answers for each type."""
    right: dict[str, list[bool]] = defaultdict(list)
    for one in found:
        right[one.wanted].append(table.right(one.wanted, one.found if named else one.nameless))
    return {kind: 100 * fmean(each) for kind, each in right.items()}


def by_label(files: Sequence[Labelled], found: Sequence[Answer], table: Labels) -> dict[str, float]:
    """The percentage of right answers for each label; a label that means no type has 0."""
    right: dict[str, list[bool]] = {file.label: [False] for file in files if judged(file) and not table.wanted(file.label)}
    for one in found:
        right.setdefault(one.file.label, []).append(table.right(one.wanted, one.found))
    return {label: 100 * fmean(each) for label, each in right.items()}


def recognized(files: Sequence[Labelled]) -> Iterator[Figure]:
    """Measure how often the right type was found, and list the wrong answers."""
    table = labels()
    found = answers(files, table)
    shares, bare = by_type(found, table), by_type(found, table, named=False)
    wrong = [one for one in found if not table.right(one.wanted, one.found)]
    of = Counter(file.corpus for file in files)
    yield Figure("recognition", "files", len(files), "files", "; ".join(f"{count} {name}" for name, count in of.most_common()))
    yield Figure("recognition", "labels", len({one.file.label for one in found}), "labels", f"{len(found):,} files that are judged")
    yield from _left_out(files, table)
    yield Figure(
        "recognition", "right, average of types", fmean(shares.values()), "per cent", f"{len(shares)} types", Goal(">=", 97)
    )
    yield Figure("recognition", "right, of files", 100 - 100 * len(wrong) / len(found), "per cent", f"{len(wrong)} are wrong")
    strict = by_label(files, found, table)
    how = f"{len(strict)} labels; those that mean no type count as wrong"
    yield Figure("recognition", "right, average of labels", fmean(strict.values()), "per cent", how)
    yield Figure("recognition", "without names, types", fmean(bare.values()), "per cent", "the same files by content alone")
    for kind in sorted((kind for kind in shares if shares[kind] < 100), key=lambda kind: (shares[kind], kind)):
        named = [f"{one.file.corpus}/{one.file.path.name}: {one.found}" for one in wrong if one.wanted == kind]
        more = f" ... {len(named) - TOLD} more" if len(named) > TOLD else ""
        yield Figure("recognition", f"  {kind}", shares[kind], "per cent", "; ".join(named[:TOLD]) + more)


def _left_out(files: Sequence[Labelled], table: Labels) -> Iterator[Figure]:
    """The files that are not judged, with the reasons."""
    unlabelled = [file for file in files if not file.label]
    typeless = Counter(file.label for file in files if judged(file) and not table.wanted(file.label))
    empty = [file.path.name for file in files if file.label and not file.path.stat().st_size]
    yield _listed("not judged: no label", len(unlabelled), Counter(file.corpus for file in unlabelled))
    yield _listed("not judged: no type", typeless.total(), typeless)
    yield _listed("not judged: empty", len(empty), empty)


def _listed(name: str, count: int, what: Collection[str]) -> Figure:
    return Figure("recognition", name, count, "files", "; ".join(what))


def summarized(roots: Sequence[Path], work: Path) -> Iterator[Figure]:
    """Measure the outcomes of all files, terminated processes, and attributes."""
    data = work / "data"
    run = gather(roots, data)
    yield Figure("essence", "objects", run.said["objects"], "objects", f"{run.seconds:.0f} s, {run.peak >> 20:,} MiB at most")
    found = outcomes(data, corpora.found(roots))
    yield Figure("essence", "summarized", found.summarized, "paths")
    for kind, counts in (("refused", found.refused), ("rejected", found.rejected)):
        why = "; ".join(f"{n} {reason}" for reason, n in counts.most_common(TOLD))
        yield Figure("essence", kind, counts.total(), "paths", why)
    yield Figure("essence", "no summary, no rejection", len(found.nothing), "paths", " ".join(found.nothing[:TOLD]), Goal("=", 0))
    with Store(data, readonly=True) as store:
        letters = standing(StoreLog(store))
        latest = {one.url: one for one in records(store, "summaries") if isinstance(one, Summary)}
    yield from _trouble(list(letters))
    yield from _attributes(latest)


def _trouble(letters: Sequence[Rejected]) -> Iterator[Figure]:
    """Rejections after a terminated process, including those of members."""
    for start in TROUBLE:
        named = [f"{one.url}#{one.path}: {one.reason}" for one in letters if one.reason.startswith(start)]
        yield Figure("essence", start, len(named), "files", " ".join(named[:TOLD]), Goal("=", 0))


def _attributes(latest: Mapping[str, Summary]) -> Iterator[Figure]:
    """The percentage of files and members that have attributes specific to their type."""
    specific = [one for one in latest.values() if _specific(one)]
    count = len(latest)
    share = 100 * len(specific) / max(1, count)
    yield Figure("essence", "attributes of the type", share, "per cent", f"of {count:,} files, members included; {PAPER}")
    told = {one.object_url for one in specific}
    objects = [one for one in latest.values() if not one.path]
    size = sum(one.size for one in objects)
    by_size = 100 * sum(one.size for one in objects if one.object_url in told) / max(1, size)
    how = f"of {size:,} bytes, objects that have them or hold what has; {PAPER}"
    yield Figure("essence", "attributes, by size", by_size, "per cent", how)
    without = Counter(one.type for one in latest.values() if not _specific(one))
    yield Figure(
        "essence", "without", count - len(specific), "files", "; ".join(f"{n} {kind}" for kind, n in without.most_common(TOLD))
    )


def _specific(summary: Summary) -> bool:
    return summary.type != UNRECOGNIZED and bool(summary.attributes.keys() - COMMON)


def recognition(cache: Path, work: Path) -> Iterator[Figure]:
    """Measure all figures. Raises BenchError if a package cannot be obtained."""
    folder = cache / "labelled"
    yield from recognized(all_labelled(folder))
    for archive in (*(debian_source(folder, name) for name in SOURCES), *(sdist(folder, name) for name in SDISTS)):
        opened(archive, folder / "opened")
    yield from summarized([folder / "opened"], work)
