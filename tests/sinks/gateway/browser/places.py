"""The pages of a gateway over `doubles.SUMMARIES`, each as a path relative to the search page."""

from __future__ import annotations

from tests.sinks.gateway.doubles import SUMMARIES

WHALE, _, MEMBER, NOTES, _, HOSTILE = (f"summary/{one.oid}" for one in SUMMARIES)

PAGES = {
    "start": "./",
    "results": "?q=krill",
    "refined": "?q=krill&type=RawText&not-language=en&from=1999&in=bundle.zip",
    "copies": "?q=leviathan",
    "hostile results": "?q=hostile",
    "no hits": "?q=krill+nantucket",
    "no hits, refined": "?q=krill&from=1800&to=1801",
    "no such page": "?q=krill&page=99",
    "mistake": "?q=krill+AND+(leviathan",
    "left out": "?q=krill&from=yesterday",
    "refused": "?q=a1~3+a2~3+a3~3+a4~3+a5~3+a6~3+a7~3+a8~3+a9~3",
    "spelling": "?q=leviathn",
    "summary": MEMBER,
    "summary with copies": NOTES,
    "hostile summary": HOSTILE,
    "expert": "expert?q=krill+OR+whale",
    "help": "help",
    "status": "status",
    "status with checks": "status?checks=1",
    "why": "why?url=file:///srv/docs/notes.txt",
    "why of nothing": "why?url=file:///nowhere",
    "login": "login",
    "error": f"summary/{'0' * 64}",
}
