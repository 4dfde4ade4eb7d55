"""Address of an OpenSearch server or cluster, with what a connection to it takes: a login, certificates."""

from __future__ import annotations

import ssl
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Server(NamedTuple):
    """Server behind one URL. Paths are of files in PEM. Its text shows no secret."""

    url: str
    """http://HOST:PORT, https://HOST; a user and a password in it count like those below."""
    user: str = ""
    password: str = ""
    ca: str = ""
    """CA that signs the server's certificate; empty: those of the system."""
    certificate: str = ""
    """Certificate of this client, for servers that want one; empty: none."""
    key: str = ""
    key_password: str = ""
    check_hostname: bool = True
    """Whether the server's certificate must be for the name under which it is addressed."""

    @property
    def name(self) -> str:
        """Scheme and host, without a login. Raises ValueError for an invalid URL."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"

    def options(self) -> dict[str, Any]:
        """Return the options of the client. Raises ValueError for an invalid URL."""
        found: dict[str, Any] = {}
        if self.user:
            found["http_auth"] = (self.user, self.password)
        if urlsplit(self.url).scheme == "https" and (self.ca or self.certificate or not self.check_hostname):
            found["ssl_context"] = self._context()
        return found

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ca or None)
        context.check_hostname = self.check_hostname
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key or None, lambda: self.key_password)
        return context

    def __repr__(self) -> str:
        """Return the address without the login."""
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        """Return the address without the login."""
        return self.url.rpartition("@")[2] if "@" in self.url else self.url


def server_of(given: str | Server) -> Server:
    """Return a server, which may be given by its URL alone."""
    return given if isinstance(given, Server) else Server(given)
