"""FTP servers of the tests: pyftpdlib and proftpd, which have MLSD, and vsftpd, which has LIST only.

Strategy: vsftpd and proftpd are Debian's packages, unpacked with the libraries that the machine does not have, not installed: no
service starts or changes. pyftpdlib comes from the package index, by its hash. Each is a child process of the test, as its user,
and serves a folder to anonymous.

Law: they listen on 127.0.0.1 only, and write nothing outside the folder of the test.

`python -m tests.servers.ftp` installs them into .venv/servers/ftp; make does so before the tests.
"""

from __future__ import annotations

import fcntl
import grp
import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from tests.deploy.debian import run, unpack
from tests.deploy.tools import ToolError
from tests.servers.artefacts import HERE
from tests.servers.artefacts import HOME as SERVERS
from tests.servers.process import free_port, running

HOME = SERVERS / "ftp"
LOCK = HERE / "pyftpdlib.lock"
PROGRAMS = {"vsftpd": "usr/sbin/vsftpd", "proftpd-core": "usr/sbin/proftpd"}
MAX_LIBRARIES = 30
Name = Literal["pyftpdlib", "proftpd", "vsftpd"]

VSFTPD = """
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
local_enable=NO
anon_root={tree}
run_as_launching_user=YES
ftp_username=daemon
seccomp_sandbox=NO
pasv_address=192.0.2.1
xferlog_enable=YES
log_ftp_protocol=YES
vsftpd_log_file={folder}/commands
"""
PROFTPD = """
ServerName test
ServerType standalone
DefaultAddress 127.0.0.1
Port {port}
SocketBindTight on
UseIPv6 off
User {user}
Group {group}
RootLogin on
ModulePath {home}/modules
PidFile {folder}/pid
ScoreboardFile {folder}/scoreboard
SystemLog {folder}/log
TransferLog none
WtmpLog off
DelayEngine off
UseReverseDNS off
RequireValidShell off
UseFtpUsers off
AuthPAM off
AuthOrder mod_auth_file.c
AuthUserFile {folder}/users
MasqueradeAddress 192.0.2.1
LogFormat commands "%r"
ExtendedLog {folder}/commands ALL commands
"""
HASH = "$6$harvest$lr3YCckMqHIctgdQHqZluDLJLDfwcZFZ9XX7hOXJ8gZmbfYvuASpN85tsEkw4fTDK0bs9NrHBn1Zy8FuT20Ul1"
"""Of the password that the adapter sends: the default user agent, and an at sign (`openssl passwd -6`)."""
_COMMAND = re.compile(r'(?m)(?:FTP command: Client "[^"]*", "|<- |^)([A-Z]{3,4})(?: ([^"\n]*))?"?$')


class FtpServer(NamedTuple):
    """A running server: its URL, the folder that it serves, the file in which it logs commands, and its process ID."""

    url: str
    tree: Path
    log: Path
    pid: int

    def commands(self, *verbs: str) -> list[str]:
        """Return the commands so far, in order, without the folder: those with one of some verbs, if any are given."""
        text = self.log.read_text("utf-8", "replace") if self.log.exists() else ""
        found = ((verb, (path or "").replace(f"{self.tree}", "") or "/") for verb, path in _COMMAND.findall(text))
        return [f"{verb} {path}" for verb, path in found if not verbs or verb in verbs]


@contextmanager
def ftp_server(name: Name, folder: Path, tree: Path) -> Iterator[FtpServer]:
    """Serve `tree` to anonymous; the server works in `folder`, which exists. Raises ServerError, ToolError."""
    home, port = install(), free_port()
    values = {"port": port, "tree": tree, "folder": folder, "home": home}
    values |= {"user": pwd.getpwuid(os.getuid()).pw_name, "group": grp.getgrgid(os.getgid()).gr_name}
    environment = {"LD_LIBRARY_PATH": str(home / "lib")}
    log = folder / "commands"
    if name == "pyftpdlib":
        environment = {"PYTHONPATH": str(home / "python")}
        command = [sys.executable, "-W", "ignore", "-m", "pyftpdlib", "-D", "-i", "127.0.0.1", "-p", str(port), "-d", str(tree)]
        log = folder / "server.log"
    elif name == "vsftpd":
        (folder / "vsftpd.conf").write_text(VSFTPD.format(**values), "utf-8")
        command = [str(home / "vsftpd"), str(folder / "vsftpd.conf")]
    else:
        (folder / "proftpd.conf").write_text(PROFTPD.format(**values), "utf-8")
        users = folder / "users"
        users.touch(0o600)
        users.write_text(f"anonymous:{HASH}:{os.getuid()}:{os.getgid()}::{tree}:/bin/sh\n", "utf-8")
        command = [str(home / "proftpd"), "--nodaemon", "--config", str(folder / "proftpd.conf")]
    with running(command, folder, lambda: _greets(port), environment=environment) as pid:
        yield FtpServer(f"ftp://127.0.0.1:{port}/", tree, log, pid)


def _greets(port: int) -> bool:
    """Whether the server greets a client."""
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as client:
            return client.recv(3) == b"220"
    except OSError:
        return False


# ---- installation ----------------------------------------------------------------------------------------------------


def install() -> Path:
    """Install the servers if they are missing, and return their folder. Raises ToolError."""
    SERVERS.mkdir(parents=True, exist_ok=True)
    with (SERVERS / "ftp.lockfile").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not HOME.is_dir():
            print("installing FTP servers into .venv/servers", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=SERVERS) as folder:
                new = Path(folder, "ftp")
                (new / "lib").mkdir(parents=True)
                _install_pyftpdlib(new / "python")
                for package, program in PROGRAMS.items():
                    _install_program(package, program, new, Path(folder))
                new.rename(HOME)
    return HOME


def _install_pyftpdlib(target: Path) -> None:
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "install", *options, "--requirement", str(LOCK), "--target", str(target)]
    answer = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if answer.returncode:
        raise ToolError(f"pip did not bring pyftpdlib:\n{answer.stderr[-2000:]}")


def _install_program(package: str, program: str, new: Path, work: Path) -> None:
    """Unpack a program and its modules, and libraries that it depends on until it has all."""
    folder = work / package
    folder.mkdir()
    (unpacked,) = unpack(package, [program], folder)
    target = new / unpacked.name
    shutil.copy(unpacked, target)
    modules = folder / "unpacked" / "usr" / "lib" / unpacked.name
    if modules.is_dir():
        shutil.copytree(modules, new / "modules")
    waiting, taken = _libraries(folder), set[str]()
    while _lacks(target, new / "lib"):
        package = next((name for name in waiting if name not in taken), "")
        if not package or len(taken) > MAX_LIBRARIES:
            raise ToolError(f"libraries of {target.name} are missing:\n{_lacks(target, new / 'lib')}")
        taken.add(package)
        if "ok installed" in run(["dpkg-query", "-W", "-f", "${Status}", package]):
            continue
        folder = work / package
        folder.mkdir(exist_ok=True)
        unpack(package, [], folder)
        for path in (folder / "unpacked").rglob("*.so.*"):
            if path.is_file():
                shutil.copy(path, new / "lib" / path.name)
        waiting += _libraries(folder)


def _libraries(folder: Path) -> list[str]:
    """Return the libraries that a downloaded package depends on."""
    (package,) = folder.glob("*.deb")
    depends = run(["dpkg-deb", "--field", str(package), "Depends"])
    names = (alternative.split("|")[0].split("(")[0].split(":")[0].strip() for alternative in depends.split(","))
    return [name for name in names if name.startswith("lib")]


def _lacks(program: Path, libraries: Path) -> str:
    """Return the libraries that the loader does not find, "" if it finds all."""
    environment: Mapping[str, str] = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    command: Sequence[str] = ["ldd", str(program)]
    said = subprocess.run(command, check=False, env=dict(environment), capture_output=True, text=True).stdout
    return "\n".join(line for line in said.splitlines() if "not found" in line)


if __name__ == "__main__":
    try:
        install()
    except ToolError as error:
        print(f"tests.servers.ftp: {error}", file=sys.stderr)
        sys.exit(1)
