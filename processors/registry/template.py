"""Registrations: the SOIF template by which a server registers, its checks, and its identity (seed 000, Harvest Server Registry).

    @SERVER { https://h.example/
    name{2}:	cs
    kind{6}:	broker
    title{16}:	Computer science
    time-to-live{6}:	604800
    }

A withdrawal is the same with its URL and name alone, in a collection `@DELETE {`.

Laws:
- A template is untrusted until `parse` has returned it; its mistakes are one bounded line each.
- Who registers under two names, or two URLs, is two servers; the same name and URL again is a renewal.
- Nothing that takes a registration opens its URL; searches over several Brokers do, with the setting `routing.registry` alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from processors.urls import canonical
from schemas import soif
from schemas.soif_summary import DELETE
from schemas.soif_syntax import Attribute, SoifError, Template, TemplateLimits

SERVER = "SERVER"
"""The type of the template."""
TYPE = "Server"
"""The type of the summary of a registration."""
MEDIA = "application/x-harvest-server"
SCHEME = "registration://"
"""Beginning of the URLs under which registrations are objects: nothing fetches them, and no page can name them."""

MAX_STATISTICS = 256_000
"""Maximum bytes of the statistics of a Broker's words (`processors/query/routing/statistics.py`)."""
MAX_BODY = 320_000
"""Maximum bytes of a registration."""
MAX_URL = 1_000
MAX_VALUE = 4_000
"""Maximum bytes of any other value."""
SHORTEST, LONGEST = 60, 28 * 86_400
"""Limits of the time-to-live in seconds."""
KINDS = ("gatherer", "broker")
STATISTICS = "statistics"
REQUIRED = ("name", "kind", "title", "time-to-live")
LIMITS = TemplateLimits(name=64, url=2 * MAX_URL, value=MAX_STATISTICS, attributes=50, template=MAX_BODY, depth=1)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,99}")
_ATTRIBUTE = re.compile(r"[a-z][a-z0-9-]*")
_CONTROL = re.compile(r"[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class RegistrationError(ValueError):
    """A registration is refused; the message is one bounded line for who sent it."""


class Registration(NamedTuple):
    """A server that registers, or withdraws its registration."""

    url: str
    """The server's URL, canonical."""
    name: str
    ttl: int = 0
    """Time-to-live in seconds; 0: it is withdrawn."""
    attributes: tuple[Attribute, ...] = ()
    """The attributes of the template but for its time-to-live, in order."""

    @property
    def object_url(self) -> str:
        """The URL of its object."""
        return SCHEME + hashlib.sha256(f"{self.name}\n{self.url}".encode()).hexdigest()[:32]

    def template(self) -> Template:
        """Return its template."""
        if not self.ttl:
            return Template(SERVER, self.url, (Attribute("name", self.name.encode()),), (DELETE,))
        ttl = Attribute("time-to-live", str(self.ttl).encode())
        return Template(SERVER, self.url, (*self.attributes, ttl))

    def encoded(self) -> bytes:
        """Return its template as SOIF, which `parse` reads. Raises RegistrationError for one that SOIF cannot express."""
        try:
            return soif.dumps([self.template()], LIMITS)
        except ValueError as error:
            raise RegistrationError(f"{error}"[:200]) from None


def is_registration(url: str) -> bool:
    """Return whether the object of a URL is a registration."""
    return url.startswith(SCHEME)


def parse(data: bytes) -> Registration:
    """Return the registration, or the withdrawal, that a template states. Raises RegistrationError."""
    if len(data) > MAX_BODY:
        raise RegistrationError(f"a registration has at most {MAX_BODY:,} bytes")
    try:
        templates = soif.parse(data, LIMITS)
    except SoifError as error:
        raise RegistrationError(f"not SOIF: {error}"[:200]) from None
    if len(templates) != 1 or templates[0].type != SERVER or templates[0].within not in ((), (DELETE,)):
        raise RegistrationError(f"one template @{SERVER} is expected, for a withdrawal within @{DELETE}")
    return _checked(templates[0])


def _checked(template: Template) -> Registration:
    url, name = _url(template.url), _one(template, "name")
    if not _NAME.fullmatch(name):
        raise RegistrationError("name: up to 100 letters, digits, '.', '_', '/' and '-' are expected")
    if template.within:
        return Registration(url, name)
    for required in REQUIRED:
        _one(template, required)
    kinds = template.values("kind")
    if any(kind.decode("utf-8", "replace") not in KINDS for kind in kinds) or len(set(kinds)) != len(kinds):
        raise RegistrationError(f"kind: {' or '.join(KINDS)} is expected, or each once")
    for attribute in template.attributes:
        _check(attribute)
    if (given := template.values("summaries")) and not _is_number(given):
        raise RegistrationError("summaries: one number is expected")
    if len(template.values(STATISTICS)) > 1:
        raise RegistrationError(f"{STATISTICS}: given twice")
    kept = tuple(each for each in template.attributes if each.name != "time-to-live")
    return Registration(url, name, _ttl(_one(template, "time-to-live")), kept)


def _url(text: str) -> str:
    """Return the canonical form of the URL of a server. Raises RegistrationError."""
    try:
        parts = urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc and "#" not in text
    except ValueError:
        good = False
    found = canonical(text) if good else None
    if found is None or len(found) > MAX_URL:
        raise RegistrationError(
            f"URL: http:// or https:// with a host is expected, without name, password and fragment, at most {MAX_URL:,} characters"
        )
    return found


def _one(template: Template, name: str) -> str:
    """Return the value of an attribute that has to be there. Raises RegistrationError."""
    values = [value.decode("utf-8", "replace").strip() for value in template.values(name)]
    if not any(values):
        raise RegistrationError(f"{name}: is missing")
    if len(values) > 1 and name != "kind":
        raise RegistrationError(f"{name}: given twice")
    return values[0]


def _check(attribute: Attribute) -> None:
    """Check one attribute. Raises RegistrationError."""
    name, value = attribute
    if not _ATTRIBUTE.fullmatch(name):
        raise RegistrationError(f"{name[:40]!r}: the name of an attribute has lower-case letters, digits and '-'")
    if name == STATISTICS:
        return
    if len(value) > MAX_VALUE:
        raise RegistrationError(f"{name}: at most {MAX_VALUE:,} bytes are expected")
    try:
        text = value.decode()
    except UnicodeDecodeError:
        raise RegistrationError(f"{name}: text in UTF-8 is expected") from None
    if _CONTROL.search(text):
        raise RegistrationError(f"{name}: a control character")


def _is_number(values: Sequence[bytes]) -> bool:
    return len(values) == 1 and bool(re.fullmatch(rb"[0-9]{1,15}", values[0]))


def _ttl(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", text, re.ASCII) or not SHORTEST <= int(text) <= LONGEST:
        raise RegistrationError(f"time-to-live: from {SHORTEST} to {LONGEST:,} seconds are expected")
    return int(text)
