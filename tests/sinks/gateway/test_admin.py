"""The administration page: each action, who may ask for it, and what is shown and logged."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, urlsplit

import pytest
from starlette.testclient import TestClient

from sinks.gateway.admin.actions import ACTIONS
from sinks.gateway.admin.journal import KEPT, MAX_VALUE, STRANGERS, Journal
from sinks.gateway.admin.routes import COOKIE, PAGES
from tests.sinks.gateway.admin_double import AdministrationDouble
from tests.sinks.gateway.doubles import HOSTILE

Client = Callable[..., TestClient]
TOKEN = "correct horse battery staple"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
HERE = {"Origin": "http://localhost"}
ROOT = "file:///srv/docs/"
FORMS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "roots/add": ({"root": "http://new.example/", "depth": "2", "max-urls": ""}, ("add", "http://new.example/", "2", "None")),
    "roots/pause": ({"root": ROOT}, ("pause", ROOT)),
    "roots/resume": ({"root": ROOT}, ("resume", ROOT)),
    "roots/remove": ({"root": ROOT}, ("remove", ROOT)),
    "brokers/rebuild": ({"broker": "main"}, ("rebuild", "main")),
    "views/save": (
        {"broker": "main", "path": "computing/", "title": "shells", "query": "bash OR zsh"},
        ("save", "main", "computing/shells", "bash OR zsh"),
    ),
    "rejected/retry": ({"reason": "damaged"}, ("retry reason", "damaged")),
}
"""A form of each action, and the call that it causes."""
EVERY = pytest.mark.parametrize("action", FORMS)


def log_in(ask: TestClient, **headers: str) -> str:
    """Log in, and return the token of the session's forms."""
    answer = ask.post("/admin/login", data={"token": TOKEN}, headers=HERE | headers, follow_redirects=False)
    assert answer.status_code == 303
    return form_token(ask.get("/admin/roots").text)


def form_token(page: str) -> str:
    """Return the token of the forms of a page."""
    found: str
    (found,) = set(re.findall(r'name="form" value="([0-9a-f]{64})"', page))
    return found


def post(ask: TestClient, action: str, form: Mapping[str, str], headers: Mapping[str, str] = HERE) -> tuple[int, str]:
    """Return status and text of the answer to a form."""
    answer = ask.post(f"/admin/{action}", data=dict(form), headers=dict(headers), follow_redirects=False)
    return answer.status_code, answer.text or answer.headers["location"]


def test_every_action_has_a_form_here() -> None:
    """The tests below are made with every action that there is."""
    assert set(FORMS) == {f"{ask.page}/{ask.name}" for ask in ACTIONS}


@EVERY
def test_action_is_done_for_a_session(action: str, client: Client, administration: AdministrationDouble) -> None:
    """A form of a session does what it says, and leads to its page, which shows so once to that session and to no other."""
    ask = client(token=TOKEN)
    form, call = FORMS[action]
    status, where = post(ask, action, form | {"form": log_in(ask)})
    assert (status, urlsplit(where).path) == (303, f"/admin/{action.partition('/')[0]}")
    assert administration.calls == [call]
    assert f"done: {' '.join(call)}" in ask.get(where).text
    other = client(token=TOKEN)
    log_in(other)
    assert "done: " not in other.get(where).text


@EVERY
def test_action_is_done_for_a_bearer(action: str, client: Client, administration: AdministrationDouble) -> None:
    """A program needs nothing but the token, and gets one line."""
    form, call = FORMS[action]
    assert post(client(token=TOKEN), action, form, BEARER) == (200, f"done: {' '.join(call)}\n")
    assert administration.calls == [call]


@EVERY
def test_action_is_refused(action: str, client: Client, administration: AdministrationDouble) -> None:
    """Without a session, with the cookie of the search pages, from another site, without a form of the session, by another name."""
    ask, form = client(token=TOKEN), FORMS[action][0]
    assert post(ask, action, form)[0] == 401
    ask.post("/login", data={"token": TOKEN}, follow_redirects=False)
    assert ask.get("/api/search").status_code == 200
    assert post(ask, action, form)[0] == 401
    assert post(ask, action, form, HERE | {"Authorization": "Bearer wrong"})[0] == 401
    token = log_in(ask)
    for origin in (
        {},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:81"},
        {"Origin": "http://["},
    ):
        assert post(ask, action, form | {"form": token}, origin)[0] == 403, origin
    for wrong in ({}, {"form": ""}, {"form": "0" * 64}, {"form": "é"}, {"form": log_in(client(token=TOKEN))}):
        assert post(ask, action, form | wrong)[0] == 403, wrong
    assert post(ask, action, form | {"form": token}, {"Origin": "http://evil.example", "Host": "evil.example"})[0] == 421
    assert post(ask, action, form, BEARER | {"Origin": "http://evil.example"})[0] == 403
    assert administration.calls == []


def test_there_is_no_page_without_a_token(client: Client, administration: AdministrationDouble) -> None:
    """Without a token of its own every path of it is 404 with one line that names the setting; other pages are answered."""
    ask = client(token=TOKEN, admin_token="")
    for path in ("/admin", "/admin/", "/admin/login", *(f"/admin/{name}" for name in PAGES)):
        answer = ask.get(path, headers=BEARER)
        assert (answer.status_code, answer.text.count("\n")) == (404, 1)
        assert "serve.admin_token" in answer.text
    assert {post(ask, action, form, BEARER)[0] for action, (form, _) in FORMS.items()} == {404}
    assert ask.get("/", headers=BEARER).status_code == 200
    assert "/admin" not in ask.get("/", headers=BEARER).text
    assert administration.calls == []


def test_token_of_readers_does_not_open_the_page(client: Client, administration: AdministrationDouble) -> None:
    """The token of all clients opens neither pages nor actions; that of the page opens the search, too."""
    ask, readers = client(token="readers-of-this-gateway", admin_token=TOKEN), {"Authorization": "Bearer readers-of-this-gateway"}
    assert ask.get("/api/search", headers=readers).status_code == 200
    assert {ask.get(f"/admin/{name}", headers=readers).status_code for name in PAGES} == {401}
    assert {post(ask, action, form, readers)[0] for action, (form, _) in FORMS.items()} == {401}
    given = {"token": "readers-of-this-gateway"}
    assert ask.post("/admin/login", data=given, headers=HERE, follow_redirects=False).status_code == 403
    assert administration.calls == []
    assert {ask.get(path, headers=BEARER).status_code for path in ("/api/search", "/admin")} == {200}


def test_page_needs_no_token_of_readers(client: Client) -> None:
    """Where everybody may search, the page has its token all the same."""
    ask = client(admin_token=TOKEN)
    assert (ask.get("/api/search").status_code, ask.get("/admin").status_code) == (200, 401)
    assert ask.get("/admin", headers=BEARER).status_code == 200


@pytest.mark.parametrize("page", ["", "/why?url=x", "/roots/remove?root=x", *(f"/{name}" for name in PAGES)])
def test_pages_are_for_those_who_are_logged_in(page: str, client: Client) -> None:
    """Others are led to the login and back, or get 401; a basic password is none, since browsers send it for other sites too."""
    ask = client(token=TOKEN)
    path = f"/admin{page}"
    answer = ask.get(path, headers={"Accept": "text/html"}, follow_redirects=False)
    assert answer.status_code == 303
    assert dict(parse_qsl(urlsplit(answer.headers["location"]).query)) == {"next": path}
    assert ask.get(path).status_code == 401
    assert ask.get(path, auth=("any", TOKEN)).status_code == 401
    assert ask.get(path, headers=BEARER).status_code == 200
    log_in(ask)
    answer = ask.get(path)
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "same-origin"


def test_cookie_is_strict(client: Client) -> None:
    """No script reads the cookie, no other site has it sent, it is for this page alone, and behind https for https alone."""
    for base, secure in (("http://localhost", False), ("https://localhost", True)):
        answer = client(token=TOKEN, base_url=base).post(
            "/admin/login", data={"token": TOKEN, "next": "/admin/log"}, headers={"Origin": base}, follow_redirects=False
        )
        assert answer.headers["location"] == "/admin/log"
        parts = {part.strip().lower() for part in answer.headers["set-cookie"].split(";")}
        assert {"httponly", "samesite=strict", "path=/admin"} <= parts
        assert ("secure" in parts) is secure
        assert TOKEN not in answer.headers["set-cookie"]


def test_login_is_for_our_own_form(client: Client, administration: AdministrationDouble) -> None:
    """A wrong token is 403, also behind another site's form; both are in the log, without what was presented."""
    ask = client(token=TOKEN)
    assert post(ask, "login", {"token": "wrong token"})[0] == 403
    assert post(ask, "login", {"token": TOKEN}, {"Origin": "http://evil.example"})[0] == 403
    assert post(ask, "login", {"token": TOKEN}, {})[0] == 403
    assert COOKIE not in ask.cookies
    assert len(administration.lines) == 3
    assert "wrong token" not in "".join(administration.lines)
    for other in ("//evil.example/", "https://evil.example/"):
        assert post(ask, "login", {"token": TOKEN, "next": other})[1] == "/"


def test_logout_ends_the_session(client: Client) -> None:
    """After it the cookie opens nothing, wherever it was copied to; another site cannot log anybody out."""
    ask = client(token=TOKEN)
    token = log_in(ask)
    cookie = ask.cookies[COOKIE]
    assert post(ask, "logout", {"form": token}, {"Origin": "http://evil.example"})[0] == 403
    assert ask.get("/admin").status_code == 200
    assert post(ask, "logout", {"form": token}) == (303, "/admin/login")
    assert ask.get("/admin", headers={"Cookie": f"{COOKIE}={cookie}"}).status_code == 401


def test_mistake_is_one_line_on_the_form(client: Client, administration: AdministrationDouble) -> None:
    """Nothing is changed by it, and the form has what was typed."""
    ask = client(token=TOKEN)
    token = log_in(ask)
    for form, line in (
        ({"root": "http://no-such-host/"}, "http://no-such-host/: no such host"),
        ({"root": ""}, "root: is empty"),
        ({"root": "http://a/\x00b"}, "root: has control characters"),
        ({"root": "x" * 9_000}, "root: has control characters, or is longer"),
        ({"root": "http://a/", "depth": "-2"}, "depth: a whole number from -1 on is needed"),
        ({"root": "http://a/", "max-urls": "many"}, "max-urls: a whole number from 0 on is needed"),
    ):
        status, text = post(ask, "roots/add", form | {"form": token})
        assert status == 422
        assert line.lower() in html.unescape(text).lower()
    assert 'value="many"' in post(ask, "roots/add", {"root": "http://a/", "max-urls": "many", "form": token})[1]
    assert post(ask, "roots/pause", {"root": "http://other/", "form": token})[0] == 422
    assert post(ask, "rejected/retry", {"form": token})[0] == 422
    assert administration.calls == []
    assert post(ask, "roots/add", {"root": "http://no-such-host/"}, BEARER) == (422, "http://no-such-host/: no such host\n")


def test_one_rebuild_runs_at_a_time(client: Client) -> None:
    """A second one is refused with 409; the page shows the first."""
    ask = client(token=TOKEN)
    form = {"broker": "main", "form": log_in(ask)}
    assert post(ask, "brokers/rebuild", form)[0] == 303
    status, text = post(ask, "brokers/rebuild", form)
    assert (status, "A rebuild is running" in text, "harvest index rebuild --broker main" in text) == (409, True, True)


def test_log_that_cannot_be_read_is_an_error_page(client: Client, administration: AdministrationDouble) -> None:
    """The answer is 503 with the reason."""
    administration.unreadable = True
    answer = client(token=TOKEN).get("/admin/roots", headers=BEARER)
    assert (answer.status_code, "The log cannot be read" in answer.text) == (503, True)


def test_removal_is_confirmed(client: Client) -> None:
    """The link of a root leads to a page that names it and has the form."""
    ask = client(token=TOKEN)
    log_in(ask)
    link = re.search(r'href="(/admin/roots/remove\?root=file[^"]*docs/)"', ask.get("/admin/roots").text)
    assert link is not None
    page = ask.get(html.unescape(link[1])).text
    assert f'name="root" value="{ROOT}"' in page
    assert 'action="/admin/roots/remove" method="post"' in page


@pytest.mark.parametrize(
    "page", ["", "/why?url={}", "/roots/remove?root={}", "?message={}&mark=x", *(f"/{name}" for name in PAGES)]
)
def test_hostile_text_is_inert(page: str, client: Client) -> None:
    """Names, queries, reasons, and what a URL says are escaped, without controls and marks of direction."""
    ask = client(token=TOKEN)
    token = log_in(ask)
    post(ask, "roots/pause", {"root": HOSTILE, "form": token})
    text = ask.get(f"/admin{page.format('<script>alert(1)</script>')}").text
    assert "<script>alert" not in text
    assert 'onmouseover="' not in text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)


def test_actions_are_logged(client: Client, administration: AdministrationDouble) -> None:
    """Time, client, action, arguments and outcome are one line, refused ones too, and on the page; secrets are not."""
    ask = client(token=TOKEN)
    token = log_in(ask)
    post(ask, "roots/pause", {"root": ROOT, "form": token})
    post(ask, "roots/pause", {"root": "http://other/", "form": token})
    post(ask, "roots/pause", {"root": ROOT, "form": "0" * 64})
    lines = [re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", line) for line in administration.lines]
    assert lines == [
        "administration: TIME 127.0.0.1 log in: done",
        f"administration: TIME 127.0.0.1 roots pause root='{ROOT}': done: done: pause {ROOT}",
        "administration: TIME 127.0.0.1 roots pause root='http://other/': refused: http://other/: not a root",
        "administration: TIME 127.0.0.1 roots pause: refused: this form is not of your session: load the page again",
    ]
    page = ask.get("/admin/log").text
    assert page.index("not of your session") < page.index("not a root") < page.index("log in")
    assert token not in "".join(lines)


def test_journal_is_bounded_and_escaped() -> None:
    """The latest actions are kept, values are cut, and no value begins a line of its own or turns the direction of text."""
    lines: list[str] = []
    journal = Journal(lines.append)
    for at in range(KEPT + 1):
        journal.note(f"client\x1b]0;x\x07{HOSTILE}", "act", {"at": str(at), "none": "", "long": "x" * 10_000}, f"a\nb{HOSTILE}")
    assert len(journal.latest()) == KEPT
    assert journal.latest()[0].arguments.startswith(f"at='{KEPT}' long='xxx")
    assert len(lines[0]) < 3 * MAX_VALUE
    assert all(line.isprintable() for line in lines)


def test_strangers_push_no_action_out_of_the_log(client: Client) -> None:
    """However often somebody without the token asks, what was done is still on the page, and a few refusals beside it."""
    ask = client(token=TOKEN)
    assert post(ask, "roots/remove", {"root": ROOT}, BEARER)[0] == 200
    for _ in range(KEPT):
        assert post(ask, "roots/add", {})[0] == 401
        assert post(ask, "login", {"token": "wrong token"})[0] == 403
    shown = ask.get("/admin/log", headers=BEARER).text
    assert "done: remove" in shown
    assert shown.count("refused: ") == STRANGERS


def test_root_path_is_before_every_address(client: Client) -> None:
    """Behind a proxy, redirects, forms and the cookie have its path."""
    ask = client(token=TOKEN, root_path="/find")
    answer = ask.get("/find/admin/roots", headers={"Accept": "text/html"}, follow_redirects=False)
    assert answer.headers["location"] == "/find/admin/login?next=%2Fadmin%2Froots"
    answer = ask.post("/find/admin/login", data={"token": TOKEN, "next": "/admin/roots"}, headers=HERE, follow_redirects=False)
    assert answer.headers["location"] == "/find/admin/roots"
    assert "Path=/find/admin;" in answer.headers["set-cookie"]
    page = ask.get("/find/admin/roots").text
    assert 'action="/find/admin/roots/add"' in page
    answer = ask.post(
        "/find/admin/roots/pause", data={"root": ROOT, "form": form_token(page)}, headers=HERE, follow_redirects=False
    )
    assert answer.headers["location"].startswith("/find/admin/roots?message=")


def test_actions_are_described_as_api(client: Client) -> None:
    """OpenAPI has the actions with the fields of their forms, where there is the page, and none of its pages."""
    paths = client(token=TOKEN).get("/openapi.json", headers=BEARER).json()["paths"]
    described = {path: list(methods) for path, methods in paths.items() if path.startswith("/admin")}
    assert described == {f"/admin/{ask.page}/{ask.name}": ["post"] for ask in ACTIONS}
    (form,) = paths["/admin/roots/add"]["post"]["requestBody"]["content"].values()
    assert set(form["schema"]["properties"]) == {"root", "depth", "max-urls"}
    paths = client(token=TOKEN, admin_token="").get("/openapi.json", headers=BEARER).json()["paths"]
    assert not [path for path in paths if path.startswith("/admin")]


def test_other_methods_are_refused(client: Client) -> None:
    """Nothing but GET, HEAD and POST is answered."""
    ask = client(token=TOKEN)
    answers = [ask.request(method, "/admin/roots", headers=BEARER) for method in ("PUT", "DELETE", "PATCH")]
    assert [(each.status_code, each.headers["allow"]) for each in answers] == [(405, "GET, HEAD, POST")] * 3
    assert ask.head("/admin", headers=BEARER).status_code == 200
