"""The page of the Helm chart, made from its values and their schema: `make docs` writes it anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[1] / "deploy" / "helm" / "leafcast"

_HEAD = """\
# The chart `leafcast`

A centre, a relay or an edge of a Leafcast tree, by `role`.
[Installing](../../../docs/operations/installing.md#the-chart) tells how to go on. This page is made
from `values.yaml` and `values.schema.json` by `make docs`.

```sh
helm install centre deploy/helm/leafcast -n leafcast-system --create-namespace --set role=centre
helm install store deploy/helm/leafcast -n leafcast-system --create-namespace --set role=edge
```

A value that is none, or of another form, is refused with its name.

| value | default | what it does |
| --- | --- | --- |
"""


def chart_page() -> str:
    """Each value, what it is by default and what it does, as Markdown."""
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    rows = (f"| `{name}` | {default} | {said} |\n" for name, default, said in _rows(schema, values))
    return _HEAD + "".join(rows)


def _rows(
    schema: dict[str, Any], values: dict[str, Any], above: str = ""
) -> Iterator[tuple[str, str, str]]:
    for name, form in schema["properties"].items():
        if name not in values:
            continue
        inner, default = form.get("properties"), values[name]
        if inner and default:
            yield above + name, "", _cell(form["description"])
            yield from _rows(form, default, f"{above}{name}.")
        else:
            shown = f"`{json.dumps(default)}`" if default != "" else ""
            yield above + name, shown, _cell(form["description"] + _choices(form))


def _choices(form: dict[str, Any]) -> str:
    words = [f"`{word}`" for word in form.get("enum", ()) if word != ""]
    return f" One of {', '.join(words)}." if words else ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    print(chart_page(), end="")
