"""Helm in a separate process: its SDK loads a Go runtime, which must not be loaded into a test process.

Reads requests as JSON lines and writes a response for each: {"error": …} or {"answer": …}.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Answer requests until standard input ends."""
    sys.path.insert(0, sys.argv[1])
    import helm_python as helm  # type: ignore[import-not-found]

    def parsed(text: str) -> list[Any]:
        documents = re.split(r"(?m)^---\s*$", text)
        return [helm.values_from_yaml(document) for document in documents if re.sub(r"(?m)^\s*#.*$", "", document).strip()]

    def answered(what: str, path: str, values: dict[str, Any] | None) -> Any:
        if what == "yaml":
            return parsed(Path(path).read_text("utf-8"))
        if what == "lint":
            return helm.lint(path, values, strict=True)["messages"]
        with helm.Chart.load(path) as chart:
            chart.validate_schema(values)
            files = chart.render(values, name="demo", namespace="prod")
        if what == "notes":
            return next(text for name, text in files.items() if name.endswith("NOTES.txt"))
        return [found for name, text in sorted(files.items()) if name.endswith(".yaml") for found in parsed(text)]

    for line in sys.stdin:
        question = json.loads(line)
        try:
            answer = {"answer": answered(question["what"], question["path"], question.get("values"))}
        except helm.HelmError as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
