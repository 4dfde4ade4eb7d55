"""The registry of a gateway: who may register, what is taken, and each refusal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from processors.registry.template import MAX_BODY
from sinks.gateway.app import application
from sinks.gateway.guard import COOKIE, session
from sinks.gateway.options import GatewayOptions
from tests.processors.registry.samples import server, template, withdrawal
from tests.processors.registry.test_template import MISTAKES
from tests.sinks.gateway.doubles import CollectionDouble, Made, RegistryDouble

TOKEN = "correct-horse-battery-staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def registry() -> RegistryDouble:
    """Where registrations go."""
    return RegistryDouble()


def asking(made: Made, port: RegistryDouble, **options: object) -> TestClient:
    """Return a client of a gateway."""
    given = GatewayOptions(**({"rate": 0.0, "token": TOKEN, "registry": True} | options))  # type: ignore[arg-type]
    app = application(given, made.open, CollectionDouble(), registry=port)
    return TestClient(app, base_url="http://localhost", client=("127.0.0.1", 50_000), raise_server_exceptions=False)


@pytest.fixture
def ask(made: Made, registry: RegistryDouble) -> Iterator[TestClient]:
    """A client of a registry."""
    with asking(made, registry) as found:
        yield found


def test_registration_is_taken(ask: TestClient, registry: RegistryDouble) -> None:
    """A good template is handed on as it was checked, and answered with one line; a withdrawal too."""
    answer = ask.post("/registry", content=server(1).encoded(), headers=BEARER)
    assert (answer.status_code, answer.text) == (200, "server-1 http://h1.example/ is registered for 3,600 s\n")
    assert ask.post("/registry", content=withdrawal(server(1)).encoded(), headers=BEARER).text.endswith(" is withdrawn\n")
    assert registry.taken == [server(1), withdrawal(server(1))]


@pytest.mark.parametrize("name", [name for name, (data, _) in MISTAKES.items() if len(data) <= MAX_BODY])
def test_mistake_is_400(name: str, ask: TestClient, registry: RegistryDouble) -> None:
    """Each mistake is 400 and one line, and nothing is handed on."""
    data, says = MISTAKES[name]
    answer = ask.post("/registry", content=data, headers=BEARER)
    assert answer.status_code == 400
    assert says in answer.json()["error"]
    assert registry.taken == []


def test_too_long_a_body_is_413(ask: TestClient, registry: RegistryDouble) -> None:
    """It is refused before it is read to its end."""
    pieces = iter([template()[:10], *[b"x" * 65_536] * 100])
    read = []

    def body() -> Iterator[bytes]:
        for piece in pieces:
            read.append(piece)
            yield piece

    answer = ask.post("/registry", content=body(), headers=BEARER)
    assert (answer.status_code, registry.taken) == (413, [])
    assert "at most 320,000 bytes" in answer.json()["error"]


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Cookie": f"{COOKIE}={session(TOKEN)}"}])
def test_nobody_registers_without_the_token(headers: dict[str, str], ask: TestClient, registry: RegistryDouble) -> None:
    """Not without it, with another one, nor with the cookie of the pages, which a form of another site would bring along."""
    answer = ask.post("/registry", content=template(), headers=headers)
    assert (answer.status_code, registry.taken) == (401, [])


@pytest.mark.parametrize("options", [{"registry": False}, {"token": ""}, {"token": "", "registry": False}])
def test_there_is_no_registry_unless_it_is_configured(options: dict[str, object], made: Made, registry: RegistryDouble) -> None:
    """Without the setting, or without a token, nothing is taken."""
    with asking(made, registry, **options) as ask:
        answer = ask.post("/registry", content=template(), headers=BEARER)
    assert (answer.status_code, "serve.registry" in answer.text, registry.taken) == (404, True, [])


def test_other_methods_and_hosts_are_refused(ask: TestClient, registry: RegistryDouble) -> None:
    """It is posted to, under a name of ours."""
    assert ask.get("/registry", headers=BEARER).status_code == 405
    assert ask.put("/registry", content=template(), headers=BEARER).status_code == 405
    assert ask.post("/registry/", content=template(), headers=BEARER, follow_redirects=False).status_code in (404, 405)
    assert ask.post("/registry", content=template(), headers=BEARER | {"Host": "evil.example"}).status_code == 421
    assert registry.taken == []


def test_log_that_cannot_be_written_is_503(ask: TestClient, registry: RegistryDouble) -> None:
    """The server may send it again."""
    registry.fails = "the log cannot be written now"
    answer = ask.post("/registry", content=template(), headers=BEARER)
    assert (answer.status_code, answer.json()["error"]) == (503, registry.fails)
    assert "Retry-After" in answer.headers
