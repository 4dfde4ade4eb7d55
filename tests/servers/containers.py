"""The servers as containers, where a Docker engine answers.

Law: whether containers are used is decided once, when the servers are installed (`taken`), and holds until the next installation:
an engine that comes and goes does not change what the tests run on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Any

from tests.servers.artefacts import HOME
from tests.servers.process import STEP, TRIES, ServerError

if TYPE_CHECKING:
    from testcontainers.core.container import DockerContainer

MARK = HOME / "containers"


def engine() -> bool:
    """Whether a Docker engine answers."""
    return _ask(lambda client: client.ping())


def pull(*images: str) -> bool:
    """Pull images; return whether an engine answered and has them now. The answer is stored for `taken`."""
    MARK.unlink(missing_ok=True)
    there = _ask(lambda client: [client.images.pull(image) for image in images])
    if there:
        MARK.parent.mkdir(parents=True, exist_ok=True)
        MARK.touch()
    return there


def _ask(question: Callable[[Any], object]) -> bool:
    """Whether an engine answers and the request succeeds."""
    from docker import from_env
    from docker.errors import DockerException

    try:
        with closing(from_env()) as client:
            question(client)
    except DockerException:
        return False
    return True


def taken() -> bool:
    """Whether the servers were installed as images."""
    return MARK.is_file()


@contextmanager
def answering(container: DockerContainer, ready: Callable[[], bool]) -> Iterator[None]:
    """Run a container; inside the block its server answers. Raises ServerError."""
    from docker.errors import DockerException

    with ExitStack() as running:
        try:
            running.enter_context(container)
        except DockerException as error:
            raise ServerError(f"the container of {container.image} did not start: {error}") from error
        for _ in range(TRIES):
            if ready():
                break
            time.sleep(STEP)
        else:
            said = b"\n".join(container.get_logs()).decode("utf-8", "replace")[-3000:]
            raise ServerError(f"the server of {container.image} did not come up:\n{said}")
        yield
