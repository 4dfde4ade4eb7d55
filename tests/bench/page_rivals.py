"""Other crawlers that `pages` measures, each in its own process: python -I page_rivals.py NAME JSON, the fields of `Task`.

Each one fetches every page that the start pages reach on their own hosts, parses it with lxml, follows its links, and writes URL,
title and text as a JSON line to a file. `aiohttp` only fetches: it is given all URLs and parses nothing. Politeness is off and
robots.txt is not read. It runs in a virtual environment with the crawlers, and imports nothing of Harvest. Prints {"pages": N}.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

TEXT = "string(//body)"


class Task(NamedTuple):
    """Start pages, pages of each host, requests at once, and the file for the results."""

    starts: list[str]
    pages: int
    concurrency: int
    out: str


def scrapy(task: Task) -> int:
    """Run Scrapy with its feed export and its default parser of links."""
    library: Any = import_module("scrapy")
    spider: Any = library.Spider
    hosts = {urlsplit(url).hostname for url in task.starts}
    links = import_module("scrapy.linkextractors").LinkExtractor()

    class Pages(spider):  # type: ignore[misc]  # its class is known only in the environment of the crawlers
        name = "pages"
        start_urls = task.starts
        allowed_domains = sorted(filter(None, hosts))

        def parse(self, response: Any) -> Any:
            yield {"url": response.url, "title": response.xpath("string(//title)").get(), "text": response.xpath(TEXT).get()}
            for link in links.extract_links(response):
                yield library.Request(link.url, self.parse)

    process = import_module("scrapy.crawler").CrawlerProcess(
        {
            "ROBOTSTXT_OBEY": False,
            "DOWNLOAD_DELAY": 0,
            "CONCURRENT_REQUESTS": task.concurrency,
            "CONCURRENT_REQUESTS_PER_DOMAIN": task.concurrency,
            "COOKIES_ENABLED": False,
            "TELNETCONSOLE_ENABLED": False,
            "LOG_LEVEL": "ERROR",
            "FEEDS": {task.out: {"format": "jsonlines"}},
        }
    )
    process.crawl(Pages)
    process.start()
    return sum(1 for _ in Path(task.out).open())


def crawlee(task: Task) -> int:
    """Run Crawlee with Parsel, its fastest parser."""
    return _crawlee(task, "ParselCrawler", lambda page: (page.xpath("string(//title)").get(), page.xpath(TEXT).get()))


def soup(task: Task) -> int:
    """Run Crawlee with BeautifulSoup on lxml, the parser of its documentation's first examples."""
    return _crawlee(task, "BeautifulSoupCrawler", lambda page: (page.title.get_text(), page.body.get_text()))


def _crawlee(task: Task, kind: str, content: Callable[[Any], tuple[str, str]]) -> int:
    """Run a crawler of Crawlee with its queue in memory, and write the results to a file."""
    logging.getLogger("crawlee").setLevel(logging.ERROR)

    async def run() -> int:
        at_once = task.concurrency
        crawler = getattr(import_module("crawlee.crawlers"), kind)(
            storage_client=import_module("crawlee.storage_clients").MemoryStorageClient(),
            concurrency_settings=import_module("crawlee").ConcurrencySettings(
                min_concurrency=at_once, desired_concurrency=at_once, max_concurrency=at_once
            ),
            request_handler_timeout=timedelta(minutes=10),
            respect_robots_txt_file=False,
            configure_logging=False,
        )

        with Path(task.out).open("w") as out:  # noqa: ASYNC230 - every crawler here writes to a file

            async def handle(context: Any) -> None:
                title, text = content(context.soup if hasattr(context, "soup") else context.selector)
                out.write(json.dumps({"url": context.request.url, "title": title, "text": text}) + "\n")
                await context.enqueue_links(strategy="same-hostname")

            crawler.router.default_handler(handle)
            found = await crawler.run(task.starts)
        return int(found.requests_finished)

    return asyncio.run(run())


def aiohttp(task: Task) -> int:
    """Fetch all pages of all hosts and drop them."""
    import aiohttp as library

    async def run() -> int:
        urls = [start.replace("/0.html", f"/{number}.html") for number in range(task.pages) for start in task.starts]
        waiting = iter(urls)
        async with library.ClientSession(connector=library.TCPConnector(limit=0)) as session:

            async def work() -> int:
                done = 0
                for url in waiting:
                    async with session.get(url) as response:
                        await response.read()
                    done += 1
                return done

            return sum(await asyncio.gather(*(work() for _ in range(task.concurrency))))

    return asyncio.run(run())


if __name__ == "__main__":
    found = {"scrapy": scrapy, "crawlee": crawlee, "soup": soup, "aiohttp": aiohttp}[sys.argv[1]](Task(**json.loads(sys.argv[2])))
    print(json.dumps({"pages": found}), flush=True)
