"""Requests to OpenSearch: single ones, and bulks whose items are judged one by one.

Laws:
- No error of the client library is raised, only those of `sinks/index/errors.py`. No message contains a password.
- The answer need not come from an index: a gateway in front of it has its own pages. An answer not understood is IndexUnreachable.
- An item of a bulk is applied (2xx, or 409: the index has a newer one), retried (429, 5xx), refused for its content (400, 413),
  or a failure of the index (401, 403, 404, and a closed index: raised). No item affects another.
- A request is retried only if it was answered: after a lost connection the caller asks `offsets` where to continue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from opensearchpy import OpenSearch
from opensearchpy.exceptions import ConnectionError as NoConnection
from opensearchpy.exceptions import ConnectionTimeout, ImproperlyConfigured, SerializationError, TransportError

from sinks.index.errors import IndexMissing, IndexUnreachable, QueryRefused
from sinks.index.opensearch.connection import BoundedConnection, UncheckedName
from sinks.index.opensearch.server import Server, server_of

TIMEOUT = 60.0
"""Maximum seconds to wait for an answer."""
PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Seconds before each retry when the server is too busy; after the last one the caller has to wait."""
CONNECTIONS = 8
REASON = 300
"""Maximum characters of a reason in a message."""
CONFLICT, TOO_LARGE, TOO_MANY = 409, 413, 429
REFUSED = (400, TOO_LARGE)
LOGIN = {401: "index.user, index.password", 403: "the rights of index.user"}
"""What to look at when a server refuses a login, by status code."""
TLS = (
    ("doesn't match", "its certificate is for another name (index.check_hostname)"),
    ("ostname mismatch", "its certificate is for another name (index.check_hostname)"),
    ("IP address mismatch", "its certificate is for another name (index.check_hostname)"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS (index.url)"),
    ("CERTIFICATE_REQUIRED", "it wants a certificate (index.certificate)"),
    ("UNKNOWN_CA", "it does not trust this certificate (index.certificate)"),
    ("CERTIFICATE_VERIFY_FAILED", "its certificate is not trusted (index.ca)"),
)
"""Text in the error of a connection, and what it means: the first that fits, since a name that does not match is a verification

that failed, too.
"""
PAGES = (
    ("No required SSL certificate was sent", "it wants a certificate (index.certificate)"),
    ("The SSL certificate error", "it does not accept this certificate (index.certificate)"),
    ("The plain HTTP request was sent to HTTPS port", "it speaks TLS only (index.url)"),
)
"""Text in the page with which nginx refuses a connection after it was made, and what it means."""
REFUSING = frozenset(range(400, 500)) - {401, 403, 408, TOO_MANY}
"""Status codes of requests that will never be accepted."""
FULL = "validation_exception"
"""Error type (status 400) of a cluster that has its maximum of shards; a deleted shard makes room."""
CLOSED = "index_closed_exception"
"""Error type (status 400) of a closed index, which can be opened again."""
WANTED = "errors,items.*._index,items.*.status,items.*.error.type,items.*.error.reason"
"""Parts of the answer to a bulk that are requested."""


class Bulk(NamedTuple):
    """Result of a bulk: the refused items (by position) with reasons, and the indexes that took the others."""

    refused: Mapping[int, str]
    indexes: frozenset[str]


class _BulkProgress(msgspec.Struct):
    """Results of the items so far."""

    refused: dict[int, str] = {}
    indexes: set[str] = set()
    busy: str = ""
    """Reason of the server for the items to be retried."""


class Answer(dict[str, Any]):
    """JSON answer; a missing key raises IndexUnreachable."""

    name = ""

    def __missing__(self, key: str) -> Any:
        raise IndexUnreachable(f"the server's answer is not from OpenSearch: {self.name}")


class Node:
    """Client of a server or cluster behind one URL (http://user:password@host:port); usable from any thread."""

    def __init__(self, server: str | Server, timeout: float = TIMEOUT) -> None:
        """Set up the client without a request; `timeout`: seconds for each answer.

        Raises IndexUnreachable for an invalid URL, and for certificates that cannot be read.
        """
        server = server_of(server)
        # Until the URL is parsed: text before an @ may be a password.
        self.name = str(server)
        self._timeout = timeout
        # Each failure is raised to the caller and need not be logged as well, unless the log has chosen a level for it.
        if (logger := logging.getLogger("opensearch")).level == logging.NOTSET:
            logger.setLevel(logging.CRITICAL)
        try:
            self.name = server.name
            options = {"connection_class": BoundedConnection if server.check_hostname else UncheckedName, **server.options()}
            self._client = OpenSearch(server.url, timeout=timeout, max_retries=0, pool_maxsize=CONNECTIONS, **options)
        except OSError as error:
            raise IndexUnreachable(f"the certificates for {self.name} cannot be used: {error.strerror or error}") from error
        except (ValueError, ImproperlyConfigured) as error:
            raise IndexUnreachable(f"{self.name} is not a valid index URL") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def ask(self, method: str, path: str, body: Any = None, **parameters: str) -> Any:
        """Return the answer to one request. Raises IndexUnreachable, IndexMissing, QueryRefused."""
        try:
            return self._ask(method, path, body, parameters)
        except TransportError as error:
            raise self._told(error) from error

    def _ask(self, method: str, path: str, body: Any, parameters: Mapping[str, str]) -> Answer:
        try:
            said = self._client.transport.perform_request(method, path, params=dict(parameters), body=body)
        # The client looks for an error's reason in any JSON that comes with it.
        except (SerializationError, AttributeError, RecursionError) as error:
            raise self._strange() from error
        if not isinstance(said, dict):
            raise self._strange()
        answer = Answer(said)
        answer.name = self.name
        return answer

    def _strange(self) -> IndexUnreachable:
        return IndexUnreachable(f"the server's answer is not from OpenSearch: {self.name}")

    def _told(self, error: TransportError) -> Exception:
        if isinstance(error, ConnectionTimeout):
            return IndexUnreachable(f"the index has not answered for {self._timeout:g} s: {self.name}")
        if isinstance(error, NoConnection):
            return IndexUnreachable(f"the index cannot be reached: {self.name}{_meaning(str(error), TLS)}")
        reason = _reason(error)
        if not isinstance(error.info, dict) and (meaning := _meaning(reason, PAGES)):
            return IndexUnreachable(f"the index cannot be reached: {self.name}{meaning}")
        if error.status_code in LOGIN:
            return IndexUnreachable(f"{self.name} refuses this login ({LOGIN[error.status_code]}): {reason}")
        if error.error == CLOSED:
            return IndexUnreachable(f"the index is closed: {self.name}: {reason}")
        if error.status_code == 404 and not isinstance(error.info, dict):
            # A page, not from OpenSearch, whose answers are all objects.
            return self._strange()
        if error.status_code == 404:
            return IndexMissing(f"there is no such index at {self.name}: {reason}")
        if "too many nested clauses" in reason or "too_many_clauses" in reason:
            return QueryRefused("the query has too many words for this index")
        # A page means that a gateway refuses, whatever the request: the query is not at fault.
        if isinstance(error.info, dict) and error.status_code in REFUSING and error.error != FULL:
            return QueryRefused(f"the index refuses the request: {reason}")
        return IndexUnreachable(f"the index is unavailable: {self.name}: {error.status_code}: {reason}")

    def bulk(self, alias: str, items: Sequence[bytes]) -> Bulk:
        """Apply items (an action and a document, a line each) behind an alias. Raises IndexUnreachable, IndexMissing."""
        fate = _BulkProgress()
        pending: Sequence[int] = range(len(items))
        for pause in (0.0, *PAUSES):
            if not pending:
                break
            time.sleep(pause)
            pending = self._round(alias, items, pending, fate)
        if pending:
            raise IndexUnreachable(f"the index is too busy: {self.name}: {fate.busy}")
        return Bulk(fate.refused, frozenset(fate.indexes))

    def _round(self, alias: str, items: Sequence[bytes], pending: Sequence[int], fate: _BulkProgress) -> Sequence[int]:
        """Send all pending items once; return those to be retried."""
        try:
            # If there is no alias no index is created: it would have none of our mappings.
            answer = self._ask(
                "POST",
                f"/{alias}/_bulk",
                b"".join(items[at] for at in pending),
                {"require_alias": "true", "filter_path": WANTED},
            )
        except TransportError as error:
            if error.status_code == TOO_MANY:
                fate.busy = _reason(error)
                return pending
            if error.status_code != TOO_LARGE:
                raise self._told(error) from error
            if len(pending) == 1:
                fate.refused[pending[0]] = "too large for the index"
                return ()
            middle = len(pending) // 2
            return [
                *self._round(alias, items, pending[:middle], fate),
                *self._round(alias, items, pending[middle:], fate),
            ]
        try:
            return self._judged(answer["items"], pending, fate)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._strange() from error

    def _judged(self, answers: Any, pending: Sequence[int], fate: _BulkProgress) -> Sequence[int]:
        """Classify each item by itself; return those to be retried."""
        again = []
        for at, said in zip(pending, answers, strict=True):
            (item,) = said.values()
            status = item["status"]
            if status < 300 or status == CONFLICT:
                fate.indexes.add(item["_index"])
            elif status == TOO_MANY or status >= 500:
                fate.busy = str(item.get("error", {}).get("reason"))[:REASON]
                again.append(at)
            elif status in REFUSED and item["error"]["type"] != CLOSED:
                fate.refused[at] = f"{item['error']['type']}: {item['error']['reason']}"[:REASON]
            else:
                kind = IndexMissing if status == 404 else IndexUnreachable
                raise kind(f"the index cannot be written: {self.name}: {item['error']['reason']}"[:REASON])
        return again


def _meaning(text: str, signs: Sequence[tuple[str, str]]) -> str:
    """Return why a connection failed, and the setting to look at; empty for a text without any of the signs."""
    found = [meaning for sign, meaning in signs if sign in text]
    return f": {found[0]}" if found else ""


def _reason(error: TransportError) -> str:
    """Return the server's reason on one line."""
    told = error.info.get("error") if isinstance(error.info, dict) else None
    causes = told.get("root_cause") if isinstance(told, dict) else None
    first = causes[0] if isinstance(causes, list) and causes else told
    words = first.get("reason") if isinstance(first, dict) else first
    failed = told.get("caused_by") if isinstance(told, dict) and not words else None
    reason = " ".join(str(words or failed or error.error).split())[:REASON]
    return "".join(char if char.isprintable() else " " for char in reason)
