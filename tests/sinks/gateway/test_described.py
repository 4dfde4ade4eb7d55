"""A real server and requests made from what it says of itself: the API as described, and no error of ours anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from starlette.testclient import TestClient

from sinks.gateway.app import application
from sinks.gateway.options import GatewayOptions
from tests.sinks.gateway.admin_double import AdministrationDouble
from tests.sinks.gateway.clients import get
from tests.sinks.gateway.doubles import BrokersDouble, CollectionDouble, Made, RegistryDouble
from tests.sinks.gateway.serving import gateway

DESCRIBED = "status_code_conformance,content_type_conformance,response_schema_conformance"
READERS, OPERATORS = "readers-of-this-gateway", "operators-of-this-gateway"
HEADER = {"Authorization": f"Bearer {OPERATORS}"}
AS_OPERATOR = ("--header", f"Authorization: Bearer {OPERATORS}", "--max-examples", "5")
AS_STRANGER = ("--max-examples", "1")
"""Options for requests without a token, which end at the same few lines."""
READ = ("q", "url", "root", "next", "message", "mark", "checks", "page", "from", "in", "broker")
"""Parameters that pages read by themselves; all of them are sent to each."""
FORM = {"type": "object", "properties": {name: {"type": "string"} for name in ("token", "next", "form")}}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the search page of a gateway with both tokens, a registry, and the administration page."""
    tokens = {"token": READERS, "admin_token": OPERATORS}
    with gateway(tmp_path_factory.mktemp("described") / "index", registry=True, objects=True, **tokens) as (_, url):
        yield url


def fuzz(document: dict[str, Any], url: str, folder: Path, *options: str) -> str:
    """Send requests that are made from a description, and assert that no answer is an error of ours; return what was done."""
    path = folder / "openapi.json"
    path.write_text(json.dumps(document), "utf-8")
    # One worker: Python 3.11 cannot parse sources in two threads at once (CPython #106905), and hypothesis does, for its messages.
    command = ["run", str(path), "--url", url.rstrip("/"), "--workers", "1", "--seed", "1", "--no-color"]
    # Its plugin for pytest is off (pyproject.toml), so it runs as a program.
    done = subprocess.run(
        [sys.executable, "-c", "from schemathesis.cli import schemathesis; schemathesis()", *command, *options],
        capture_output=True, text=True, check=False, cwd=folder, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5_000:]
    return done.stdout


@pytest.mark.slow(40)
@pytest.mark.parametrize("token", [True, False], ids=["token", "no token"])
def test_api_answers_as_it_is_described(running: str, tmp_path: Path, token: bool) -> None:
    """Whatever is asked for: no error of ours, and each answer has a status, a type and a form that OpenAPI names.

    With the token that opens everything, and without any, where each path is refused.
    """
    document = json.loads(get(running, "/openapi.json", headers=HEADER)[1])
    assert {"/registry", "/api/brokers", "/brokers/{name}/soif", "/admin/roots/add"} <= set(document["paths"])
    header = AS_OPERATOR if token else AS_STRANGER
    said = fuzz(document, running, tmp_path, "--checks", f"not_a_server_error,{DESCRIBED}", *header)
    count = len([method for methods in document["paths"].values() for method in methods])
    assert f"{count} selected / {count} total" in said


@pytest.mark.slow(25)
@pytest.mark.filterwarnings("ignore:Duplicate Operation ID")
@pytest.mark.parametrize("token", [True, False], ids=["token", "no token"])
def test_no_page_answers_with_an_error_of_ours(running: str, made: Made, tmp_path: Path, token: bool) -> None:
    """Whatever is asked of the pages, and of what else OpenAPI does not name: no answer is a server's error."""
    document = pages_described(made)
    assert {"/", "/brokers", "/admin", "/admin/roots", "/admin/login", "/login", "/summary/{oid}", "/feed"} <= set(
        document["paths"]
    )
    header = AS_OPERATOR if token else AS_STRANGER
    fuzz(document, running, tmp_path, "--phases", "fuzzing", "--checks", "not_a_server_error", *header)


def pages_described(made: Made) -> dict[str, Any]:
    """Return a description of all routes that OpenAPI leaves out, with the parameters and forms that they read by themselves."""
    options = GatewayOptions(token=READERS, admin_token=OPERATORS, registry=True, objects=True)
    document, described = (openapi(options, made, whole=whole) for whole in (True, False))
    document["paths"] = {path: methods for path, methods in document["paths"].items() if path not in described["paths"]}
    parameters = [{"in": "query", "name": name, "schema": {"type": "string"}} for name in READ]
    for methods in document["paths"].values():
        methods.pop("head", None)  # it is answered as GET
        for method, operation in methods.items():
            known = {each["name"] for each in operation.get("parameters", ())}
            operation["parameters"] = [*operation.get("parameters", ()), *(one for one in parameters if one["name"] not in known)]
            if method == "post":
                operation["requestBody"] = {"content": {"application/x-www-form-urlencoded": {"schema": FORM}}}
    return document


def openapi(options: GatewayOptions, made: Made, *, whole: bool) -> dict[str, Any]:
    """Return what a gateway says of itself; `whole`: also of the routes that it leaves out."""

    def shown(method: Callable[..., None]) -> Callable[..., None]:
        return lambda *given, **named: method(*given, **(named | {"include_in_schema": True}))

    with pytest.MonkeyPatch.context() as patch:
        for name in ("__init__", "add_api_route") if whole else ():
            patch.setattr(APIRouter, name, shown(getattr(APIRouter, name)))
        ports = BrokersDouble(made), AdministrationDouble(), RegistryDouble()
        app = application(options, made.open, CollectionDouble(), *ports)
    with TestClient(app, base_url="http://localhost", headers=HEADER) as client:
        found: dict[str, Any] = client.get("/openapi.json").json()
        return found
