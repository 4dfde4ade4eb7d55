"""Routed searches that ask the gateways which have registered at a Broker of this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from processors.query import parse as parse_query
from processors.registry.template import Registration, parse
from streams.cli.app import app
from streams.cli.common import open_log
from streams.cli.routed import gateway_brokers
from streams.config.settings import load
from streams.operations.registrations import append_registrations
from streams.routing import registered
from tests.processors.registry.samples import server, template
from tests.sinks.gateway.doubles import summary
from tests.streams.routing.gateways import Answer, Good, served

WHALES = [summary(f"http://sea.example/{at}", title=f"whale {at}", more={"md5": f"{at:032x}"}) for at in range(3)]

Run = Callable[..., Result]


@pytest.fixture
def harvest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The program in an empty folder, with a Broker of registrations that searches ask."""
    for variable in [name for name in os.environ if name.startswith("HARVEST_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> Result:
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    run("broker", "create", "registry", "--example", "registry")
    Path("tree").mkdir()
    monkeypatch.setenv("HARVEST_ROUTING_REGISTRY", "registry")
    monkeypatch.setenv("HARVEST_ROUTING_DEADLINE", "30")
    monkeypatch.setenv("HARVEST_FETCH_ALLOW", "127.0.0.0/8")
    return run


@pytest.fixture
def serving() -> Iterator[Callable[[Answer], str]]:
    """A function that starts a gateway, and returns its URL."""
    with ExitStack() as stack:
        yield lambda answer: stack.enter_context(served(answer))


def register(harvest: Run, *registrations: Registration) -> None:
    """Have servers register, and gather."""
    with open_log(load({}, None), writing=True) as log:
        append_registrations(log, registrations, time.time_ns() // 1_000_000)
    harvest("gather", "tree", "--quiet")


def test_registered_gateways_are_asked(harvest: Run, serving: Callable[[Answer], str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A Broker that has registered is asked, under however many names; a Gatherer is not, nor this gateway, in any form."""
    sea, own, gatherer = Good("sea", WHALES), Good("own", WHALES), Good("gatherer", WHALES)
    urls = [serving(each) for each in (sea, own, gatherer)]
    monkeypatch.setenv("HARVEST_REGISTRY_URL", urls[1].replace("http:", "HTTP:"))
    again = parse(template(urls[0], name="other"))
    register(harvest, *(parse(template(url)) for url in urls[:2]), again, parse(template(urls[2], kind="gatherer")))
    found = harvest("search", "--routed", "whale")
    assert f"Broker: {urls[0]}brokers/sea" in found.stdout
    assert "3 found" in found.stderr
    assert [each.asked for each in (sea, own, gatherer)] == [1, 0, 0]
    monkeypatch.delenv("HARVEST_FETCH_ALLOW")
    refused = harvest("search", "--routed", "whale").stderr
    assert f"{urls[0]}: " in refused
    assert "fetch.allow" in refused
    assert sea.asked == 1


def test_registrations_with_the_words_come_first(harvest: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many servers a bounded number is asked: those whose registrations have words of the query, then others."""
    monkeypatch.setattr(registered, "MOST", 3)
    register(harvest, *(server(number, title="Ferns" if number != 7 else "Whales of the north") for number in range(12)))
    brokers = gateway_brokers(load({}, None), "main")
    try:
        wanted = registered.registered_servers(brokers._local, "registry", parse_query("whale"))
    finally:
        brokers.close()
    assert (wanted[0], len(wanted)) == ("http://h7.example/", 3)


def test_registry_that_is_no_broker_is_one_line(harvest: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Broker that is not defined is a mistake of the settings; one that is not filled yet is named, and others are asked."""
    assert "the registry registry: " in harvest("search", "--routed", "whale", code=1).stderr
    monkeypatch.setenv("HARVEST_ROUTING_REGISTRY", "none")
    assert "routing.registry: none: no such Broker (there are main, registry)" in harvest("search", "--routed", "x", code=2).stderr
