import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from processors.essence.recognize import recognize
from processors.essence.summarize import Facts, Found, SummaryError, summarize

SAMPLES = Path(__file__).parents[3] / "samples" / "summarize"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that regenerates expected files."""
    parser.addoption("--regenerate", action="store_true", help="write the expected summaries and the table of types anew")


@pytest.fixture(scope="session")
def regenerate(request: pytest.FixtureRequest) -> bool:
    """Whether expected files are to be written."""
    return bool(request.config.getoption("--regenerate", default=False))


@pytest.fixture(scope="session")
def samples() -> Path:
    """Folder of the golden samples."""
    return SAMPLES


@pytest.fixture(scope="session")
def summary() -> Callable[..., Found]:
    """Function that recognizes and summarizes bytes; an `error` is added to the attributes, as essence does."""

    def make(name: bytes, body: bytes, url: str = "http://example.org/dir/x", stated: str = "", charset: str = "") -> Found:
        kind = recognize(name, body[:65_536], stated)
        found = Found()
        try:
            summarize(Facts(name, url, kind.type, kind.content_type, len(body), 0, charset), io.BytesIO(body), found)
        except SummaryError as error:
            found.attributes["error"] = [str(error)]
        return found

    return make


@pytest.fixture(scope="session")
def golden(summary: Callable[..., Found]) -> Callable[..., dict[str, Any]]:
    """Function from a sample, its file name and the type that its source states, if any, to its summary in JSON form."""

    def make(sample: Path, name: str, stated: str = "") -> dict[str, Any]:
        body = sample.read_bytes()
        kind = recognize(name.encode(), body[:65_536], stated)
        found = summary(name.encode(), body, f"http://example.org/samples/{name}", stated)
        text = {k: [v if isinstance(v, str) else v.decode("latin-1") for v in vs] for k, vs in found.attributes.items()}
        links = [{"url": link.url, "text": link.text} for link in found.links]
        whole: dict[str, Any] = {"name": name} | ({"stated": stated} if stated else {})
        whole |= {"type": kind.type, "content_type": kind.content_type, "attributes": text, "links": links}
        return dict(json.loads(json.dumps(whole)))

    return make
