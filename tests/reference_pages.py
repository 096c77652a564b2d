"""Pages of reference, made for the site: kinds with every field, reasons, the Python API."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from schemas.crds.definitions import custom_resource_definitions

DOCS = Path(__file__).resolve().parents[1] / "docs"
OF_REASONS = {
    "holds.md": "holds",
    "placements.md": "conditions of placements",
    "order.md": "order",
    "rollouts.md": "Rollouts",
    "protocol/questions.md": "questions to nodes",
    "operations/events.md": "events and errors",
}
"""The pages with tables of reasons, and what these are about."""
_ABOUT_REASONS = """\
What the words mean that conditions, holds, events and errors name as their reason. They stay as
they are, so that programs can go by them. `leafcast why` says of any copy what keeps it back."""
_ROW = re.compile(r"^\| (`[A-Z][A-Za-z]+`[^|]*) \| (.+) \|$", re.MULTILINE)
_REASON = re.compile(r"`([A-Z][A-Za-z]+)`")
_LINK = re.compile(r"\]\(([^)#:]*\.md)?(#[^)]*)?\)")
_BOUNDS = {
    "default": "default",
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "characters, at least",
    "maxLength": "characters, at most",
    "minItems": "items, at least",
    "maxItems": "items, at most",
    "maxProperties": "keys, at most",
}


def kinds_page() -> str:
    """Each kind with every field of its definitions, as `leafcast crds` prints them."""
    parts = [
        "# Kinds",
        "Every field of Leafcast's own kinds, as `leafcast crds` prints them for Kubernetes.",
    ]
    for form in custom_resource_definitions():
        spec = form["spec"]
        names, (version, *_) = spec["names"], spec["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        short = ", ".join(f"`{name}`" for name in names.get("shortNames", ()))
        parts += [
            f"## {names['kind']}",
            schema.get("description", ""),
            f"`{spec['group']}/{version['name']}`, resource `{names['plural']}`"
            + (f" ({short})" if short else "")
            + f", {spec['scope'].lower()} scope.",
            "\n".join(
                ["| field | type | what |", "| --- | --- | --- |", *_rows(schema, "")],
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _rows(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    needed = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        if path == "" and name in ("apiVersion", "kind", "metadata"):
            continue
        here = f"{path}.{name}" if path else name
        kind = f"{_type(field)}, required" if name in needed else _type(field)
        yield f"| `{here}` | {kind} | {_what(field)} |"
        yield from _rows(_inner(field), f"{here}{_mark(field)}")


def _inner(field: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the items of a list or the values of a map are, or the field itself."""
    inner = field.get("items") or field.get("additionalProperties")
    return _inner(inner) if isinstance(inner, Mapping) else field


def _mark(field: Mapping[str, Any]) -> str:
    if "items" in field:
        return "[]" + _mark(field["items"])
    more = field.get("additionalProperties")
    return ".*" + _mark(more) if isinstance(more, Mapping) else ""


def _type(field: Mapping[str, Any]) -> str:
    if "items" in field:
        return f"list of {_type(field['items'])}"
    if isinstance(more := field.get("additionalProperties"), Mapping):
        return f"map of {_type(more)}"
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    return str(field.get("type", "any"))


def _what(field: Mapping[str, Any]) -> str:
    said = [str(field.get("description", ""))]
    if "enum" in field:
        said.append("One of: " + ", ".join(f"`{word}`" for word in field["enum"]) + ".")
    said += [f"{word}: `{field[key]}`." for key, word in _BOUNDS.items() if key in field]
    return " ".join(filter(None, said)).replace("|", "\\|").replace("\n", " ")


def reasons_page() -> str:
    """Each reason that conditions, holds, events and errors name, and the page that explains it."""
    rows = []
    for page, about in OF_REASONS.items():
        text = (DOCS / page).read_text(encoding="utf-8")
        for reasons, said in _ROW.findall(text):
            what = _LINK.sub(
                lambda found, page=page: _moved(found, page), said.replace(" | ", "; ")
            )
            rows += [
                f"| `{word}` | {what} | [{about}](../{page}) |" for word in _REASON.findall(reasons)
            ]
    table = ["| reason | what | of |", "| --- | --- | --- |", *sorted(rows, key=str.lower)]
    return "\n\n".join(["# Reasons", _ABOUT_REASONS, "\n".join(table)]) + "\n"


def _moved(found: re.Match[str], page: str) -> str:
    """A link of a page, as it is from the page of reasons."""
    to = posixpath.join(posixpath.dirname(page), found[1]) if found[1] else page
    return f"](../{posixpath.normpath(to)}{found[2] or ''})"


def python_page() -> str:
    """All names of the library, from its docstrings."""
    said = "All names of `import leafcast`; [From Python](../client.md) introduces them."
    return f"# Python API\n\n{said}\n\n::: leafcast.client\n"
