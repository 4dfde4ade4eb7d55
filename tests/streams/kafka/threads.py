"""Work in a thread beside a test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def beside(work: Callable[[threading.Event], object], errors: list[BaseException] | None = None) -> Iterator[None]:
    """Run `work` in a thread until the block ends and `stop` is set; its error goes to `errors` at once, and is raised last."""
    stop = threading.Event()
    raised = [] if errors is None else errors

    def main() -> None:
        try:
            work(stop)
        except BaseException as error:  # noqa: BLE001 - raised below
            raised.append(error)

    thread = threading.Thread(target=main)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    for error in raised:
        raise error
