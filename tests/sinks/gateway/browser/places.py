"""The pages of a gateway over `doubles.SUMMARIES`, each as a path relative to the search page."""

from __future__ import annotations

from tests.sinks.gateway.doubles import SUMMARIES

WHALE, _, MEMBER, NOTES, _, HOSTILE = (f"summary/{one.oid}" for one in SUMMARIES)

PAGES = {
    "start": "./",
    "results": "?q=krill",
    "refined": "?q=krill&type=RawText&not-language=en&from=1999&in=bundle.zip",
    "results with copies": "?q=leviathan",
    "hostile results": "?q=hostile",
    "view": "?q=view:sea/dated+ship",
    "no hits": "?q=krill+nantucket",
    "no hits, refined": "?q=krill&from=1800&to=1801",
    "no such page": "?q=krill&page=99",
    "mistake": "?q=hostile+AND+(alert",
    "left out": "?q=hostile&from=yesterday",
    "refused": "?q=" + "+".join(f"leviathan{at}~3" for at in range(20)),
    "spelling": "?q=leviathn",
    "summary": MEMBER,
    "summary with copies": NOTES,
    "hostile summary": HOSTILE,
    "expert": "expert?q=krill+OR+whale",
    "brokers": "brokers",
    "routed": "brokers?q=krill",
    "hostile routed": "brokers?q=hostile",
    "routed mistake": "brokers?q=hostile+AND+(alert",
    "help": "help",
    "status": "status",
    "status with checks": "status?checks=1",
    "why": "why?url=file:///srv/docs/notes.txt",
    "why of nothing": "why?url=file:///nowhere",
    "login": "login",
    "error": f"summary/{'0' * 64}",
}
SHOWN = {
    "start": ".browse a",
    "results": ".hit",
    "refined": ".chips .excluded",
    "results with copies": "details.copies",
    "view": ".views a[aria-current]",
    "no hits": ".none li",
    "no such page": "text=There is no page 99",
    "mistake": ".notice .spot",
    "left out": ".notice li",
    "refused": "text=This query would take too long",
    "spelling": ".spelling a",
    "summary": "text=Download",
    "summary with copies": "text=1 copy",
    "hostile summary": "text=javascript:alert(1)",
    "expert": ".scores td",
    "routed": "text=Without an answer",
    "hostile routed": ".hit",
    "routed mistake": "text=Not searched",
    "status with checks": "text=disk space",
    "why": ".events li",
    "why of nothing": "text=Nothing is known of this URL",
    "error": "text=Error 404",
}
"""What shows that a page is of its kind, as a selector."""
