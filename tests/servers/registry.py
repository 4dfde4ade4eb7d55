"""The part of a Schema Registry's HTTP interface that Avro clients use, in memory, for the duration of a `with` block.

It stores schemas, their IDs and the compatibility level of a subject, and checks no compatibility. The real registry is not on
Maven Central. Requests and responses are those of the documented interface (Schema Registry, "API reference").
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote


class Registry:
    """`url` is its address; `subjects` the schema IDs by subject; `compatibility` the level by subject."""

    def __init__(self) -> None:
        self.schemas: list[str] = []
        self.subjects: dict[str, list[int]] = {}
        self.compatibility: dict[str, str] = {}
        registry = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.answer(registry.get(unquote(self.path).partition("?")[0]))

            def do_POST(self) -> None:
                self.answer(registry.post(unquote(self.path).partition("?")[0], self.sent()))

            def do_PUT(self) -> None:
                registry.compatibility[unquote(self.path).removeprefix("/config/")] = self.sent()["compatibility"]
                self.answer({"compatibility": "set"})

            def sent(self) -> Any:
                return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

            def answer(self, what: dict[str, Any] | None) -> None:
                body = json.dumps(what or {"error_code": 40403, "message": "not found"}).encode()
                self.send_response(200 if what else 404)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def get(self, path: str) -> dict[str, Any] | None:
        number = path.removeprefix("/schemas/ids/")
        known = number.isdigit() and 0 < int(number) <= len(self.schemas)
        return {"schema": self.schemas[int(number) - 1], "schemaType": "AVRO"} if known else None

    def post(self, path: str, sent: Any) -> dict[str, Any] | None:
        _, _, subject, *versions = path.split("/")
        known = self.subjects.get(subject, [])
        number = next((n for n, text in enumerate(self.schemas, 1) if json.loads(text) == json.loads(sent["schema"])), 0)
        if versions:
            if not number:
                self.schemas.append(sent["schema"])
                number = len(self.schemas)
            known = self.subjects.setdefault(subject, [])
            known += [number] if number not in known else []
        if number not in known:
            return None
        return {"id": number, "subject": subject, "version": known.index(number) + 1, "schema": self.schemas[number - 1]}

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
