"""Sessions of the administration page."""

from __future__ import annotations

import hmac
from typing import Any

import pytest

from sinks.gateway.admin.session import ENDED, LIFETIME, MAX_MESSAGE, Sessions

TOKEN = "correct horse battery staple"


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_session_expires() -> None:
    """A cookie is valid for its time, in every process with the token, and not with another token."""
    clock = Clock()
    cookie = Sessions(TOKEN, clock).begin()
    assert Sessions(TOKEN, clock).is_valid(cookie)
    assert not Sessions("another token altogether", clock).is_valid(cookie)
    clock.now += LIFETIME - 1
    assert Sessions(TOKEN, clock).is_valid(cookie)
    clock.now += 1
    assert not Sessions(TOKEN, clock).is_valid(cookie)


def test_changed_cookie_is_refused() -> None:
    """No part of a cookie can be changed: not its time, nor anything else; what is no cookie is refused as well."""
    sessions = Sessions(TOKEN, Clock())
    cookie = sessions.begin()
    for at, letter in enumerate(cookie):
        changed = cookie[:at] + ("1" if letter != "1" else "2") + cookie[at + 1 :]
        assert not sessions.is_valid(changed), at
    for other in ("", ".", "1.2.3", "é" * 140, f"{cookie} ", f"0{cookie}", sessions.form_token(cookie)):
        assert not sessions.is_valid(other)


def test_marks_are_for_one_session_and_one_purpose() -> None:
    """A form token or a message of one session is none of another one, and none is the other."""
    sessions = Sessions(TOKEN, Clock())
    one, other = sessions.begin(), sessions.begin()
    assert one != other
    assert sessions.is_form_token(one, sessions.form_token(one))
    assert not sessions.is_form_token(other, sessions.form_token(one))
    signed = sessions.signed(one, "x" * 1_000)
    assert sessions.message(one, signed["message"], signed["mark"]) == "x" * MAX_MESSAGE
    assert sessions.message(other, signed["message"], signed["mark"]) == ""
    assert sessions.message(one, "changed", signed["mark"]) == ""
    assert not sessions.is_form_token(one, signed["mark"])


def test_ended_sessions_are_bounded() -> None:
    """Those that were logged out are refused; the memory for them is bounded."""
    sessions = Sessions(TOKEN, Clock())
    cookies = [sessions.begin() for _ in range(ENDED + 1)]
    for cookie in cookies:
        sessions.end(cookie)
    assert not sessions.is_valid(cookies[-1])
    assert len(sessions._ended) == ENDED


def test_comparisons_take_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token, cookies, form tokens and messages are compared by hmac.compare_digest and in no other way."""
    sessions = Sessions(TOKEN, Clock())
    cookie = sessions.begin()
    signed = sessions.signed(cookie, "done")
    compared: list[tuple[Any, Any]] = []

    def never(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", never)
    assert not sessions.is_token(TOKEN.encode())
    assert not sessions.is_valid(cookie)
    assert not sessions.is_form_token(cookie, sessions.form_token(cookie))
    assert sessions.message(cookie, "done", signed["mark"]) == ""
    assert len(compared) == 4
