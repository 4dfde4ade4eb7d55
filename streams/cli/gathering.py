"""Commands on the embedded runner: signals, progress, the closing table, the outcome of each root."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from functools import partial
from typing import Any, Self, TypeVar

import msgspec
import uvloop

from schemas.jsonform import line
from schemas.records import Plan, Root
from streams.cli.broker_sources import collect_sources
from streams.cli.common import USAGE, Failure, counted, note, put
from streams.cli.gateway_process import GatewayProcess
from streams.cli.output.display import progress
from streams.cli.output.progress import Progress
from streams.cli.output.root_failures import Failures, failure_lines, other_reasons
from streams.cli.output.run_report import RunReport, closing
from streams.cli.rootnames import accepted_until, check_limits, gathered_root, known_as, with_terms
from streams.cli.serving import logs_of, serve_health
from streams.cli.wiring import embedded_settings, watch_settings
from streams.clock import now_ms
from streams.config.settings import Settings, SettingsError
from streams.config.topology import topology_of
from streams.embedded import Embedded, runs, upkeep
from streams.embedded.held import held_hosts, held_lines
from streams.embedded.outcomes import doubts, failures
from streams.embedded.watching import Watch
from streams.store import LockedError, Store
from streams.store.data_folder import gatherer
from streams.store.data_folder import known as there
from streams.telemetry import Health, Logs, Metrics
from streams.watch.service import RootWatch

INTERRUPTED = 130
T = TypeVar("T")
SEARCH = "to search: harvest search WORDS; in a browser: harvest serve"
"""The last line of a run: what to do with what was gathered."""


class Stop:
    """Signal handling: the first signal asks the runner to stop, the second kills the process."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._signalled, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)

    def _signalled(self, number: signal.Signals) -> None:
        if self.asked:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.asked = True

    def __call__(self) -> bool:
        """Return whether to stop."""
        return self.asked


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on an event loop in C, on which fetching takes less time than on Python's own."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def settle(settings: Settings, *, fetching: bool = False) -> bool:
    """Apply events appended from outside, unless another process is running, or an interrupted run must be continued first.

    Returns whether they were applied. With `fetching`, the requests that they cause are fetched too, as in a run; otherwise these
    are left to the next run.
    """
    if settings.kafka.brokers:
        # The workers read them.
        return False
    try:
        return _run(_settle(settings, fetching=fetching))
    except LockedError:
        note("the change is stored; the active run applies it")
        return False
    except SettingsError as error:  # a definition of a Broker: a run needs all of them
        note(f"the change is stored, and the next run applies it: none can start before this is mended: {error}")
        return False


async def _settle(settings: Settings, *, fetching: bool, waiting: bool = True) -> bool:
    with Store(settings.data, readonly=True) as store:
        waits = runs.under_way(store)
    if waiting and waits:
        note("the change is stored; the next run applies it")
        return False
    async with Embedded(settings.data, embedded_settings(settings), note, fetching=fetching) as runner:
        with Stop() as stop, progress(runner, runs.roots(runner.store), quiet=not fetching) as shown:
            await runner.run(stop=stop, seen=shown.seen)
        last = runs.last(runner.store)
        if not stop() and last is not None and not last.finished:
            runs.finish(runner, last)
    return not stop()


class Gathering:
    """One call of `harvest gather` or `harvest run`."""

    def __init__(self, settings: Settings, *, quiet: bool, json: bool, verbose: bool = False) -> None:
        self.settings = settings
        self.quiet = quiet
        self.json = json
        self.verbose = verbose

    def gather(self, names: Sequence[str], depth: int | None, urls: int | None, *, accept: bool = False) -> int:
        """Gather the roots named, or all that the data folder knows; return the exit code. `accept`: removals are not doubted."""
        if self.settings.kafka.brokers:
            note(f"gather works in {self.settings.data} alone; the workers are given roots by harvest roots add")
        self._collect_sources()
        if not names and self._emptied():
            return self._empty()
        wanted, wrong = self._roots(names, depth, urls)
        wanted = [msgspec.structs.replace(root, accept=accepted_until(accept)) for root in wanted]
        code = _run(self._gather(wanted, named=bool(names))) if wanted else 1
        return code or int(wrong)

    def serve(self, gateway: Sequence[str] | None = None) -> None:
        """Run until a signal arrives; `gateway`: the command of a gateway that is run beside."""
        self._collect_sources()
        _run(self._serve(gateway))

    def _collect_sources(self) -> None:
        """Let the run begin and end the roots that are sources of Brokers."""
        collect_sources(self.settings, (lambda _: None) if self.quiet else note)

    def _roots(self, names: Sequence[str], depth: int | None, urls: int | None) -> tuple[list[Root], bool]:
        """Return the roots that can be gathered, each once, and whether any that were named cannot."""
        check_limits(depth, urls)
        if not names:
            return self._known(depth, urls), False
        wanted: dict[str, Root] = {}
        wrong = False
        with there(self.settings.data) as store:
            plans = runs.plans(store) if store is not None else {}
        for name in names:
            try:
                root = gathered_root(name, self.settings, depth, urls, plans)
                wanted.setdefault(root.url, root)
            except Failure as failure:
                if failure.code == USAGE:
                    raise
                if (missing := self._missing(name)) is not None:
                    # It was gathered before: the run says what is in doubt, or removes it if told to.
                    wanted.setdefault(missing.url, missing)
                    continue
                note(str(failure))
                wrong = True
        return list(wanted.values()), wrong

    def _missing(self, name: str) -> Root | None:
        """Return the root of the data folder that a name means which cannot be read now; None if it knows none."""
        with there(self.settings.data) as store:
            return known_as(name, runs.roots(store) if store is not None else [])

    def _emptied(self) -> bool:
        with there(self.settings.data) as store:
            return store is not None and runs.is_emptied(store, topology_of(self.settings))

    def _empty(self) -> int:
        """Read what is left in the log, without a root to gather: removals of former roots, or imports; return the exit code."""
        with Store(self.settings.data, readonly=True) as store:
            named = bool(gatherer(store))
        if not _run(_settle(self.settings, fetching=True, waiting=named)):
            note("stopped; run again to go on")
            return INTERRUPTED
        note("no roots are left: all their objects are removed" if named else "what was imported has been read; there is no root")
        return 0

    def _known(self, depth: int | None, urls: int | None) -> list[Root]:
        known: list[Root] = []
        found: list[Root] = []
        with there(self.settings.data) as store:
            if store is not None:
                known, plans, paused = runs.roots(store), runs.plans(store), runs.paused(store)
                found = [with_terms(root, plans.get(root.url, Plan()), self.settings) for root in known if root.url not in paused]
        if known and not found:
            raise Failure(f"no ROOT given, and all of {self.settings.data} are paused (harvest roots resume)", 2)
        if not found:
            raise Failure(f"no ROOT given, and none known to {self.settings.data}", 2)
        limits = {name: value for name, value in (("depth", depth), ("urls", urls)) if value is not None}
        return [msgspec.structs.replace(root, **limits) for root in found]

    async def _gather(self, wanted: list[Root], *, named: bool) -> int:
        async with Embedded(self.settings.data, embedded_settings(self.settings), self._log) as runner:
            begun = runs.begin(runner, wanted)
            if named:
                runs.named(runner.store, wanted)
            with Stop() as stop, progress(runner, wanted, quiet=self.quiet) as shown:
                if begun.continued:
                    shown.say("going on with the run that was interrupted")
                await runner.run(stop=stop, seen=shown.seen)
            if stop.asked:
                note("stopped; run again to go on")
                return INTERRUPTED
            runs.finish(runner, begun.run)
            held = held_hosts(runner.store, now_ms(), {root.url for root in wanted})
            table = closing(runner, begun, wanted, shown.seconds, held)
            failed = failures(runner.store, wanted)
            doubted = [doubt for doubt in doubts(runner.store) if doubt.root in {root.url for root in wanted}]
            lost = [(root, reason) for root, reason in failed if root not in {doubt.root for doubt in doubted}]
            self._report(table, lost)
            # A root that was not named comes from an earlier run; if it never answers again, every later run would fail on it.
            hint = "" if named else " (harvest roots remove, if it is not coming back)"
            sources = runs.sources(runner.store)
            doubts_of = (doubt.line + (hint if doubt.example == doubt.root else "") for doubt in doubted)
            for text in (*held_lines(held), *doubts_of, *failure_lines(lost, table.refused, table.rejected, hint, sources)):
                note(text)
            upkeep.upkeep(runner, self.settings.retention)
        if not (self.quiet or self.json) and len(failed) < len(wanted):
            note(SEARCH)
        return int(bool(failed or doubted))

    def _report(self, table: RunReport, lost: Failures) -> None:
        """Output the closing table; for people without the reasons that the lines about these roots state."""
        if self.json:
            put(line(table.as_json()))
            sys.stdout.flush()
        elif not self.quiet:
            refused, rejected = (other_reasons(counts, lost) for counts in (table.refused, table.rejected))
            # What could not be visited may have changed.
            same = table.nothing_changed and not lost
            shown = msgspec.structs.replace(table, refused=refused, rejected=rejected, nothing_changed=same)
            shown.print(verbose=self.verbose)

    async def _serve(self, gateway: Sequence[str] | None) -> None:
        logs, health, metrics = logs_of(self.settings, stage="run"), Health(), Metrics()
        logs.capture()
        async with Embedded(self.settings.data, embedded_settings(self.settings), logs.failed) as runner:
            runs.name(runner)
            known = runs.roots(runner.store)
            watch = Watch(runner, self.settings.worker.stall, logs, health, metrics)
            with Stop() as stop, serve_health(self.settings, health, metrics) as where, self._shown(runner, known, logs) as shown:
                logs.say(f"running on {self.settings.data}, {counted(len(known), 'root')}{where}; stop with Ctrl-C")
                if not known:
                    logs.say("no root is known: harvest roots add ROOT adds one, also beside this service")
                service = upkeep.Service(runner, self.settings.retention)
                with self._watching(runner, shown, logs) as changes:
                    async with self._gateway(gateway, shown, logs) as beside:
                        seen = _each(watch.seen, changes.seen, shown.seen, service.seen, beside)
                        await runner.run(forever=True, stop=stop, seen=seen)
            for text in held_lines(held_hosts(runner.store, now_ms(), {root.url for root in runs.roots(runner.store)})):
                logs.say(text)
            logs.say("stopped")

    def _watching(self, runner: Embedded, shown: Progress, logs: Logs) -> RootWatch:
        """Return what notices changes in local roots; the progress line says what is waited for."""
        say = logs.say if self.quiet or logs.structured or not logs.informs else shown.say
        changes = RootWatch(runner, watch_settings(self.settings), partial(with_terms, settings=self.settings), say)
        shown.idle = changes.idle
        return changes

    def _shown(self, runner: Embedded, roots: Sequence[Root], logs: Logs) -> AbstractContextManager[Progress]:
        # If log lines are JSON objects, no progress is drawn between them: the metrics show it.
        return progress(runner, roots, quiet=self.quiet or logs.structured or not logs.informs)

    @asynccontextmanager
    async def _gateway(self, command: Sequence[str] | None, shown: Progress, logs: Logs) -> AsyncIterator[Callable[[], None]]:
        """Yield a function that starts a gateway, and starts it again when it has ended; stop it at the end."""
        if command is None:
            yield lambda: None
            return
        beside = GatewayProcess(command, logs.say if self.quiet or logs.structured or not logs.informs else shown.say)
        try:
            yield beside.look
        finally:
            # On a thread, so that a second signal ends this process meanwhile.
            await asyncio.to_thread(beside.stop)

    def _log(self, text: str) -> None:
        print(text.rstrip(), file=sys.stderr)


def _each(*calls: Callable[[], None]) -> Callable[[], None]:
    """Return a function that makes all these calls, in order."""

    def call() -> None:
        for each in calls:
            each()

    return call
