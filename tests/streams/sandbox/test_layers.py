"""Restrictions of a sealed child, and its channels to the parent."""

from __future__ import annotations

import errno
import json
import os
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.sandbox import landlock, plain, seccomp
from streams.sandbox.values import MAX_CULPRIT, Done, Failed
from streams.sandbox.wire import ProgressPage


@pytest.mark.parametrize(
    "what",
    [
        *("internet", "datagram", "unix", "pair", "read", "write", "list", "mode", "remove", "fork", "execute", "signal"),
        "session",
    ],
)
def test_forbidden_operations_are_refused(sandbox: Any, what: str) -> None:
    """A sealed child is refused sockets, files, other processes and signals with PermissionError, and continues."""
    assert sandbox.run(b"try " + what.encode()) == [([b"PermissionError"], Done())]


def test_limits_are_final(sandbox: Any) -> None:
    """A sealed child cannot set a limit, not even to its current value; Python reports that as ValueError."""
    assert sandbox.run(b"try limits") == [([b"ValueError"], Done())]


def test_every_layer_is_active() -> None:
    """On a kernel that supports them all layers are active, and each is tested before it is reported."""
    found = {layer.name: layer for layer in plain.layers()}
    assert not [layer for layer in found.values() if not layer.active]
    assert {
        "limits",
        "landlock",
        "seccomp",
        "no network",
        "no files",
        "no processes",
        "death with the parent",
        "forkserver",
    } <= set(found)
    assert all(0 < len(layer.detail) <= 250 for layer in found.values())


def test_initial_state_of_a_child(sandbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child has the preload and all codecs, shares frozen pages, leaves SIGINT to the parent, and sees no secrets."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    [(frames, outcome)] = sandbox.run(b"facts")
    facts = json.loads(frames[0])
    assert outcome == Done()
    assert (facts["loaded"], facts["threads"], facts["interrupt"]) == (["loaded"], 1, True)
    assert (facts["koi8"], facts["shift_jis"], facts["idna"]) == ("а", "ハ", "xn--bcher-kva.example")
    assert facts["frozen"] > 10_000
    assert facts["session"] != os.getsid(0)
    assert "AWS_SECRET_ACCESS_KEY" not in facts["environment"]


def test_children_are_silent(sandbox: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """The output of a library in a child does not reach the terminal."""
    sandbox.run(b"print")
    assert "hostile" not in "".join(capfd.readouterr())


def test_anonymous_memory_is_bounded(sandbox: Any) -> None:
    """A child may write an anonymous memory file up to the file size limit; beyond it the write fails."""
    assert [f for f, _ in sandbox.run(b"spool 1000", b"spool 9000000", file_size=1 << 20)] == [[b"written"], [b"refused"]]


def test_import_missing_from_the_preload_fails_with_its_name(sandbox: Any) -> None:
    """An import missing from the preload ends as Failed, with the name of the module."""
    [(_, outcome)] = sandbox.run(b"late")
    assert isinstance(outcome, Failed)
    assert "wave" in outcome.traceback


def verdict(program: bytes, number: int, arch: int, *arguments: int) -> int:
    """Return the filter's result for a system call, by interpreting its few BPF instructions (`man 2 seccomp`, seccomp_data)."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *arguments, *[0] * (6 - len(arguments)))
    steps = list(struct.iter_unpack("=HBBI", program))
    at = accumulator = 0
    while True:
        code, then, otherwise, value = steps[at]
        at += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, value)[0]
        else:
            held = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += then if held else otherwise


@pytest.mark.parametrize("name", ["x86_64", "aarch64"])
def test_filter_is_equivalent_on_both_machines(name: str) -> None:
    """The filter refuses the calls of the table, checks arguments and allows the rest, by the numbers of each machine."""
    machine = seccomp.MACHINES[name]
    me, thread, refused, nowhere = 4242, seccomp.CLONE_THREAD, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
    program = seccomp.program(machine, me)

    def say(number: int, *arguments: int) -> int:
        return verdict(program, number, machine.audit, *arguments)

    at = machine.column
    numbers = [n[at] for n in seccomp.REFUSED.values() if n[at] >= 0]
    assert {say(n) for n in numbers} == {refused}
    assert len(set(numbers)) == len(numbers)
    assert [say(n) for n in {"x86_64": (0, 1, 9, 47, 60, 318), "aarch64": (63, 64, 222, 212, 93, 278)}[name]] == [seccomp.ALLOW] * 6
    assert (say(seccomp.CLONE[at], thread), say(seccomp.CLONE[at], 17), say(seccomp.CLONE3[at])) == (
        seccomp.ALLOW,
        refused,
        nowhere,
    )
    assert (say(seccomp.KILL[at], me, 6), say(seccomp.KILL[at], 1, 0)) == (seccomp.ALLOW, refused)
    assert (say(seccomp.TGKILL[at], me, me, 6), say(seccomp.TGKILL[at], 1, 1, 0)) == (seccomp.ALLOW, refused)
    assert (say(seccomp.PRCTL[at], 15), say(seccomp.PRCTL[at], 1, 0)) == (seccomp.ALLOW, refused)
    limits = [say(seccomp.PRLIMIT[at], 0, 9, new) for new in (0, 0x7F00, 1 << 40)]
    assert limits == [seccomp.ALLOW, refused, refused]
    assert verdict(program, 0, 0x40000003) == refused


def test_x32_calls_are_refused() -> None:
    """Calls by x32 numbers, which share the architecture value of x86_64, are not allowed."""
    machine = seccomp.MACHINES["x86_64"]
    assert verdict(seccomp.program(machine, 1), 0x40000000, machine.audit) != seccomp.ALLOW


@pytest.mark.parametrize(
    ("abi", "size", "bits"), [(1, 8, 13), (2, 8, 14), (3, 8, 15), (4, 16, 15), (5, 16, 16), (6, 24, 16), (7, 24, 16)]
)
def test_landlock_handles_the_rights_of_each_abi(abi: int, size: int, bits: int) -> None:
    """For each ABI the ruleset handles all access rights that the kernel knows, and no others."""
    attributes = landlock.handled(abi)
    assert len(attributes) == size
    assert struct.unpack_from("=Q", attributes)[0] == (1 << bits) - 1


@given(st.lists(st.text(st.characters(codec=None), max_size=50), max_size=5))
def test_progress_text_is_exact(texts: list[str]) -> None:
    """The parent reads the last progress text, lone surrogates included, and detects each report."""
    descriptor = ProgressPage.create()
    child, parent = ProgressPage(descriptor), ProgressPage(descriptor)
    os.close(descriptor)
    for text in texts:
        before = parent.count
        child.say(text)
        assert (parent.text, parent.count != before) == (text, True)
    child.say("é" * MAX_CULPRIT)
    assert set(parent.text) <= {"é", "\ufffd"}


@given(st.binary(max_size=200), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_corrupt_progress_page_is_harmless(garbage: bytes, length: int, slot: int) -> None:
    """Whatever a child writes into the progress page, the parent reads a text of bounded length."""
    descriptor = ProgressPage.create()
    os.pwrite(descriptor, struct.pack("<QQI", 7, slot, length) + garbage, 0)
    page = ProgressPage(descriptor)
    os.close(descriptor)
    assert len(page.text) <= MAX_CULPRIT
