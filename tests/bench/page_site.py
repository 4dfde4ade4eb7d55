"""A synthetic web site for `pages`, and the process that serves it: python -m tests.bench.page_site PAGES HOSTS.

A page has 13 kB of English prose (that of Python's own help) and 20 links: two to new pages (a binary tree, by which every page is
reached) and 18 to others of its host. All are made beforehand, and an answer is one write, so that the server costs a small part of
any crawler. Each host is an address of 127.0.0.0/8 with the same port; it has no robots.txt. The process prints its start pages as
one JSON line and ends when its standard input does.
"""

from __future__ import annotations

import asyncio
import html
import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from pydoc_data.topics import topics

from tests.samples.connection import Connection

SIZE = 13_000
"""Bytes of a page."""
LINKS = 20
MISSING = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n\r\nNot found\n"
HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n"


def page(number: int, pages: int, prose: Sequence[str], chance: random.Random) -> bytes:
    """One page of a host with so many pages."""
    below = [child for child in (2 * number + 1, 2 * number + 2) if child < pages]
    others = [chance.randrange(pages) for _ in range(LINKS - len(below))]
    links = "".join(f'<li><a href="/p/{to}.html">{prose[to % len(prose)][:30]}</a></li>\n' for to in (*below, *others))
    title = f"Page {number}: {chance.choice(prose)[:40]}"
    made = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head>\n<body><h1>{title}</h1>\n<ul>\n{links}</ul>\n"
    while len(made) < SIZE:
        made += f"<p>{chance.choice(prose)[: max(20, SIZE - len(made) - 20)]}</p>\n"
    return f"{made}</body></html>\n".encode()


def paragraphs() -> list[str]:
    """The paragraphs of Python's help, in HTML."""
    found = (" ".join(part.split()) for text in topics.values() for part in text.split("\n\n"))
    return sorted({html.escape(part) for part in found if 200 < len(part) < 2_000})


def site(pages: int, host: int = 0) -> dict[bytes, bytes]:
    """The answers of a host by path; no two hosts have equal pages."""
    chance, prose, answers = random.Random(host), paragraphs(), {}
    for number in range(pages):
        body = page(number, pages, prose, chance)
        answers[b"/p/%d.html" % number] = (HEAD % len(body)).encode() + body
    return answers


def answered(answers: Mapping[bytes, bytes], request: bytes) -> bytes:
    """The answer to a request; `answers`: those of a host, by path."""
    return answers.get(request.split(b" ", 2)[1], MISSING)


async def serve(pages: int, hosts: int) -> None:
    """Serve until the end of standard input."""
    loop = asyncio.get_running_loop()
    port, starts = 0, []
    for number in range(1, hosts + 1):
        address = f"127.0.{number // 250}.{number % 250 + 1}"
        connection = partial(Connection, partial(answered, site(pages, number)))
        server = await loop.create_server(connection, address, port, backlog=512)
        port = server.sockets[0].getsockname()[1]
        starts.append(f"http://{address}:{port}/p/0.html")
    print(json.dumps(starts), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


@contextmanager
def served(pages: int, hosts: int) -> Iterator[list[str]]:
    """Serve a site of so many pages on each of so many hosts, in a process of its own; the start pages."""
    command = [sys.executable, "-m", "tests.bench.page_site", str(pages), str(hosts)]
    root = Path(__file__).resolve().parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.stdin.close()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:3])))
