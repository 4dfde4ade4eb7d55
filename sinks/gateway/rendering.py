"""Templates: rendered with autoescape; those in the folder `serve.templates` replace ours of the same name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined, TemplateSyntaxError
from starlette.requests import Request
from starlette.responses import HTMLResponse

from sinks.gateway import texts, views
from sinks.gateway.answers import day
from sinks.gateway.options import GatewayOptions
from sinks.gateway.state import State


class Pages:
    """Renders templates."""

    def __init__(self, options: GatewayOptions, *, has_brokers: bool = False) -> None:
        """`has_brokers`: whether there is a page over all Brokers."""
        own = [FileSystemLoader(options.templates)] if options.templates is not None else []
        loader = ChoiceLoader([*own, PackageLoader("sinks.gateway", "templates")])
        self._environment = Environment(
            autoescape=True, loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )  # fmt: skip
        self._environment.filters |= {
            "marks": texts.highlighted,
            "clean": texts.clean,
            "value": texts.value,
            "link": texts.link,
            "bytes": texts.size,
            "day": day,
            "code": texts.code,
            "readable": texts.place,
            "broker": texts.broker,
            "moment": texts.moment,
            "capitalized": texts.capitalized,
            "number": lambda number: f"{number:,}",
        }
        self._environment.globals |= {"options": options, "views": views, "has_brokers": has_brokers}

    def page(self, request: Request, template: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        """Return a rendered template. In it, `path` returns the address of a path of the gateway, with the query of a state."""
        root = request.scope.get("root_path", "")

        def path(name: str, state: State | None = None) -> str:
            return f"{root}{name}{state.query if state is not None else ''}"

        def static(name: str) -> str:
            return f"{root}/static/{name}?v={_digest(name)}"

        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        known = {"path": path, "static": static, "here": here, "state": State()}
        shown = self._environment.get_template(template).render(known | dict(values))
        return HTMLResponse(shown, status)


def template_problems(folder: Path) -> list[str]:
    """Return what is wrong with the templates of a folder: mistakes in them, and names that replace none of ours."""
    found = []
    environment = Environment(autoescape=True)
    templates = files("sinks.gateway").joinpath("templates")
    ours = {entry.name for entry in templates.iterdir()} | {
        f"admin/{entry.name}" for entry in templates.joinpath("admin").iterdir()
    }
    for path in sorted((*folder.glob("*.html"), *folder.glob("admin/*.html"))):
        name = path.relative_to(folder).as_posix()
        if name not in ours:
            found.append(f"{name}: there is no template of this name to replace")
            continue
        try:
            environment.parse(path.read_text("utf-8"))
        except TemplateSyntaxError as error:
            found.append(f"{name}, line {error.lineno}: {error.message}")
        except (OSError, ValueError) as error:
            found.append(f"{name}: {error}")
    return found


@cache
def _digest(name: str) -> str:
    """Return a digest of a static file, so that a browser asks for a new version of it."""
    return hashlib.sha256(files("sinks.gateway").joinpath("static", name).read_bytes()).hexdigest()[:12]
