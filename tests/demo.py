"""`make demo`: gathers real input, runs three searches that must find something, and serves the search page on a terminal.

The commands are those of the `harvest` program, printed as they are typed; nothing is imported from it. A search without a hit,
or a command that fails, ends the demonstration with exit code 1.

The input is the sample corpus (written into a temporary folder), the sample web site (served on a free port of 127.0.0.1), and
the machine's own documentation. The latter can be of any size, so each root has a limit: large enough to show work, small enough
to finish in a minute or two.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.samples import make_corpus
from tests.samples.site_server import Site

HARVEST = Path(sys.executable).with_name("harvest")
DOCUMENTATION = (Path("/usr/share/doc"), Path("/usr/share/man"))
MAX_URLS = 1_500
"""Maximum number of URLs taken from each root, folders included."""
SEARCHES = (
    ("A word that many files have:", "license OR licence", ""),
    ("A title and a phrase, on the web site:", 'title:glimpse AND "few per cent"', "glimpse.html"),
    ("A word in an archive in an archive in an archive:", make_corpus.NESTED_WORD, make_corpus.NESTED_PATH),
)
"""For each search: what it shows, the query, and the suffix of a URL that must be among the hits."""


class DemoError(Exception):
    """The program did not behave as the demonstration expects: the fault is the program's, not the machine's."""


def say(text: str) -> None:
    """Print one line of the demonstration and flush it."""
    print(text, flush=True)


def shown(command: list[str]) -> str:
    """Return a command as it is typed in the clone."""
    return shlex.join([".venv/bin/harvest", *command])


def gather(roots: list[str], data: Path) -> None:
    """Gather the roots, with progress printed to the terminal. Raises DemoError."""
    # The sample site is the demonstration's own, so requests may follow each other quickly; loopback addresses need --allow.
    options = ["--data", str(data), "--max-urls", str(MAX_URLS), "--pause", "0.05", "--allow", "127.0.0.0/8"]
    command = ["gather", *roots, *options]
    say("$ " + shown(command))
    code = subprocess.run([HARVEST, *command], check=False).returncode
    if code:
        raise DemoError(f"harvest gather ended with {code}")


def search(what: str, query: str, ends: str, data: Path) -> None:
    """Run one search, print its hits, and check that the expected URL is among them. Raises DemoError."""
    command = ["search", query, "--data", str(data), "--limit", "5"]
    say(f"\n{what}")
    say("$ " + shown(command))
    if subprocess.run([HARVEST, *command], check=False).returncode:
        raise DemoError(f"harvest search {query} failed")
    answer = subprocess.run([HARVEST, *command, "--json"], check=False, capture_output=True, text=True)
    urls = [json.loads(line)["url"] for line in answer.stdout.splitlines()]
    if not urls or not any(url.endswith(ends) for url in urls):
        raise DemoError(f"harvest search {query} gave {len(urls)} hits, none of them {ends or 'anything'}: {urls}")


def serve(data: Path) -> None:
    """Serve the search page until Ctrl-C. Raises DemoError."""
    # Any free port: another page may be served already.
    command = ["serve", "--data", str(data), "--port", "0"]
    say("\nThe same in a browser, until Ctrl-C:")
    say("$ " + shown(command))
    # Ctrl-C is for the page, which ends in order. A child would inherit that a signal is ignored, but inherits no handler.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run([HARVEST, *command], check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)
    if code:
        raise DemoError(f"harvest serve ended with {code}")


def show(folder: Path) -> None:
    """Run the whole demonstration in a temporary folder. Raises DemoError."""
    corpus, data = folder / "corpus", folder / "data"
    make_corpus.write(corpus)
    with Site() as site:
        say(f"Made for the occasion: {corpus}, with archives in archives; {site.url}, a small web site.\n")
        say(f"Of each folder of documentation the first {MAX_URLS:,} URLs are gathered; the rest is told as refused.\n")
        gather([str(corpus), site.url, *(str(path) for path in DOCUMENTATION if path.is_dir())], data)
        if any(path.startswith("/private/") for path in site.asked):
            raise DemoError("robots.txt of the site was not obeyed")
    for what, query, ends in SEARCHES:
        search(what, query, ends, data)
    if sys.stdout.isatty():
        serve(data)


def main() -> int:
    """Run the demonstration and return the exit code."""
    with tempfile.TemporaryDirectory(prefix="harvest-demo-") as folder:
        try:
            show(Path(folder))
        except DemoError as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1
    say("\nThe same on your own files: .venv/bin/harvest gather FOLDER, then .venv/bin/harvest search WORD")
    say("The search page: .venv/bin/harvest serve, at http://127.0.0.1:8380/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
