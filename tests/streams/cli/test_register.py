"""`harvest register`: what is sent, when it is renewed, and a registry on this machine that finds it."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from processors.registry.template import MAX_STATISTICS, Registration, parse
from streams.cli.administration import SettingsAdministration
from streams.cli.common import Failure, open_log
from streams.cli.registering import RETRY, LogRegistry, Renewals, registration_of, send
from streams.clock import now_ms
from streams.config.settings import SettingsError, load
from streams.operations.registrations import append_registrations
from tests.processors.registry.samples import server, template

TOKEN = "correct-horse-battery-staple"
HERE = {"registry.url": "http://h.example"}
PATIENCE = 120.0


@contextmanager
def answering(status: int, text: str = "", **headers: str) -> Iterator[tuple[str, list[tuple[str, str | None, bytes]]]]:
    """A server that answers each POST so; yields its URL and the requests: path, Authorization, body."""
    asked: list[tuple[str, str | None, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, self.headers["Authorization"], body))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{made.server_port}/", asked
        finally:
            made.shutdown()
            thread.join()


def test_registration_states_the_gateway(harvest: Any, tree: Path) -> None:
    """Name, kinds, title, Broker, number of summaries, version; of a Broker that accepts some, it is a Broker alone."""
    harvest("gather", tree, "--gatherer", "host", "--quiet")
    harvest("broker", "create", "pages", "--query", "type:HTML", "--title", "All pages")
    found = load({"data": Path("harvest-data"), **HERE, "registry.contact": "us@h.example", "registry.ttl": 60}, None, {})
    made = registration_of(found, "main")
    values = {name: made.template().values(name) for name in ("kind", "title", "broker", "server-gatherer", "summaries", "contact")}
    assert (made.url, made.name, made.ttl) == ("http://h.example/", "host/main", 60)
    assert values == {
        "kind": (b"gatherer", b"broker"), "title": (b"host/main",), "broker": (b"main",), "server-gatherer": (b"host",),
        "summaries": (b"3",), "contact": (b"us@h.example",),
    }  # fmt: skip
    assert made.template().values("version")[0].startswith(b"harvest ")
    pages = registration_of(found, "pages").template()
    assert (pages.values("kind"), pages.values("title"), pages.values("summaries")) == ((b"broker",), (b"All pages",), ())
    assert registration_of(found, "main", withdraw=True) == Registration("http://h.example/", "host/main")


def test_statistics_are_sent_if_asked_for(harvest: Any, tree: Path) -> None:
    """With registry.statistics, the registration has those of the words; a registry keeps them, and does not search them."""
    harvest("gather", tree, "--quiet")
    found = load({"data": Path("harvest-data"), **HERE, "registry.statistics": True}, None, {})
    (statistics,) = registration_of(found, "main").template().values("statistics")
    assert statistics.startswith(b"harvest-words 1\n")
    largest = parse(template(statistics=b"zebra \xff" + bytes(MAX_STATISTICS - 7)))
    LogRegistry(found).take(largest)
    harvest("gather", tree, "--quiet")
    assert harvest("search", "--count", "zebra").stdout == "0\n"
    (hit,) = harvest.lines("search", "type:Server")
    assert f"statistics{{{MAX_STATISTICS}}}" in harvest("show", hit["oid"]).stdout


def test_settings_that_do_not_suffice_are_one_line(harvest: Any) -> None:
    """A missing URL, a wrong one, a missing token; none of the lines shows a secret."""
    assert "registry.url: missing" in harvest("register", "http://127.0.0.1:1/", code=2).stderr
    assert "no registry is named" in harvest("register", "--url", "http://h.example/", code=2).stderr
    assert "the URL of a gateway is expected" in harvest("register", "ftp://h/", "--url", "http://h.example/", code=2).stderr
    for flags, says in (
        ({"registry.url": "h.example"}, "registry.url: the URL of a gateway"),
        ({"registry.servers": ("http://r/",), "registry.url": "http://h/"}, "registry.token: missing"),
        ({"registry.servers": ("http://r/",), "registry.token": TOKEN}, "registry.url: missing"),
        ({"registry.servers": (f"http://x:{TOKEN}@r/",)}, "registry.servers: "),
        ({"registry.token": 17}, "registry.token: "),
        ({"registry.ttl": 4 * 7 * 86_400 + 1}, "registry.ttl: "),
    ):
        with pytest.raises(SettingsError) as caught:
            load(flags, None, {})
        assert says in str(caught.value)
        assert TOKEN not in str(caught.value)


def test_registry_without_a_token_is_not_served(harvest: Any) -> None:
    """It would take registrations of anybody."""
    Path("harvest.toml").write_text("[serve]\nregistry = true\n")
    assert "serve.registry: servers register with a token" in harvest("serve", code=2).stderr


def test_sent_under_the_token() -> None:
    """The template is posted to the registry of the gateway, below its path, with the token in a header; its answer is returned."""
    with answering(200, "server-1 is registered\n") as (url, asked):
        assert send(f"{url}deep/", TOKEN, server(1)) == f"{url}deep/: server-1 is registered"
    assert asked == [("/deep/registry", f"Bearer {TOKEN}", server(1).encoded())]


@pytest.mark.parametrize(
    ("status", "text", "says"),
    [
        (400, '{"error": "title: is missing"}', "400: title: is missing"),
        (404, "There is no registry here (serve.registry).\n", "404: There is no registry here"),
        (500, "", "500: no reason"),
        (401, '{"other": 1}', '401: {"other": 1}'),
        (502, "\x1b[2J<html>\nsecond", "502: "),
        (400, f'{{"error": "your token is {TOKEN}"}}', "400: your token is ..."),
    ],
)
def test_refusal_is_one_line(status: int, text: str, says: str) -> None:
    """Whatever a registry answers, the failure is a line without the token and without controls."""
    with answering(status, text) as (url, _), pytest.raises(Failure) as caught:
        send(url, TOKEN, server(1))
    line = str(caught.value)
    assert says in line
    assert TOKEN not in line
    assert line.isprintable()


def test_refused_token_names_its_setting() -> None:
    """Where the registry refuses the token, the line says with which setting of ours it is sent."""
    with answering(401, "A token is needed (serve.token).\n") as (url, _), pytest.raises(Failure) as caught:
        send(url, "", server(1))
    assert str(caught.value).endswith("A token is needed (serve.token). (here: registry.token_file or HARVEST_REGISTRY_TOKEN)")


def test_redirect_is_not_followed() -> None:
    """The token goes to the gateway that was named, and to no other."""
    with answering(200) as (other, asked), answering(307, "", Location=other) as (url, _):
        with pytest.raises(Failure):
            send(url, TOKEN, server(1))
        assert asked == []


@pytest.mark.parametrize(
    ("url", "token"),
    [
        ("http://127.0.0.1:1/", TOKEN),
        ("http://127.0.0.1:1/ä/", TOKEN),
        ("http://x y/", TOKEN),
        ("http://127.0.0.1:1/", f"{TOKEN}\n"),
    ],
)
def test_registry_that_cannot_be_asked_is_one_line(url: str, token: str) -> None:
    """A registry that does not listen, or whose URL or token no request can have, is a failure without the token."""
    with answering(200) as (found, _), pytest.raises(Failure, match=r"^http://") as caught:
        send(found if token != TOKEN else url, token, server(1))
    assert TOKEN not in str(caught.value)


class Registries:
    """Two registries by a clock of the test."""

    def __init__(self, ttl: int) -> None:
        self.now = 0.0
        self.sent: list[tuple[float, str]] = []
        self.said: list[str] = []
        self.silent: set[str] = set()
        self.renewals = Renewals(("a", "b"), ttl, self.take, self.said.append, lambda: self.now)

    def take(self, name: str) -> None:
        """Take a registration."""
        self.sent.append((self.now, name))
        if name in self.silent:
            raise Failure(f"{name}: refused")

    def until(self, end: float) -> None:
        """Renew what is due until some time."""
        while self.now < end:
            self.now += self.renewals.renew()


def test_renewed_at_half_of_the_time_to_live() -> None:
    """At once, and then after each half of the time-to-live; only the first is logged."""
    both = Registries(3600)
    both.until(5000)
    assert both.sent == [(at, name) for at in (0.0, 1800.0, 3600.0) for name in ("a", "b")]
    assert both.said == ["registered at a", "registered at b"]


def test_failure_is_repeated_sooner_and_logged_once() -> None:
    """A registry that is silent is asked again soon, so that nothing expires; the other one has its own times."""
    both = Registries(3600)
    both.silent = {"a"}
    both.until(3 * RETRY)
    both.silent = set()
    both.until(3 * RETRY + 1)
    assert both.sent == [(0, "a"), (0, "b"), (RETRY, "a"), (2 * RETRY, "a"), (3 * RETRY, "a")]
    assert both.said == ["not registered: a: refused", "registered at b", "registered at a"]


def test_registration_is_an_event_of_the_log(harvest: Any) -> None:
    """What the gateway takes is in the log of the data folder, which is made if it is not there."""
    LogRegistry(load({"data": Path("harvest-data")}, None, {})).take(server(1))
    (line,) = harvest.lines("cat", "crawl")
    assert (line["value"]["kind"], line["value"]["root"]["ttl"]) == ("registered", 3600)


def test_silent_server_expires(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server is in the registry and on the administration page until its time-to-live is over, then neither."""
    harvest("broker", "create", "registry", "--query", "type:Server")
    found = load({"data": Path("harvest-data")}, None, {})
    LogRegistry(found).take(server(1, time_to_live=86_400))
    harvest("gather", tree, "--quiet")
    administration = SettingsAdministration(found, None, print)
    assert administration.registrations() == ([("registry", "http://h1.example/", "Server number1")], [])
    monkeypatch.setattr(now_ms, "_wall", now_ms._wall + 86_400 * 10**9)
    harvest("gather", tree, "--quiet")
    assert administration.registrations() == ([], [])
    assert harvest("search", "--count", "type:Server").stdout == "0\n"
    values = [line["value"] for line in harvest.lines("cat", "summaries") if "registration" in line["value"]["object_url"]]
    assert values[-1]["reason"] == "expired"


# ---- two gateways ----------------------------------------------------------------------------------------------------


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


@contextmanager
def running(harvest: Any, *command: str) -> Iterator[tuple[str, list[str]]]:
    """Run a command with a gateway; yields its URL and the lines that it writes."""
    process, lines = harvest.start(*command, "--port", "0"), list[str]()
    reader = threading.Thread(target=lambda: lines.extend(raw.decode() for raw in process.stderr))
    reader.start()
    try:
        until(lambda: any("search at " in line for line in lines) or process.poll() is not None)
        (line,) = [line for line in lines if "search at " in line]
        yield line.partition("search at ")[2].split(";")[0], lines
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
        reader.join()
        process.stdout.close()
        process.stderr.close()


def found(url: str, query: str) -> list[dict[str, Any]]:
    """Return the hits of a query on a gateway; none while it has no index."""
    asked = urllib.request.Request(f"{url}api/search?q={quote(query)}", headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return list(json.load(answer)["hits"])
    except urllib.error.HTTPError:
        return []


@pytest.mark.slow(40)
def test_two_gateways(harvest: Any, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gateway registers at another's registry, by itself and by the command; it is found by type:Server, and nobody dials it."""
    harvest("gather", tree, "--data", "cs", "--gatherer", "cs-host", "--quiet")
    harvest("broker", "create", "registry", "--query", "type:Server", "--data", "directory")
    with socket.create_server(("127.0.0.1", 0)) as dialled:
        dialled.setblocking(False)
        public = f"http://127.0.0.1:{dialled.getsockname()[1]}/"
        monkeypatch.setenv("HARVEST_SERVE_TOKEN", TOKEN)
        monkeypatch.setenv("HARVEST_SERVE_REGISTRY", "true")
        with running(harvest, "run", "--serve", "--data", "directory") as (registry, _):
            monkeypatch.setenv("HARVEST_REGISTRY_TOKEN", TOKEN)
            monkeypatch.setenv("HARVEST_REGISTRY_URL", public)
            monkeypatch.setenv("HARVEST_REGISTRY_SERVERS", registry)
            monkeypatch.setenv("HARVEST_REGISTRY_TITLE", "Sea stories")
            with running(harvest, "serve", "--data", "cs") as (_, lines):
                until(lambda: len(found(registry, "type:Server")) == 1)
                until(lambda: any(f"registered at {registry}" in line for line in lines))
            (hit,) = found(registry, "type:Server title:sea summaries:3")
            assert (hit["url"], hit["title"], hit["type"]) == (public, "Sea stories", "Server")
            told = harvest("register", "--data", "cs", "--name", "other").stderr
            assert told == f"harvest: {registry}: other {public} is registered for 604,800 s\n"
            until(lambda: len(found(registry, "type:Server")) == 2)
            assert TOKEN not in told + "".join(lines)
            listed = [line["url"] for line in harvest.lines("search", "--broker", "registry", "stories", "--data", "directory")]
            assert listed == [public, public]
            harvest("register", "--data", "cs", "--name", "other", "--withdraw")
            until(lambda: len(found(registry, "type:Server")) == 1)
            monkeypatch.setenv("HARVEST_REGISTRY_TOKEN", "x" * 20)
            assert "401: " in harvest("register", "--data", "cs", code=1).stderr
        with pytest.raises(BlockingIOError):
            dialled.accept()
    assert parse(registration_of(load({"data": Path("cs")}), "main").encoded()).name == "cs-host/main"


@pytest.mark.slow(30)
def test_many_servers_are_searched_as_any_others(harvest: Any, tree: Path) -> None:
    """10,000 registrations in one batch are summarized and indexed beside files, and each is found by what it states."""
    harvest("broker", "create", "registry", "--query", "type:Server")
    with open_log(load({"data": Path("harvest-data")}, None, {}), writing=True) as log:
        append_registrations(log, (server(number, time_to_live=604_800) for number in range(10_000)), now_ms())
    harvest("gather", tree, "--quiet")
    assert harvest("search", "--broker", "registry", "--count", "type:Server reports").stdout == "10000\n"
    (hit,) = harvest.lines("search", "--broker", "registry", "title:number4711")
    assert hit["url"] == "http://h4711.example/"
    assert "Ishmael" in harvest("search", "Ishmael").stdout
    lines = harvest("why", server(4711).object_url).stdout
    assert "registered" in lines
    assert "requested" not in lines
    assert "server-4711" in harvest("show", "--broker", "registry", server(4711).object_url).stdout
