"""Sessions of the administration page: a cookie that expires, a token for its forms, and messages that survive a redirect.

Laws:
- All three are HMACs under the token of the page, each for a purpose of its own: none can be used as another, and the token cannot
  be computed from any. Nothing is stored, so that any process of a gateway with the same token accepts them.
- A cookie says itself when it expires. One that was logged out is refused by this process until then.
- Every comparison takes the same time, whatever was presented.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable

LIFETIME = 8 * 3_600
"""Seconds for which a login to the administration page is valid."""
ENDED = 1_000
"""Sessions that were logged out and are remembered; the oldest is forgotten first."""
MAX_MESSAGE = 400
"""Maximum characters of a message that a redirect carries."""
_SESSION = re.compile(r"([0-9]{1,12})\.[0-9a-f]{32}\.[0-9a-f]{64}")


class Sessions:
    """Makes and checks cookies, form tokens and messages of a page by its token, which is not empty. `clock`: returns seconds."""

    def __init__(self, token: str, clock: Callable[[], float] = time.time) -> None:
        self._token, self._clock = token.encode(), clock
        self._ended: OrderedDict[str, None] = OrderedDict()

    def is_token(self, presented: bytes) -> bool:
        """Return whether this is the token."""
        return hmac.compare_digest(presented, self._token)

    def begin(self) -> str:
        """Return the cookie of a new session."""
        value = f"{int(self._clock()) + LIFETIME}.{secrets.token_hex(16)}"
        return f"{value}.{self._mac('session', value)}"

    def is_valid(self, cookie: str) -> bool:
        """Return whether a cookie is one of ours, has not expired and was not logged out."""
        found = _SESSION.fullmatch(cookie)
        if found is None:
            return False
        value, _, mac = cookie.rpartition(".")
        ours = hmac.compare_digest(mac, self._mac("session", value))
        return ours and self._clock() < int(found[1]) and cookie not in self._ended

    def end(self, cookie: str) -> None:
        """Refuse a session from now on."""
        self._ended[cookie] = None
        if len(self._ended) > ENDED:
            self._ended.popitem(last=False)

    def form_token(self, cookie: str) -> str:
        """Return the token that the forms of a session have."""
        return self._mac("form", cookie)

    def is_form_token(self, cookie: str, presented: str) -> bool:
        """Return whether a form is one of this session."""
        return hmac.compare_digest(presented.encode(), self.form_token(cookie).encode())

    def signed(self, cookie: str, message: str) -> dict[str, str]:
        """Return the parameters of a URL that shows a message to this session, and to no other."""
        shown = message[:MAX_MESSAGE]
        return {"message": shown, "mark": self._mac("message", f"{cookie} {shown}")}

    def message(self, cookie: str, text: str, mark: str) -> str:
        """Return the message of such a URL; empty if it was not made for this session."""
        return text if hmac.compare_digest(mark.encode(), self._mac("message", f"{cookie} {text}").encode()) else ""

    def _mac(self, purpose: str, value: str) -> str:
        text = f"harvest administration {purpose}\0{value}".encode("utf-8", "surrogatepass")
        return hmac.new(self._token, text, hashlib.sha256).hexdigest()
