"""A double of what the administration page acts on: roots in memory, and each call recorded."""

from __future__ import annotations

from collections.abc import Sequence

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
from tests.sinks.gateway.doubles import HOSTILE


class AdministrationDouble:
    """Implements `sinks.gateway.admin.ports.Administration`."""

    def __init__(self) -> None:
        self.known = {"file:///srv/docs/": False, f"file:///srv/{HOSTILE}": True}
        """Roots, and whether each is paused."""
        self.calls: list[tuple[str, ...]] = []
        """Actions that were carried out, with their arguments."""
        self.lines: list[str] = []
        """Lines of the log."""
        self.begun: Task | None = None
        self.unreadable = False
        self.saved: list[AdminView] = []
        """Views that were saved."""

    def roots(self) -> tuple[Sequence[AdminRoot], Sequence[str]]:
        if self.unreadable:
            raise CollectionError("the log cannot be read")
        return [AdminRoot(url, paused, "depth 3") for url, paused in sorted(self.known.items())], ["roots: 7 more"]

    def add_root(self, name: str, depth: int | None, max_urls: int | None) -> str:
        if "no-such-host" in name:
            raise AdministrationError(f"{name}: no such host")
        self.known[name] = False
        return self._done("add", name, str(depth), str(max_urls))

    def pause_root(self, name: str) -> str:
        self._look_up(name)
        self.known[name] = True
        return self._done("pause", name)

    def resume_root(self, name: str) -> str:
        self._look_up(name)
        self.known[name] = False
        return self._done("resume", name)

    def remove_root(self, name: str) -> str:
        self._look_up(name)
        del self.known[name]
        return self._done("remove", name)

    def brokers(self) -> Sequence[AdminBroker]:
        hostile = AdminBroker("odd", HOSTILE, HOSTILE, (HOSTILE, "summaries"), 60, None, (HOSTILE,))
        return [AdminBroker("main", "", "", ("summaries",), None, 1_234), hostile]

    def rebuild(self, broker: str) -> str:
        if self.begun is not None:
            raise AdministrationError("a rebuild is running", 409)
        self.begun = Task(f"harvest index rebuild --broker {broker}", "running", "", 1_000)
        return self._done("rebuild", broker)

    def task(self) -> Task | None:
        return self.begun

    def views(self) -> Sequence[AdminView]:
        return [AdminView("main", "computing/unix", "unix"), AdminView("main", HOSTILE, HOSTILE), *self.saved]

    def save_view(self, broker: str, path: str, query: str) -> str:
        if path == "computing/unix":
            raise AdministrationError(f"{path}: is there already")
        self.saved.append(AdminView(broker, path, query))
        return self._done("save", broker, path, query)

    def rejections(self) -> tuple[Sequence[RejectionGroup], Sequence[str]]:
        one = AdminRejection("file:///srv/docs/bad.pdf", "essence", "damaged", 1_000)
        odd = AdminRejection(HOSTILE, HOSTILE, HOSTILE, 1_000)
        return [RejectionGroup("damaged", 2, [one]), RejectionGroup(HOSTILE, 1, [odd])], [HOSTILE]

    def retry(self, name: str) -> str:
        return self._done("retry", name)

    def retry_reason(self, reason: str) -> str:
        return self._done("retry reason", reason)

    def registrations(self) -> tuple[Sequence[Registration], Sequence[str]]:
        return [Registration("registry", "https://h.example/", "A Broker"), Registration(HOSTILE, HOSTILE, HOSTILE)], [HOSTILE]

    def sizes(self) -> Sequence[Size]:
        return [Size("store.sqlite", 123_456), Size(HOSTILE, 1)]

    def log(self, text: str) -> None:
        self.lines.append(text)

    def _look_up(self, name: str) -> None:
        if name not in self.known:
            raise AdministrationError(f"{name}: not a root")

    def _done(self, *call: str) -> str:
        self.calls.append(call)
        return f"done: {' '.join(call)}"
