"""Changes wait until they rest: bursts become few visits, and what never rests is visited all the same."""

from __future__ import annotations

from streams.watch.pending import FILES, FOLDER, Batch, Pending

NOTHING = Batch((), ())


def test_change_goes_out_once_it_rests() -> None:
    """A file that changes several times in a row is visited once, a pause after the last change."""
    pending = Pending(pause=0.5, burst=10)
    for now in (0.0, 0.3, 0.6):
        pending.add([b"/a"], now)
        assert pending.take(now) == NOTHING
    assert pending.take(1.0) == NOTHING
    assert pending.take(1.2) == Batch((b"/a",), ())
    assert not pending


def test_what_never_rests_is_visited_now_and_then() -> None:
    """A folder that changes all the time is visited within seconds, a file that is written all the time within a minute."""
    pending = Pending(pause=0.5, burst=10)
    seen: dict[bytes, float] = {}
    for tenth in range(700):
        pending.add([b"/log", b"/inbox/"], tenth / 10)
        for path in pending.take(tenth / 10).paths:
            seen.setdefault(path, tenth / 10)
    assert FOLDER <= seen[b"/inbox/"] <= FOLDER + 0.2
    assert 60 <= seen[b"/log"] <= 60.2


def test_large_folder_that_changes_all_the_time_is_visited_seldom() -> None:
    """A folder whose listing is long waits longer for its next visit, not for the first; other folders do not wait for it."""
    pending = Pending(pause=0.5, burst=10, rest=lambda path: 20.0 if path == b"/large/" else 0.0)
    seen: dict[bytes, list[float]] = {b"/large/": [], b"/small/": []}
    for second in range(60):
        pending.add(seen, float(second))
        for path in pending.take(second + 0.5).paths:
            seen[path].append(second + 0.5)
    assert seen[b"/large/"] == [0.5, 20.5, 40.5]
    assert len(seen[b"/small/"]) == 60


def test_many_files_of_a_folder_are_one_visit_of_it() -> None:
    """Beyond a number of changed files in one folder the folder is visited for the rest; other folders are not affected."""
    pending = Pending(pause=0.5, burst=10_000)
    pending.add([b"/many/%d" % number for number in range(5 * FILES)], 0.0)
    pending.add([b"/few/a", b"/few/b"], 0.0)
    paths = pending.take(1.0).paths
    assert len(paths) == FILES + 1 + 2
    assert {b"/many/", b"/few/a", b"/few/b"} <= set(paths)
    pending.add([b"/many/0"], 2.0)
    assert pending.take(3.0).paths == (b"/many/0",)


def test_more_paths_than_the_burst_fill_it() -> None:
    """Pending is full once more paths wait than are visited one by one; then they can be dropped for their roots."""
    pending = Pending(pause=0.5, burst=3)
    pending.add([b"/%d/" % number for number in range(3)], 0.0)
    full = [pending.is_full]
    pending.add([b"/4/"], 0.0)
    full.append(pending.is_full)
    assert full == [False, True]
    pending.clear_paths()
    pending.add_roots(["file:///"], 0.0)
    assert pending.take(0.6) == Batch((), ("file:///",))
