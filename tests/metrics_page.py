"""The tables of docs/operations/metrics.md, from the catalogue: `make docs` writes them anew."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from leafcast.metrics.catalogue import SECTIONS
from leafcast.metrics.reading import Metric

PAGE = Path(__file__).resolve().parents[1] / "docs" / "operations" / "metrics.md"
_BETWEEN = re.compile(
    r"(<!-- made from leafcast/metrics/catalogue.py by `make docs` -->\n).*(<!-- end -->\n)",
    re.DOTALL,
)


def tables() -> str:
    """A table for each section."""
    parts = []
    for title, metrics in SECTIONS.items():
        rows = "\n".join(map(_row, metrics))
        parts.append(
            f"### {title}\n\n| metric | kind | labels | what |\n| --- | --- | --- | --- |\n{rows}\n"
        )
    return "\n" + "\n".join(parts) + "\n"


def with_tables(page: str) -> str:
    """The page with its tables as they should be."""
    return _BETWEEN.sub(lambda found: found[1] + tables() + found[2], page)


def _row(metric: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in metric.labels)
    return f"| `{metric.name}` | {metric.kind.value} | {labels} | {metric.help} |"


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stderr.write(f"{PAGE}\n")
