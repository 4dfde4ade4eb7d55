"""Mail and news messages: their attachments. The text of a message is not a member; it is part of the message's summary.

A message has a summary of its own (`summarize/text/mail.py`); a message inside a message is a member, and is opened in its turn.
"""

from __future__ import annotations

from collections.abc import Iterator

from processors.essence.formats.container import Budget, Damaged, Member, Reader
from processors.essence.formats.mail.mime import is_text, message
from processors.essence.unnest import Container


def open_mail(body: Reader, budget: Budget) -> Iterator[Member]:
    """Yield the attachments of a message. Raises Damaged for data without a header."""
    head, parts = message(body)
    if not head.fields:
        raise Damaged("no message: it begins without a header")
    for part in parts:
        if part.number and not is_text(part):
            charset = f"; charset={part.charset}" if part.charset else ""
            name = part.filename.replace("\\", "/").rpartition("/")[2]
            yield Member(
                name=name.encode("utf-8", "replace") or b"part-%d" % part.number,
                body=part.body,
                stated=part.type + charset,
            )


UNNESTER = Container(("Mail", "News"), open_mail, summarized=True)
