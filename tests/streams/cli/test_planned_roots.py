"""Roots with plans, gathered over loopback: scope, rewriting, local mapping, hours."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.samples.site_server import Site

ALLOW = ("--allow", "127.0.0.0/8", "--pause", "0")


def apply(harvest: Any, url: str, **options: str) -> Any:
    """Apply a file of one root, with options as TOML."""
    lines = ["[[root]]", f'url = "{url}"', *(f"{name} = {value}" for name, value in options.items())]
    Path("roots.toml").write_text("\n".join(lines))
    return harvest("roots", "apply", "roots.toml")


def summaries(harvest: Any, data: str = "harvest-data") -> dict[str, tuple[str, ...]]:
    """Digests, sizes and types of the summaries by URL."""
    values = [line["value"] for line in harvest.lines("cat", "summaries", "--data", data)]
    return {each["url"]: tuple(each[name] for name in ("oid", "md5", "sha256", "size", "type")) for each in values}


def mirror(site: Site, folder: Path) -> str:
    """Write the files of a site into a folder, as its own server has them; return the value of `map`."""
    for path, body in site.files.items():
        if not path.endswith("/"):
            place = folder / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(body)
    return f'[{{ url = "{site.url}", path = "{folder}" }}]'


def test_mapped_tree_gives_the_digests_of_http(harvest: Any, site: Site, tmp_path: Path) -> None:
    """A site read from its folder gives the objects that its server gives, without asking it; so does a later run."""
    site.redirects.clear()
    del site.files["/robots.txt"]
    harvest("gather", site.url, "--quiet", "--data", "http", *ALLOW)
    by_http = summaries(harvest, "http")
    site.asked.clear()
    apply(harvest, site.url, map=mirror(site, tmp_path / "copy"), pause="60")
    harvest("gather", "--quiet", *ALLOW)
    assert not site.asked
    assert summaries(harvest) == by_http
    (tmp_path / "copy" / "wais.html").write_text("<title>WAIS</title> zanzibar")
    (tmp_path / "copy" / "gopher.html").unlink()
    table = harvest.lines("gather", *ALLOW)[0]
    assert (table["changed"], table["removed"], site.asked) == (1, 1, [])


def test_missing_file_is_fetched_from_the_server(harvest: Any, site: Site, tmp_path: Path) -> None:
    """With `missing = "fetch"`, the server is asked for what the folder does not have, and not for what it has."""
    site.redirects.clear()
    value = mirror(site, tmp_path / "copy")
    (tmp_path / "copy" / "wais.html").unlink()
    apply(harvest, site.url, map=value, missing='"fetch"')
    harvest("gather", "--quiet", *ALLOW)
    assert "/wais.html" in site.asked
    assert not [path for path in site.asked if (tmp_path / "copy" / path.lstrip("/")).is_file() and path != "/robots.txt"]
    assert site.url + "wais.html" in summaries(harvest)


def test_scope_and_rewriting_of_a_site(harvest: Any, site: Site) -> None:
    """Denied links are refused with their rule, and two links to one page are one request."""
    site.files = {
        "/": b"<a href='/a;jsessionid=1'>1</a> <a href='/a;jsessionid=2'>2</a> <a href='/calendar/1'>3</a>",
        "/a": b"<title>A</title>",
        "/calendar/1": b"never",
    }
    apply(harvest, site.url, deny="['/calendar/']", rewrite='["session"]')
    harvest("gather", "--quiet", *ALLOW)
    assert {path: site.asked.count(path) for path in site.asked if path != "/robots.txt"} == {"/": 1, "/a": 1}
    assert "deny of the root: /calendar/" in harvest("why", f"{site.url}calendar/1").stdout


def test_root_outside_of_its_hours_is_not_asked(harvest: Any, site: Site) -> None:
    """A run outside of the hours of a root asks its server for nothing, and ends with a line that says when they begin."""
    start = datetime.now(UTC) + timedelta(hours=5)
    apply(harvest, site.url, hours=f'"{start:%H}:00-{start + timedelta(hours=1):%H}:00"')
    result = harvest("gather", "--quiet", *ALLOW, code=1)
    assert not site.asked
    assert f"outside of its hours until {start:%H}:00 UTC" in result.stderr
    apply(harvest, site.url)
    harvest("gather", "--quiet", *ALLOW)
    assert site.asked


def test_run_outside_of_hours_reports_what_waits(harvest: Any, site: Site) -> None:
    """The end of `gather`, its JSON, and the end of `run` say how many URLs of a host wait for the hours of their root."""
    site.redirects.clear()
    harvest("gather", site.url, "--quiet", *ALLOW)
    known = sum(summaries(harvest)[url] is not None for url in summaries(harvest))
    start = datetime.now(UTC) + timedelta(hours=5)
    apply(harvest, site.url, hours=f'"{start:%H}:00-{start + timedelta(hours=1):%H}:00"')
    result = harvest("gather", "--json", *ALLOW, code=1)
    (held,) = json.loads(result.stdout)["waiting"]
    host = site.url.rstrip("/")
    assert (held["host"], held["until"]) == (host, f"{start:%Y-%m-%d %H}:00:00 UTC")
    assert held["urls"] >= known
    assert f"{host}: {held['urls']} URLs wait until {held['until']}: outside of the hours of its roots" in result.stderr
    process = harvest.start("run", *ALLOW)
    lines = iter(process.stderr.readline, b"")
    assert any(b"running on" in line for line in lines)
    process.terminate()
    assert f"{host}: {held['urls']} URLs wait until {held['until']}" in process.communicate(timeout=60)[1].decode()
    apply(harvest, site.url)
    assert json.loads(harvest("gather", "--json", *ALLOW).stdout)["waiting"] == []


def test_run_that_leaves_a_held_host_reports_it(harvest: Any, site: Site) -> None:
    """A run that ends while a host asks for a long wait says how many URLs wait for it; another root's run does not."""
    site.fail_after(3, retry_after=3_600)
    result = harvest("gather", site.url, "--json", *ALLOW)
    (held,) = json.loads(result.stdout)["waiting"]
    assert held["urls"] > 0
    assert "it asked for a pause (429, 503 or Retry-After)" in result.stderr
    again = harvest("gather", *ALLOW, code=1).stderr
    assert f"{site.url}: not asked until {held['until']}" in again
    assert "roots remove" not in again
    Path("folder").mkdir()
    assert json.loads(harvest("gather", "folder", "--json", *ALLOW).stdout)["waiting"] == []


def test_known_root_that_is_away_does_not_keep_others_from_changing(harvest: Any, tmp_path: Path) -> None:
    """A file is applied though the folder of a known root is missing, as when a disk is not mounted; that root stays as it is."""
    shelf, gone = tmp_path / "shelf", tmp_path / "gone"
    shelf.mkdir()
    gone.mkdir()
    tables = '[[root]]\nurl = "{}"\n{}\n[[root]]\nurl = "{}"\n'
    Path("roots.toml").write_text(tables.format(shelf, "", gone))
    harvest("roots", "apply", "roots.toml")
    gone.rmdir()
    Path("roots.toml").write_text(tables.format(shelf, "depth = 3", gone))
    done = harvest("roots", "apply", "roots.toml", "--prune")
    assert done.stdout.splitlines() == [f"changed {shelf.as_uri()}/: depth -1 -> 3"]
    assert f"roots.toml:4: {gone}: No such file or directory; it is kept as a root" in done.stderr


def test_page_that_is_fetched_in_full_and_is_the_same_is_unchanged(harvest: Any, site: Site) -> None:
    """Pages that are sent in full again, for another limit of their root, count as changed only where their summary does."""
    harvest("gather", site.url, "--quiet", *ALLOW)
    pages = {url for url in summaries(harvest) if "#" not in url}
    apply(harvest, site.url, depth="7")
    site.files["/wais.html"] = b"<title>WAIS</title> zanzibar"
    (table,) = harvest.lines("gather", *ALLOW)
    assert (table["changed"], table["unchanged"]) == (1, len(pages) - 1)
