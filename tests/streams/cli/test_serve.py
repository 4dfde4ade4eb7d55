"""`harvest serve`: options, its line, errors at the start, and the index that it opens. The server itself is a double."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from processors.query.facets import FACETS
from schemas.query import Every
from sinks.gateway import server
from sinks.gateway.admin.ports import Administration
from sinks.gateway.brokers.ports import Brokers
from sinks.gateway.brokers.registry import Registry
from sinks.gateway.options import GatewayOptions
from sinks.gateway.ports import Collection, OpenIndex
from sinks.index.errors import IndexMissing, IndexOutdated
from sinks.index.opensearch.index import OpenSearchIndex
from sinks.index.tantivy.index import TantivyIndex
from streams.cli.gateway import index_opener
from streams.config.settings import load
from streams.store.data_folder import index_folder
from streams.telemetry import Logs
from tests.streams.cli.definitions import define

URL = "http://127.0.0.1:8380/"


class Served(NamedTuple):
    """One call of the server."""

    options: GatewayOptions
    open_index: OpenIndex
    collection: Collection
    administration: Administration


class ServerDouble:
    """Takes the place of the server: records its arguments, and either answers and ends, or raises an error."""

    def __init__(self) -> None:
        self.error: OSError | None = None
        self.ask: Callable[[Served], Any] = lambda _: None
        """Called while the server runs."""
        self.answers: list[Any] = []
        self.calls: list[Served] = []

    def __call__(
        self,
        options: GatewayOptions,
        open_index: OpenIndex,
        collection: Collection,
        started: Callable[[str], None],
        brokers: Brokers,
        administration: Administration,
        registry: Registry,
    ) -> None:
        self.calls.append(Served(options, open_index, collection, administration))
        if self.error is not None:
            raise self.error
        started(URL)
        self.answers.append(self.ask(self.calls[-1]))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> ServerDouble:
    """The double of the server, in its place."""
    double = ServerDouble()
    monkeypatch.setattr(server, "serve", double)
    monkeypatch.setattr(Logs, "capture", lambda _: None)  # it changes the handlers of this process
    return double


def count(served: Served) -> int:
    """Return the number of summaries in the index that the server opens."""
    index = served.open_index()
    try:
        return index.count(Every())
    finally:
        index.close()


def test_serve_names_the_address_and_ends_in_order(harvest: Any, tree: Path, served: ServerDouble) -> None:
    """The command says in one line where it answers; the server gets the settings, flags first, and the index that gather made."""
    harvest("gather", tree, "--quiet")
    (harvest.folder / "harvest.toml").write_text("[serve]\nhost = '127.0.0.9'\nrate = 3\nbudget = 7\n")
    served.ask = count
    result = harvest("serve", "--host", "::1", "--port", "0")
    assert result.stderr.splitlines() == [f"harvest: search at {URL}; stop with Ctrl-C", "harvest: stopped"]
    assert result.stdout == ""
    assert served.calls[0].options == GatewayOptions(host="::1", port=0, rate=3, budget=7)
    assert served.answers == [3]


def test_server_gets_its_broker(harvest: Any, served: ServerDouble) -> None:
    """The server gets the name of its Broker, its facets, and whether it has a stream."""
    define("pages", "query = 'type:HTML'\nfacets = ['year']\nstream = true\n")
    harvest("serve", "--broker", "pages")
    harvest("serve")
    found = [(call.options.broker, call.options.stream, call.options.facets) for call in served.calls]
    assert found == [("pages", True, ("year",)), ("main", False, FACETS)]


def test_serve_logs_json_lines(harvest: Any, served: ServerDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    """With log.format json, the line of the address is an object too."""
    monkeypatch.setenv("HARVEST_LOG_FORMAT", "json")
    lines = [line for line in harvest("serve").stderr.splitlines() if line.startswith("{")]
    assert json.loads(lines[0])["event"] == f"search at {URL}; stop with Ctrl-C"
    assert json.loads(lines[0])["stage"] == "serve"


def test_address_is_written_to_a_descriptor(harvest: Any, served: ServerDouble) -> None:
    """A run that passes a descriptor gets the address there once requests are answered, and logs it itself."""
    ours, theirs = os.pipe()
    try:
        result = harvest("serve", "--ready-fd", theirs)
        assert os.read(ours, 100) == f"{URL}\n".encode()
        assert "search at" not in result.stderr
    finally:
        os.close(ours)
        os.close(theirs)


def test_missing_index_is_no_error_at_the_start(harvest: Any, served: ServerDouble) -> None:
    """Without a data folder the command serves, and says in one line what is missing; nothing is created."""
    result = harvest("serve")
    (note, line, _) = result.stderr.splitlines()
    assert note.endswith(": the page says so until the index is there")
    assert line == f"harvest: search at {URL}; stop with Ctrl-C"
    with pytest.raises(IndexMissing):
        served.calls[0].open_index()
    assert served.calls[0].collection.status().roots == ()
    assert list(harvest.folder.iterdir()) == []


def test_index_of_another_version_is_made_anew(
    harvest: Any, tree: Path, served: ServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index that another version made is made anew from its topic before the server starts."""
    harvest("gather", tree, "--quiet")
    opened = TantivyIndex.__init__
    outdated = [IndexOutdated("the index was made by another version")]

    def opening(self: TantivyIndex, *arguments: Any, **options: Any) -> None:
        if outdated:
            raise outdated.pop()
        opened(self, *arguments, **options)

    monkeypatch.setattr(TantivyIndex, "__init__", opening)
    served.ask = count
    result = harvest("serve")
    assert result.stderr.startswith("harvest: the index of main was made by another version: it is made anew from its topic\n")
    assert served.answers == [3]


def test_damaged_index_is_left_to_the_page(harvest: Any, tree: Path, served: ServerDouble) -> None:
    """A damaged index does not keep the command from serving."""
    harvest("gather", tree, "--quiet")
    folder = index_folder(harvest.folder / "harvest-data", "main")
    shutil.rmtree(folder)
    folder.write_bytes(b"no folder")
    assert ": the page says so until the index is there\n" in harvest("serve").stderr
    assert len(served.calls) == 1


@pytest.mark.parametrize("code", [errno.EADDRINUSE, errno.EACCES, errno.EADDRNOTAVAIL])
def test_address_that_is_not_available_is_one_line(harvest: Any, served: ServerDouble, code: int) -> None:
    """A port in use ends the command with exit code 1 and one line that names setting, address and reason."""
    served.error = OSError(code, os.strerror(code))
    result = harvest("serve", "--port", "8381", code=1)
    assert result.stderr.splitlines()[-1] == f"harvest: serve.port: 127.0.0.1:8381: {os.strerror(code)}"
    assert "search at" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--host", "0.0.0.0"), "harvest: serve.host: 0.0.0.0 can be reached from other machines: set serve.token"),
        (("--broker", "none"), "harvest: none: no such Broker"),
        (("--port", "65536"), ""),
    ],
)
def test_usage_errors_end_before_serving(harvest: Any, served: ServerDouble, arguments: tuple[str, ...], line: str) -> None:
    """What cannot be served as it is asked for is a usage error of one line."""
    result = harvest("serve", *arguments, code=2)
    assert result.stderr.startswith(line)
    assert served.calls == []


def test_token_of_the_environment_reaches_the_server_alone(
    harvest: Any, served: ServerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens are handed to the server and printed nowhere; without one of its own there is no administration page."""
    monkeypatch.setenv("HARVEST_SERVE_TOKEN", "a-secret-of-many-letters")
    result = harvest("serve", "--host", "0.0.0.0")
    assert served.calls[0].options.token == "a-secret-of-many-letters"
    assert not served.calls[0].options.admin
    assert "a-secret" not in result.output + result.stderr
    monkeypatch.setenv("HARVEST_SERVE_ADMIN_TOKEN", "another-secret-of-letters")
    result = harvest("serve")
    assert (served.calls[1].options.admin_token, served.calls[1].options.admin) == ("another-secret-of-letters", True)
    assert "another-secret" not in result.output + result.stderr


def test_opensearch_is_asked_with_the_time_out_of_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    """The index on OpenSearch is opened for reading, with serve.timeout for each answer."""
    made: list[dict[str, Any]] = []

    class IndexSpy(OpenSearchIndex):
        def __init__(self, url: str, alias: str, **options: Any) -> None:
            made.append({"url": url, "alias": alias, **options})

    monkeypatch.setattr("sinks.index.opensearch.index.OpenSearchIndex", IndexSpy)
    found = load({"index.url": "http://search.example:9200", "serve.timeout": 1.5, "search.checked": 77}, None, {})
    index_opener(found, "main")()
    assert (str(made[0]["url"]), made[0]["alias"], made[0]["timeout"]) == ("http://search.example:9200", "harvest-main", 1.5)
    assert (made[0]["writable"], made[0]["options"].checked) == (False, 77)
