"""Closing of consumers, with an end.

Cause: librdkafka 2.16 waits without end for partitions that were not given back (`rd_kafka_consumer_close`): so it does, without a
broker, if a callback has assigned only some of them. A consumer that has committed loses nothing: its group notices that it is gone
when its session is over.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

CLOSE = 10.0
"""Seconds that a consumer has to leave its group; the broker's answer is waited for up to five of them."""


def close_consumer(close: Callable[[], object], seconds: float = CLOSE) -> bool:
    """Call `close` of a consumer, whose callbacks then run in another thread; false if it has not returned within `seconds`.

    Raises what it raises. The thread of one that has not returned ends with the process.
    """
    failed: list[Exception] = []

    def run() -> None:
        try:
            close()
        except Exception as error:  # noqa: BLE001 - raised below, in the thread of the caller
            failed.append(error)

    thread = threading.Thread(target=run, name="closing", daemon=True)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    if thread.is_alive():
        logging.getLogger("harvest").warning("the client of Kafka has not left its group within %g s; it is left as it is", seconds)
        return False
    return True
