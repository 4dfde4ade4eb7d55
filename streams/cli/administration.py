"""The administration of the gateway by the settings: the same functions as those of the commands, in a data folder or on Kafka."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sinks.gateway.admin.ports import (
    AdminBroker,
    AdministrationError,
    AdminRejection,
    AdminRoot,
    AdminView,
    Registration,
    RejectionGroup,
    Size,
    Task,
)
from sinks.gateway.ports import CollectionError
from streams.cli.background import BackgroundCommand
from streams.cli.collection import Cached
from streams.cli.common import Failure, counted, explained, open_log, printable, rebuild_command
from streams.operations.status import NEWEST, SHOWN, left_out
from streams.store.errors import AbsentError, LockedError, StoreError

if TYPE_CHECKING:
    from processors.broker.definition import Broker
    from schemas.records import Rejected
    from streams.config.settings import Settings

LATEST = 20
"""Rejections of each reason that are listed."""
MOST_RETRIED = 500
"""Rejections that one request puts back."""
MEASURED = 60.0
"""Seconds for which the sizes are returned again: measuring them reads the names of all files."""
MOST_FILES = 200_000
"""Maximum number of files whose sizes are added up in a part of the data folder."""
SERVERS = "type:Server"
"""Query of a Broker that is a registry."""
_ABSOLUTE = re.compile(r"/|file:|[a-z][a-z0-9+.-]*://", re.IGNORECASE)
"""The beginning of a path or URL that means the same wherever the process runs."""
ABSENT = "no data folder yet (harvest gather ROOT makes it)"


class SettingsAdministration:
    """Implements `sinks.gateway.admin.ports.Administration`. Each call opens the log: a store is for one thread."""

    def __init__(self, found: Settings, config: Path | None, say: Callable[[str], object]) -> None:
        """`config`: the file of the settings, for commands in the background; `say`: writes a line to the log."""
        self._found, self._config, self._say = found, config, say
        self._background = BackgroundCommand()
        self._sizes = Cached(self._measure, MEASURED)

    def close(self) -> None:
        """End the command in the background."""
        self._background.close()

    # ---- roots -------------------------------------------------------------------------------------------------------

    def roots(self) -> tuple[Sequence[AdminRoot], Sequence[str]]:
        """See Administration."""
        from streams.cli.commands.roots import known_state, limits_of

        with _answering():
            state = known_state(self._found)
        shown = state.roots[:SHOWN]
        listed = [AdminRoot(root.url, root.url in state.paused, limits_of(root).removeprefix(", ")) for root in shown]
        return listed, left_out("roots", len(state.roots) - len(shown))

    def add_root(self, name: str, depth: int | None, max_urls: int | None) -> str:
        """See Administration; a name relative to a working folder that the user does not see is refused."""
        from streams.cli.commands.roots import add_roots
        from streams.cli.rootnames import check_limits

        if not _ABSOLUTE.match(name):
            raise AdministrationError(f"{printable(name)}: neither a URL nor an absolute path (a URL begins with its scheme)")
        notes: list[str] = []
        with _answering():
            check_limits(depth, max_urls)
            add_roots(self._found, [name], depth, max_urls, say=notes.append)
        return "; ".join((f"{printable(name)} is added: {self._follows('visit it', 'visits it')}", *notes))

    def pause_root(self, name: str) -> str:
        """See Administration."""
        return self._pause(name, on=True)

    def resume_root(self, name: str) -> str:
        """See Administration."""
        return self._pause(name, on=False)

    def remove_root(self, name: str) -> str:
        """See Administration."""
        from streams.cli.commands.roots import drop_roots

        with _answering():
            drop_roots(self._found, [name])
        return f"{printable(name)} is removed: {self._follows('remove its objects', 'removes its objects')}"

    def _pause(self, name: str, *, on: bool) -> str:
        from streams.cli.commands.roots import pause_roots

        with _answering():
            pause_roots(self._found, [name], on=on)
        return f"{printable(name)} is {'paused' if on else 'resumed'}"

    # ---- Brokers -----------------------------------------------------------------------------------------------------

    def brokers(self) -> Sequence[AdminBroker]:
        """See Administration."""
        from streams.config.topology import brokers_of

        with _answering():
            return [self._broker(one) for one in brokers_of(self._found)]

    def _broker(self, one: Broker) -> AdminBroker:
        from schemas.query import Every
        from streams.operations.indexes import open_index

        held, problems = None, []
        try:
            with closing(open_index(self._found, one.name, self._found.serve.timeout)) as index:
                held = index.count(Every())
        except Exception as error:  # noqa: BLE001 - the page shows what is wrong; a bug is raised again
            problems.append(_line(error))
        return AdminBroker(one.name, one.title, one.query, one.sources, one.ttl, held, problems)

    def rebuild(self, broker: str) -> str:
        """See Administration."""
        from streams.config.topology import broker_named

        with _answering():
            name = broker_named(self._found, broker)
            config = [f"--config={self._config}"] if self._config is not None else []
            arguments = ["index", "rebuild", f"--broker={name}", f"--data={self._found.data}", *config]
            self._background.start(arguments, rebuild_command(name))
        return f"the index of {name} is being rebuilt; the old one serves until the new one is complete"

    def task(self) -> Task | None:
        """See Administration."""
        return self._background.task()

    def views(self) -> Sequence[AdminView]:
        """See Administration."""
        from streams.config.topology import brokers_of
        from streams.operations.views import defined

        try:
            with _answering(), open_log(self._found) as log:
                known = {one.name: defined(log, one.name).values() for one in brokers_of(self._found)}
        except _AbsentError:
            return ()
        return [AdminView(name, view.path, view.query) for name, views in known.items() for view in views]

    def save_view(self, broker: str, path: str, query: str) -> str:
        """See Administration."""
        from processors.broker.views import ViewError
        from processors.query import QueryError
        from streams.config.topology import broker_named
        from streams.operations.views import add

        with _answering():
            name = broker_named(self._found, broker)
            try:
                with open_log(self._found, writing=True) as log:
                    made = add(log, name, path, query)
            except ViewError as error:
                raise AdministrationError(printable(str(error))) from None
            except QueryError as error:
                raise AdministrationError(f"query: {printable(error.line(query))}") from None
        return f"{printable(made.path)} is a view of {name}: {self._follows('tag its summaries', 'tags its summaries')}"

    def registrations(self) -> tuple[Sequence[Registration], Sequence[str]]:
        """See Administration."""
        from processors.query import parse
        from streams.config.topology import brokers_of

        with _answering():
            names = [one.name for one in brokers_of(self._found) if one.query.strip() and parse(one.query) == parse(SERVERS)]
        if not names:
            return (), [f"there is no registry here: a Broker whose query is {SERVERS}"]
        listed, notes = [], []
        for name in names:
            some, more = self._registered(name)
            listed += some
            notes += more
        return listed, notes

    def _registered(self, broker: str) -> tuple[list[Registration], list[str]]:
        """Return the servers that a Broker's index holds, and notes."""
        from processors.query import parse
        from streams.operations.indexes import open_index

        try:
            with closing(open_index(self._found, broker, self._found.serve.timeout)) as index:
                page = index.search(parse(SERVERS), SHOWN)
        except Exception as error:  # noqa: BLE001 - the page shows what is wrong; a bug is raised again
            return [], [f"{broker}: {_line(error)}"]
        return [Registration(broker, hit.url, hit.title) for hit in page.hits], left_out("servers", page.total - len(page.hits))

    # ---- rejections --------------------------------------------------------------------------------------------------

    def rejections(self) -> tuple[Sequence[RejectionGroup], Sequence[str]]:
        """See Administration."""
        from streams.operations.dead_letters import standing

        try:
            with _answering(), open_log(self._found) as log:
                if "rejected" not in log.topics():
                    return (), ()
                written = sum(log.ends("rejected")) - sum(log.starts("rejected"))
                found = standing(log, NEWEST)
        except _AbsentError:
            return (), [ABSENT]
        notes = [f"of the newest {NEWEST:,} records"] if written > NEWEST else []
        groups = _by_reason(found)
        return groups[:SHOWN], [*notes, *left_out("reasons", len(groups) - SHOWN)]

    def retry(self, name: str) -> str:
        """See Administration."""
        from streams.cli.commands.rejected import choose_rejections, rejection_name

        def choose(before: list[Rejected]) -> list[Rejected]:
            # As it was listed: a name in an archive may have characters that no page shows.
            listed = [one for one in before if printable(rejection_name(one)) == name]
            return listed or choose_rejections(before, [name])

        return self._retry(choose)

    def retry_reason(self, reason: str) -> str:
        """See Administration; of many a part, because the log is searched for each of which the bytes are not at hand."""

        def choose(before: list[Rejected]) -> list[Rejected]:
            chosen = [one for one in before if printable(one.reason) == reason]
            if not chosen:
                raise Failure(f"{printable(reason)}: nothing is rejected for this reason")
            left.append(len(chosen) - MOST_RETRIED)
            return chosen[:MOST_RETRIED]

        left: list[int] = []
        done = self._retry(choose)
        return f"{done}; left of this reason: {left[0]:,} (retry again)" if left[0] > 0 else done

    def _retry(self, choose: Callable[[list[Rejected]], list[Rejected]]) -> str:
        from streams.cli.commands.rejected import put_back

        with _answering():
            _, chosen, lost = put_back(self._found, choose)
        again = "" if not lost else f"; nothing is left of {len(lost):,} to put back: their objects have to be fetched again"
        number = len(chosen) - len(lost)
        return f"{counted(number, 'record')} put back: {self._follows('read them', 'reads them')}{again}"

    # ---- the data folder ---------------------------------------------------------------------------------------------

    def sizes(self) -> Sequence[Size]:
        """See Administration."""
        with _answering():
            return self._sizes.get()

    def log(self, text: str) -> None:
        """See Administration."""
        self._say(text)

    def _measure(self) -> list[Size]:
        """Return the sizes of the files and folders in the data folder, by name; a part that changes meanwhile about right."""
        try:
            with os.scandir(self._found.data) as entries:
                parts = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        return [Size(printable(part.name), _size(part)) for part in parts if not part.is_symlink()]

    def _follows(self, several: str, one: str) -> str:
        """Return who carries out what was ordered."""
        from streams.store.locks import runner_of

        if self._found.kafka.brokers:
            return f"the workers {several}"
        if runner_of(self._found.data):
            return f"the active run {one}"
        return f"harvest run, or the next harvest gather, {one}"


class _AbsentError(CollectionError):
    """There is no data folder yet."""


def _by_reason(found: Sequence[Rejected]) -> list[RejectionGroup]:
    """Return rejections by reason, the most frequent first, each with its latest ones; all text is printable."""
    from streams.cli.commands.rejected import rejection_name

    counts = Counter(printable(one.reason) for one in found)
    each: dict[str, list[AdminRejection]] = defaultdict(list)
    for one in sorted(found, key=lambda one: -one.time):
        listed = each[reason := printable(one.reason)]
        if len(listed) < LATEST:
            listed.append(AdminRejection(printable(rejection_name(one)), one.stage, reason, one.time))
    return [RejectionGroup(reason, count, each[reason]) for reason, count in counts.most_common()]


def _size(part: os.DirEntry[str]) -> int:
    """Return the size of a file, or of the files below a folder: at most MOST_FILES."""
    if not part.is_dir():
        return part.stat().st_size
    total = number = 0
    for folder, _, names in os.walk(part.path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue  # removed meanwhile
            number += 1
            if number == MOST_FILES:
                return total
    return total


def _line(error: Exception) -> str:
    """Return the line for the user; raises an error that is a bug again."""
    mistake = explained(error)
    if mistake is None:
        raise error
    return printable(mistake[0])


@contextmanager
def _answering() -> Iterator[None]:
    """Raise what the page can show: AdministrationError for a user's mistake, CollectionError for what cannot be read now."""
    try:
        yield
    except (AdministrationError, CollectionError):
        raise
    except LockedError as error:
        raise AdministrationError(f"{printable(str(error))}: stop it first, or wait for its end", 409) from error
    except AbsentError as error:
        raise _AbsentError(ABSENT) from error
    except (OSError, StoreError) as error:
        raise CollectionError(_line(error)) from error
    except Exception as error:
        raise _as_mistake(error) from error


def _as_mistake(error: Exception) -> Exception:
    """Return the error that the page shows for an error of a command; raises a bug again."""
    from streams.config.settings import SettingsError

    if isinstance(error, Failure | SettingsError):
        return AdministrationError(_line(error))
    return CollectionError(_line(error))
