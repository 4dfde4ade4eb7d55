"""Questions to a Broker's index: repeated while it is swapped, after it is made anew if another version made it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from streams.cli.common import Failure, note, printable, rebuild_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from schemas.ports import BrokerIndex
    from streams.config.settings import Settings

AGAIN = (0.05, 0.2)
"""Pauses in seconds before a question is repeated: the index may have been swapped at that moment."""

Answer = TypeVar("Answer")


def ask_index(found: Settings, broker: str, ask: Callable[[BrokerIndex], Answer]) -> Answer:
    """Open the index of a Broker, and return what `ask` returns for it. Raises Failure."""
    from sinks.index.errors import IndexDamaged, IndexMissing, IndexOutdated

    for pause in (*AGAIN, None):
        try:
            return _asked(found, broker, ask)
        except IndexOutdated as error:
            make_anew(found, broker, error)
        except (IndexDamaged, IndexMissing) as error:
            if pause is None and isinstance(error, IndexMissing):
                raise Failure(_missing(found, broker, printable(str(error)))) from None
            if pause is None:
                raise Failure(f"{error} (rebuild it: {rebuild_command(broker)})") from None
            time.sleep(pause)
    raise Failure("the index is being swapped again and again")


def _asked(found: Settings, broker: str, ask: Callable[[BrokerIndex], Answer]) -> Answer:
    from streams.config.topology import broker_defined
    from streams.operations.indexes import open_index

    index = open_index(found, broker)
    try:
        asked = broker_defined(found, broker).languages
        if index.languages != asked:
            wanted, made = (", ".join(each) or "none" for each in (asked, index.languages))
            note(f"the index was made for the languages {made}, not {wanted} ({rebuild_command(broker)} makes it anew)")
        return ask(index)
    finally:
        index.close()


def make_anew(found: Settings, broker: str, error: Exception) -> None:
    """Make the index of another version anew from its topic. Raises Failure if that cannot be done here."""
    from streams.cli.commands.index import rebuild_serving_index
    from streams.operations.selection import Selection
    from streams.store.errors import StoreError
    from streams.topology.flow import archive

    note(f"the index of {broker} was made by another version: it is made anew from its topic")
    try:
        rebuild_serving_index(found, broker, Selection(archive(broker).name), lambda _: None)
    except (OSError, StoreError, Failure) as failed:
        raise Failure(f"{error} (rebuild it: {rebuild_command(broker)}; now: {failed})") from failed


def _missing(found: Settings, broker: str, error: str) -> str:
    """Return the error for a missing index."""
    fill = f"harvest worker index.{broker} fills it" if found.kafka.brokers else "gather something first"
    if not found.index.url and not found.data.is_dir():
        return f"{found.data}: no such data folder; {fill}, or name another one: --data DIR"
    if not found.kafka.brokers and not _has_topic(found, broker):
        return f"the Broker {broker} has no topic yet: harvest run, or the next harvest gather, makes it and its index"
    return f"{error if found.index.url else f'{found.data}: no index here'}; {fill}, or rebuild it: {rebuild_command(broker)}"


def _has_topic(found: Settings, broker: str) -> bool:
    """Return whether the data folder has the Broker's topic, or no topics at all: then it holds an index alone."""
    from streams.store.data_folder import known
    from streams.topology.flow import archive

    with known(found.data) as store:
        return store is None or archive(broker).name in store.topics()
