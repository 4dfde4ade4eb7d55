"""Generates the parts of READMEs that describe code, and the sessions, whose output comes from running their commands.

The text between `<!-- NAME: ... -->` and `<!-- end of NAME -->` is the result of a function of `PARTS`. A `console` block of
`PAGES` is a session: each line that begins with `$ ` is run, in order, in one folder that has the sample corpus; its output
follows it. A block after `<!-- file: PATH -->` is a file of that folder. A line that ends with ` &` starts a server: its output is
its first line, and it is stopped at the end of its session. Where it is shown with the port 8380, it has a free one.

Run as a program (`python -m tests.docs.generate`), it rewrites all of them. The folder is shown as `/srv/demo`; the real folder has
a name of the same length, so that byte counts equal those of a reader who uses that name.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from typer.main import get_command
from typer.testing import CliRunner

from processors.essence.selection import PROFILES, RULES
from processors.identity import oid
from processors.query.language import table as language
from streams.cli.app import app
from streams.config import settings
from streams.kafka.client import acls
from streams.operations.roots_file import table as roots
from streams.telemetry.metrics import table as metrics
from streams.topology.describe import mermaid
from streams.topology.flow import Topology, TopologySettings, topology
from tests.samples import make_corpus

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "streams/cli/README.md", "processors/essence/README.md", "streams/operations/README.md")
"""Pages with sessions, in the order in which they run in one folder: each continues where the previous one ended."""
SHOWN = "/srv/demo"
"""The folder of the sessions, as shown to readers."""

PORT = "8380"
"""The port of servers, as shown to readers."""

GATHERER = "example"
"""The name of the Gatherer in the sessions."""

FAULT = re.compile(r'\bfault\(f?"([^"]+)"\)')
SESSION = re.compile(r"(?ms)^```console\n(.*?)^```$")
FILE = re.compile(r"(?ms)^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$")

PROGRESS = re.compile(r"harvest: [\d,]+ (?:done|read), ")
"""The progress lines of a run, printed every few seconds: on a busy machine, even a short run prints one."""

VARYING = (
    (r"(?m)^harvest: [\d,]+ (?:done|read), .*\n", ""),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", "TIME"),
    (r"\b\d{13}\b", "VERSION"),
    (r"\b\d{10}\.\d{3}\b", "SECONDS"),
    (r"(?m)^(seconds|bytes in|bytes of summaries|summaries to bytes in) .*$", r"\1 MEASURED"),
    (r"\([\d.,]+ times the bytes\)", "(MEASURED)"),
    (r"-[0-9a-f]{8}-[0-9a-f]{12}-[0-9a-f]{12}\b", "-RULES"),
    (r"(object-url|location)\{\d+\}", r"\1{N}"),
    (r"/gatherer/soif/\d+", "/gatherer/soif/PART"),
    (r", \d+\.\d\d\]", ", SCORE]"),
    (r"(?m)^ +\d+\.\d\d  (?=\S)", "  SCORE  "),
    (r"\b[0-9a-f]{64}\b", "OID"),
    (r" {2,}", "  "),
)
"""Patterns of output that differ between runs: progress lines, times, versions, and values that depend on the length of the
folder's name, on the code, on the machine's zlib, or on how far the index has merged its segments.
"""


def flow() -> str:
    """The topology as a Mermaid diagram."""
    return f"```mermaid\n{mermaid(topology(TopologySettings()))}```\n"


def topics() -> str:
    """The topics as a table, with their writers and readers."""
    drawn = topology(TopologySettings())
    rows = (f"| {' | '.join(_topic(drawn, topic.name))} |\n" for topic in drawn.topics if not topic.name.endswith(".ticks"))
    head = "| topic | records | kept | written by | read by | says |\n| --- | --- | --- | --- | --- | --- |\n"
    return head + "".join(rows)


def _topic(drawn: Topology, name: str) -> Iterator[str]:
    topic = drawn.topic(name)
    yield f"`{name}`{' (public)' if topic.public else ''}"
    yield ", ".join(cls.__name__ for cls in topic.carries)
    yield {"compact": "latest of each key", "delete": "for a time", "always": "always"}[topic.keep]
    yield drawn.written_by(topic)
    yield ", ".join(drawn.readers(topic)) or "who asks"
    yield topic.says


def commands() -> str:
    """The commands and subcommands, with the first sentence of each help text."""
    group = get_command(app)
    rows = []
    for name, command in sorted(getattr(group, "commands", {}).items()):
        parts = getattr(command, "commands", {})
        for path, one in sorted((f"{name} {part}", found) for part, found in parts.items()) or [(name, command)]:
            says = re.split(r"(?<=\.)\s|\n\n", one.help or "")[0]
            rows.append(f"| `harvest {path}` | {' '.join(says.split())} |\n")
    return "| command | does |\n| --- | --- |\n" + "".join(rows)


def rules() -> str:
    """The selection rules, and the profiles that apply them."""
    head = f"| rule | not selected | {' | '.join(f'`{name}`' for name in PROFILES)} |\n| --- | --- |{' --- |' * len(PROFILES)}\n"
    applied = {rule: " | ".join("" if rule in off else "yes" for off in PROFILES.values()) for rule in RULES}
    return head + "".join(f"| `{name}` | {says} | {applied[name]} |\n" for name, says in RULES.items())


def options() -> str:
    """The table of all settings."""
    return settings.table()


def rights() -> str:
    """The rights of stages and commands on a cluster with ACLs."""
    return acls.table(topology(TopologySettings()))


def faults() -> str:
    """The named points at which a test can kill the process or fill the disk."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "streams").rglob("*.py")):
        points = FAULT.findall(path.read_text("utf-8")) if path.name != "faults.py" else []
        if points:
            found[path.relative_to(ROOT).as_posix()] = points
    shown = {file: " ".join(f"`{re.sub('{.*}', 'STAGE', point)}`" for point in points) for file, points in found.items()}
    return "| in | points |\n| --- | --- |\n" + "".join(f"| `{file}` | {points} |\n" for file, points in shown.items())


def files(folder: Path) -> str:
    """The modules of a folder, each with the first paragraph of its docstring."""
    rows = []
    for path in sorted(folder.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        said = " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")
        rows += [f"| `{path.name}` | {said} |\n"] if path.name != "__init__.py" else []
    return "| file | content |\n| --- | --- |\n" + "".join(rows)


def _listing() -> Iterator[str]:
    """The paths, from the root, of READMEs that list the files of their folder."""
    for package in ("processors", "schemas", "sinks", "streams"):
        for page in sorted((ROOT / package).rglob("README.md")):
            if "<!-- files: " in page.read_text("utf-8"):
                yield page.relative_to(ROOT).as_posix()


OWN: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"flow": flow},
    "processors/essence/README.md": {"rules": rules},
    "processors/query/README.md": {"language": language},
    "schemas/README.md": {"topics": topics},
    "streams/cli/README.md": {"commands": commands},
    "streams/config/README.md": {"settings": options},
    "streams/embedded/README.md": {"faults": faults},
    "streams/kafka/README.md": {"rights": rights},
    "streams/operations/README.md": {"roots": roots},
    "streams/telemetry/README.md": {"metrics": metrics},
}
PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    path: {**OWN.get(path, {}), **({"files": partial(files, (ROOT / path).parent)} if path in {*_listing()} else {})}
    for path in (*OWN, *(path for path in _listing() if path not in OWN))
}
"""The generated parts of each README, by the name in their marks."""


def filled(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The text of a README with its generated parts rewritten. Raises ValueError if marks are missing or repeated."""
    for name, make in parts.items():
        marks = re.compile(rf"(?s)(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->\n)")
        if len(marks.findall(text)) != 1:
            raise ValueError(f"the marks around {name} are missing, or there are several")
        text = marks.sub(lambda match, make=make: match[1] + make() + match[2], text)  # type: ignore[misc]
    return text


def sessions(text: str) -> list[str]:
    """The commands of all sessions of a text, in order."""
    return [line[2:] for block in SESSION.findall(text) for line in block.splitlines() if line.startswith("$ ")]


def run(command: str, folder: Path) -> str:
    """Run a command in a folder, which must be the working folder, and return its output. Raises ValueError if it fails."""
    if command.startswith("harvest "):
        result = CliRunner().invoke(app, shlex.split(command)[1:], color=False)
        code, output = result.exit_code, result.output
    else:
        done = subprocess.run(["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False)
        code, output = done.returncode, done.stdout + done.stderr
    if code:
        raise ValueError(f"{command}: exit code {code}: {output}")
    output = with_shown_oids(output, str(folder))
    lines = output.splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines if not PROGRESS.match(line))


def with_shown_oids(output: str, folder: str) -> str:
    """Output with the shown folder in place of the real one, and with the OIDs and parts of streams that its URLs have then."""
    for url in re.findall(r"(?m)^location\{\d+\}:\t(\S+)$", output):
        real, shown = oid(GATHERER, url), oid(GATHERER, url.replace(folder, SHOWN))
        output = output.replace(real, shown).replace(f"/soif/{int(real[0], 16)}", f"/soif/{int(shown[0], 16)}")
    output = output.replace(folder, SHOWN)
    for url, name, real in re.findall(r"(?s)@FILE \{ (\S+)\n.*?gatherer-name\{\d+\}:\t(\S+)\n.*?\noid\{64\}:\t(\w+)\n", output):
        output = output.replace(real, oid(name, url))
    return output


def masked(text: str) -> str:
    """Output without the parts that vary; events are sorted, since events of one moment may differ by a millisecond or not."""
    for pattern, word in VARYING:
        text = re.sub(pattern, word, text)
    return re.sub(r"(?m)(?:^TIME .*\n)+", lambda events: "".join(sorted(events[0].splitlines(keepends=True))), text)


@contextmanager
def servers() -> Iterator[Callable[[str], str]]:
    """A function that starts a server by its command and returns its first line of output; all are stopped at the end."""
    with ExitStack() as started:

        def start(command: str) -> str:
            words = [sys.executable, "-m", "streams.cli", *shlex.split(command.removesuffix("&"))[1:]]
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            process = started.enter_context(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment))
            started.callback(process.terminate)
            assert process.stderr is not None
            return process.stderr.readline()

        yield start


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on, with as many digits as the one shown: byte counts have URLs with it."""
    for port in range(int(PORT) + 1, 10_000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no free port")


def played_session(text: str, folder: Path) -> str:
    """A session with its new output. Raises ValueError if a command fails."""
    port = str(free_port())
    with servers() as start:
        ran = []
        for command in sessions(text):
            real = command.replace(PORT, port)
            output = start(real) if command.endswith(" &") else run(real, folder)
            ran.append(f"$ {command}\n{output.replace(port, PORT)}")
    return f"```console\n{''.join(ran)}```"


def played(text: str, folder: Path) -> str:
    """A page with the new output of its sessions, where it changed; `folder` is the working folder, with the sample corpus.

    Raises ValueError if a command fails.
    """
    for path, content in FILE.findall(text):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content)

    def play(match: re.Match[str]) -> str:
        block = played_session(match[0], folder)
        # A session that differs only in times and measurements stays unchanged.
        return match[0] if masked(block) == masked(match[0]) else block

    return SESSION.sub(play, text)


def main() -> int:
    """Rewrite all sessions and generated parts; return the exit code."""
    for name in [name for name in os.environ if name.startswith(settings.PREFIX)]:
        del os.environ[name]
    above = tempfile.gettempdir().rstrip("/")
    folder = Path(above, "demo".rjust(len(SHOWN) - len(above) - 1, "-"))
    folder.mkdir()
    try:
        os.chdir(folder)
        make_corpus.write(folder / "corpus")
        for page in (ROOT / name for name in PAGES):
            page.write_text(played(page.read_text("utf-8"), folder), "utf-8")
    finally:
        subprocess.run(["rm", "-r", "--", str(folder)], check=True)
    for path, parts in PARTS.items():
        page = ROOT / path
        page.write_text(filled(page.read_text("utf-8"), parts), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
