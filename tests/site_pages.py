"""The documentation site's pages, gathered for its builder: `make site` writes them below build/.

The front page is the README. What pages of docs/ link to elsewhere in the repository comes with
them, below `repository/`, so that no link leads out of the site. Tables of kinds, reasons and the
Python API are made from the program itself.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.reference_pages import kinds_page, python_page, reasons_page

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = ROOT / "mkdocs.yml"
_HEAD = ROOT / "tests" / "site_head.html"
_FRONT = "README.md"
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)((?:#[^)\s]*)?)(?=\))")
_NESTED = re.compile(r"^( +)(?=(?:[-*]|\d+\.) )", re.MULTILINE)
# A range in brackets, which would be taken for a link.
_RANGE = re.compile(r"\[(?=[0-9x]+(?:&[lg]t;|[<>]))")
_ELSEWHERE = re.compile(r"[a-z]+:")
_FOLDER = re.compile(r"^( *)- (?:([^:\n]+): )?([a-z-]+)/$", re.MULTILINE)
_MADE = {
    "reference/kinds.md": kinds_page,
    "reference/python.md": python_page,
    "reference/reasons.md": reasons_page,
}


def gather(to: Path) -> Path:
    """Write pages and settings into a folder, in place of what is there; returns the settings."""
    shutil.rmtree(to, ignore_errors=True)
    pages = to / "pages"
    for name in _sources():
        place = pages / _place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        at = ROOT / name
        if at.is_dir():
            place.write_text(_listing(name), encoding="utf-8")
        elif at.suffix == ".md":
            place.write_text(adapted(at.read_text(encoding="utf-8"), name), encoding="utf-8")
        else:
            shutil.copyfile(at, place)
    for name, made in _MADE.items():
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_text(made(), encoding="utf-8")
    (to / "theme").mkdir()
    shutil.copyfile(_HEAD, to / "theme" / "main.html")
    settings = to / SETTINGS.name
    settings.write_text(
        _FOLDER.sub(_listed, SETTINGS.read_text(encoding="utf-8")), encoding="utf-8"
    )
    return settings


def _sources() -> Iterator[str]:
    """All files of docs/, and what is linked to from there and from the README, step by step."""
    waiting = [_FRONT, "CHANGELOG.md"]
    waiting += (
        it.relative_to(ROOT).as_posix() for it in (ROOT / "docs").rglob("*") if it.is_file()
    )
    seen = set(waiting)
    # It grows as it is gone through.
    for name in waiting:
        yield name
        at = ROOT / name
        more = [f"{name}/{one}" for one in _files(name)] if at.is_dir() else []
        if at.suffix == ".md":
            text = _FENCE.sub("", at.read_text(encoding="utf-8"))
            more += (_target(name, link[1]) for link in _LINK.finditer(text))
        for one in more:
            if one and one not in seen and one != "docs":
                seen.add(one)
                waiting.append(one)


def _files(folder: str) -> list[str]:
    return sorted(one.name for one in (ROOT / folder).iterdir() if one.is_file())


def _target(name: str, link: str) -> str:
    """The file or folder that a link of a page leads to; "" if it is none of this repository."""
    if _ELSEWHERE.match(link):
        return ""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
    if (ROOT / target / "README.md").exists():
        target = posixpath.join(target, "README.md")
    return target if (ROOT / target).exists() else ""


def _place(name: str) -> str:
    """Where the site has a file or a folder of the repository."""
    if name == _FRONT:
        return "index.md"
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"repository/{name}/index.md" if (ROOT / name).is_dir() else f"repository/{name}"


def _listing(folder: str) -> str:
    return f"# {folder}\n\n" + "".join(f"- [{one}]({one})\n" for one in _files(folder))


def adapted(text: str, name: str) -> str:
    """A page with links as the site has them, and lists as Python's Markdown reads them."""
    here = posixpath.dirname(_place(name)) or "."

    def link(found: re.Match[str]) -> str:
        target = _target(name, found[1])
        return os.path.relpath(_place(target), here) + found[2] if target else found[0]

    def prose(part: str) -> str:
        # It nests a list that is indented by four, and GitHub one that is indented by two.
        part = _RANGE.sub(r"\\[", _NESTED.sub(lambda found: found[1] * 2, part))
        return _LINK.sub(link, part)

    parts, end = [], 0
    for fence in _FENCE.finditer(text):
        parts += [prose(text[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, prose(text[end:])])


def _listed(found: re.Match[str]) -> str:
    """A folder in the navigation: its pages, an index first."""
    indent, title, folder = found[1], found[2], found[3]
    names = sorted(one for one in _files(f"docs/{folder}") if one.endswith(".md"))
    names.sort(key=lambda name: name != "README.md")
    lines = [f"{indent}- {title}:"] if title else []
    deeper = f"{indent}    " if title else indent
    return "\n".join([*lines, *(f"{deeper}- {folder}/{name}" for name in names)])


if __name__ == "__main__":
    print(gather(Path(sys.argv[1])))
