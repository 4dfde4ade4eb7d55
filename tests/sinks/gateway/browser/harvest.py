"""The sample corpus, gathered and served by the real commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.samples import make_corpus

HARVEST = Path(sys.executable).with_name("harvest")
ADDRESS = re.compile(r"search at (http://\S+/); stop")


@contextmanager
def served_corpus(folder: Path) -> Iterator[str]:
    """Write the corpus into a folder, gather it, and serve it with its objects; yields the URL of the search page."""
    make_corpus.write(folder / "corpus")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HARVEST_")}
    environment |= {
        "HARVEST_SERVE_OBJECTS": "true",
        "HARVEST_SERVE_PORT": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    subprocess.run([HARVEST, "gather", "corpus", "--gatherer", "example", "--quiet"], check=True, cwd=folder, env=environment)
    with subprocess.Popen([HARVEST, "serve"], stderr=subprocess.PIPE, text=True, cwd=folder, env=environment) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = ADDRESS.search(line)
            assert found is not None, line
            yield found[1]
        finally:
            process.terminate()
            process.communicate(timeout=60)
