"""Text, tables and groups of them: lines that fit a terminal, and are whole in a pipe.

A command that prints a table is to start fast, and rich takes as long to import as click does. Here
is the little of it that tables need, under the names that rich has for it; rich can draw them, too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from leafcast.show.sanitize import sanitize_lines

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult

Overflow: TypeAlias = Literal["fold", "ellipsis"]
Span: TypeAlias = tuple[str, str]
"""A text, and its style: words such as `bold cyan`."""

GAP = "  "
WIDTH_MIN, TEXT_WIDTH_MIN = 6, 20
"""No column is made narrower, so that something of it is seen."""
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}
_MORE = "…"


class View(Protocol):
    """What can be printed: as lines of so many columns at most, or whole if `width` is None."""

    def lines(self, width: int | None = None, *, styled: bool = False) -> list[str]: ...


class _Rich:
    """What rich needs to draw a view, where it is on a picture that moves."""

    def lines(self, width: int | None = None, *, styled: bool = False) -> list[str]:
        raise NotImplementedError

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.text import Text as RichText  # noqa: PLC0415 - only where rich draws

        for line in self.lines(options.max_width, styled=console.is_terminal):
            yield RichText.from_ansi(line, no_wrap=True)


@dataclass(slots=True)
class Text(_Rich):
    """A text of one style, or of spans of several; how it is brought into a narrow column."""

    text: str = ""
    style: str = ""
    overflow: Overflow | None = None
    no_wrap: bool = False
    spans: tuple[Span, ...] = ()

    @classmethod
    def assemble(cls, *parts: str | Span | Text, overflow: Overflow | None = None) -> Text:
        """A text of parts, each with a style of its own."""
        spans: list[Span] = []
        for part in parts:
            if isinstance(part, Text):
                spans += part.styled()
            else:
                spans.append((part, "") if isinstance(part, str) else part)
        return cls("".join(said for said, _ in spans), overflow=overflow, spans=tuple(spans))

    def styled(self) -> tuple[Span, ...]:
        return self.spans or ((self.text, self.style),)

    def lines(self, width: int | None = None, *, styled: bool = False) -> list[str]:
        found = _split(self.styled(), width, cut=self.no_wrap)
        return [_said(line, styled=styled) for line in found]


@dataclass(slots=True)
class Group(_Rich):
    """Views below each other."""

    views: tuple[View | Text, ...]

    def __init__(self, *views: View | Text) -> None:
        self.views = views

    def lines(self, width: int | None = None, *, styled: bool = False) -> list[str]:
        return [line for view in self.views for line in view.lines(width, styled=styled)]


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    justify: Literal["left", "right"] = "left"
    no_wrap: bool = False
    min_width: int | None = None
    max_width: int | None = None
    overflow: Overflow = "ellipsis"


@dataclass(slots=True)
class Table(_Rich):
    """Cells below each other, two blanks between columns. Only what may be folded is narrowed.

    `max_width` and narrowing are for terminals: in a pipe every cell is whole, on one line.
    Columns with a `min_width` keep it as long as the others have room for a text.
    """

    headers: bool = True
    columns: list[_Column] = field(default_factory=list)
    rows: list[list[Text]] = field(default_factory=list)

    def add_column(
        self,
        title: str,
        *,
        justify: Literal["left", "right"] = "left",
        no_wrap: bool = False,
        min_width: int | None = None,
        max_width: int | None = None,
        overflow: Overflow = "ellipsis",
    ) -> None:
        self.columns.append(_Column(title, justify, no_wrap, min_width, max_width, overflow))

    def add_row(self, *cells: str | Text) -> None:
        self.rows.append([cell if isinstance(cell, Text) else Text(cell) for cell in cells])

    def lines(self, width: int | None = None, *, styled: bool = False) -> list[str]:
        titles = [Text(column.title, "bold cyan", no_wrap=True) for column in self.columns]
        rows = [titles, *self.rows] if self.headers else self.rows
        whole = width is None
        if whole:
            rows = [[_on_one_line(cell) for cell in row] for row in rows]
        widths = self._widths(rows, width)
        return [
            line
            for row in rows
            for line in _row_lines(row, self.columns, widths, whole=whole, styled=styled)
        ]

    def _widths(self, rows: Sequence[Sequence[Text]], width: int | None) -> list[int]:
        """How wide each column is, so that all fit if they can."""
        found = []
        for at, column in enumerate(self.columns):
            cells = (_span_width(line) for row in rows for line in _paragraphs(row[at].styled()))
            natural = max((*cells, column.min_width or 0), default=0)
            if width is not None and column.max_width is not None:
                natural = min(natural, max(column.max_width, cell_width(column.title)))
            found.append(natural)
        if width is not None:
            room = width - len(GAP) * (len(found) - 1)
            foldable = [at for at, column in enumerate(self.columns) if not column.no_wrap]
            free = [at for at in foldable if self.columns[at].min_width is None]
            _narrow(found, free, room, least=TEXT_WIDTH_MIN)
            _narrow(found, foldable, room, least=WIDTH_MIN)
            _narrow(found, range(len(found)), room, least=1)
        return found


def rows_only(view: View) -> View:
    """The tables of a view without their headers; what is said around them is left out."""
    if isinstance(view, Table):
        return Table(headers=False, columns=view.columns, rows=view.rows)
    views = view.views if isinstance(view, Group) else ()
    return Group(*(rows_only(one) for one in views if isinstance(one, (Group, Table))))


def guided(paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each path with its name behind the lines of a tree, children after their parents."""
    below: dict[str, list[str]] = {}
    for path in paths:
        if path == "/":
            yield path, path
        else:
            below.setdefault(path.rpartition("/")[0], []).append(path)

    def within(above: str, indent: str) -> Iterator[tuple[str, str]]:
        children = below.get(above, [])
        for path in children:
            last = path is children[-1]
            yield path, f"{indent}{'└─' if last else '├─'} {path.rpartition('/')[2]}"
            yield from within(path, f"{indent}{'   ' if last else '│  '}")

    yield from within("", "")


def cell_width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_letter_width, text))


def _letter_width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _narrow(widths: list[int], columns: Sequence[int], room: int, *, least: int) -> None:
    """Take from the widest of these columns until all fit, or no more can be taken."""
    while columns and sum(widths) > room:
        widest = max(columns, key=lambda at: widths[at])
        if widths[widest] <= least:
            return
        widths[widest] -= 1


def _row_lines(
    row: Sequence[Text],
    columns: Sequence[_Column],
    widths: Sequence[int],
    *,
    whole: bool,
    styled: bool,
) -> Iterator[str]:
    cells = []
    for cell, column, width in zip(row, columns, widths, strict=True):
        cut = cell.no_wrap or column.no_wrap or (cell.overflow or column.overflow) == "ellipsis"
        cells.append(_split(cell.styled(), None if whole else width, cut=cut))
    for at in range(max(map(len, cells), default=0)):
        said = ""
        for column, width, lines in zip(columns, widths, cells, strict=True):
            line = lines[at] if at < len(lines) else ()
            blanks = " " * (width - _span_width(line))
            text = _said(line, styled=styled)
            said += (blanks + text if column.justify == "right" else text + blanks) + GAP
        yield said.rstrip()


def _span_width(line: Iterable[Span]) -> int:
    return sum(cell_width(text) for text, _ in line)


def _on_one_line(cell: Text) -> Text:
    """The cell without line breaks: what reads a pipe reads it line by line."""
    spans = tuple((text.replace("\n", " "), style) for text, style in cell.styled())
    return Text("".join(text for text, _ in spans), cell.style, spans=spans)


def _said(line: Iterable[Span], *, styled: bool) -> str:
    if not styled:
        return "".join(text for text, _ in line)
    return "".join(_colored(text, style) for text, style in line)


def _colored(text: str, style: str) -> str:
    codes = ";".join(str(_CODES[word]) for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


def _split(spans: Sequence[Span], width: int | None, *, cut: bool) -> list[tuple[Span, ...]]:
    """The lines of a text, each as wide as there is room: cut with a mark, or folded at blanks."""
    found: list[tuple[Span, ...]] = []
    for paragraph in _paragraphs(spans):
        if width is None or _span_width(paragraph) <= width:
            found.append(paragraph)
        elif cut:
            found.append((*_first(paragraph, width - 1), (_MORE, paragraph[-1][1])))
        else:
            found += _folded(paragraph, width)
    return found


def _paragraphs(spans: Sequence[Span]) -> list[tuple[Span, ...]]:
    found: list[list[Span]] = [[]]
    for text, style in spans:
        # What came from elsewhere cannot steer the terminal.
        first, *others = sanitize_lines(text).split("\n")
        found[-1].append((first, style))
        found += [[(other, style)] for other in others]
    return [tuple(line) for line in found]


def _first(line: Sequence[Span], width: int) -> list[Span]:
    """As much of a line as there is room for."""
    found: list[Span] = []
    for text, style in line:
        end = 0
        while end < len(text) and cell_width(text[: end + 1]) <= width:
            end += 1
        found.append((text[:end], style))
        width -= cell_width(text[:end])
        if end < len(text):
            break
    return found


def _folded(line: Sequence[Span], width: int) -> Iterator[tuple[Span, ...]]:
    """A line in several, broken at blanks, and within a word only if that has no room itself."""
    rest = list(line)
    indent = len(text := "".join(said for said, _ in rest)) - len(text.lstrip())
    begin = ""
    while _span_width(rest) + len(begin) > width:
        head = _first(rest, max(width - len(begin), 1))
        size = sum(len(text) for text, _ in head)
        text = "".join(said for said, _ in rest)
        blank = text.rfind(" ", 0, size + 1)
        size = blank if text[:blank].strip() and blank > 0 else max(size, 1)
        yield ((begin, ""), *_taken(rest, 0, size))
        rest = list(_taken(rest, size, len(text)))
        while rest and rest[0][0].startswith(" "):
            rest[0] = (rest[0][0].lstrip(" "), rest[0][1])
            if not rest[0][0]:
                rest.pop(0)
        begin = " " * min(indent, width // 2)
    yield ((begin, ""), *rest)


def _taken(line: Iterable[Span], begin: int, end: int) -> Iterator[Span]:
    """The letters of a line from one to another."""
    at = 0
    for text, style in line:
        part = text[max(begin - at, 0) : max(end - at, 0)]
        at += len(text)
        if part:
            yield part, style
