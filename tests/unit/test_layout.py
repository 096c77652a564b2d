"""Tables and texts: what a terminal has room for; in a pipe all of it."""

import io
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from leafcast.show.layout import GAP, Group, Table, Text, cell_width, rows_only

WIDTHS = st.integers(20, 120)
WORDS = st.text(st.characters(categories=("L", "N", "Zs", "P", "So")), max_size=60)


def table(*rows, **more):
    made = Table()
    made.add_column("NAME", no_wrap=True, max_width=32)
    made.add_column("COUNT", justify="right", no_wrap=True)
    made.add_column("WHAT IS WRONG", **more)
    for row in rows:
        made.add_row(*row)
    return made


@given(st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5), st.sampled_from(["fold", "ellipsis"]))
def test_in_a_pipe_each_row_is_a_line_with_every_cell_whole(rows, overflow):
    lines = table(*rows, overflow=overflow).lines()
    assert len(lines) == 1 + len(rows)
    for line, row in zip(lines[1:], rows, strict=True):
        rest = line
        for cell in row:
            assert cell.strip() in rest
            rest = rest[rest.index(cell.strip()) + len(cell.strip()) :]


@example(20, [("000000", "", "")])
@given(WIDTHS, st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5))
def test_no_line_is_wider_than_the_terminal(width, rows):
    view = Group(table(*rows), table(*rows, overflow="fold"), *(Text(word) for _, _, word in rows))
    assert all(cell_width(line) <= width for line in view.lines(width))


@given(WIDTHS, st.lists(WORDS, min_size=1, max_size=6))
def test_what_is_folded_loses_no_letter(width, words):
    found = Text(" ".join(words)).lines(width)
    assert "".join("".join(found).split()) == "".join("".join(words).split())


def test_columns_stand_below_each_other_two_blanks_apart():
    lines = table(("a", "7", "x"), ("long-name", "12", "")).lines(80)
    assert lines == [
        "NAME       COUNT  WHAT IS WRONG",
        "a              7  x",
        "long-name     12",
    ]
    assert GAP == "  "


def test_only_what_may_be_folded_is_narrowed():
    row = ("store-1", "3", "the image web:9.9 cannot be pulled " * 4)
    whole = table(row, overflow="fold").lines(80)
    assert all(line.startswith(("store-1      3", "NAME", " " * 14)) for line in whole)
    assert " ".join(" ".join(line[16:] for line in whole[1:]).split()) == row[2].strip()
    assert table(row).lines(80)[1].endswith("…")


def test_a_name_stays_whole_while_the_texts_beside_it_can_be_folded():
    name, text = "shop/deployments.apps/checkout", "no room " * 12
    table = Table()
    table.add_column("OBJECT", min_width=len(name), overflow="fold")
    table.add_column("WHAT", overflow="fold")
    table.add_row(name, text.strip())
    for width in (60, 80):
        lines = table.lines(width)
        assert any(line.startswith(f"{name}  no room") for line in lines), width
        assert max(map(len, lines)) <= width
    assert max(map(len, table.lines(30))) <= 30


def test_what_came_from_elsewhere_cannot_steer_the_terminal():
    view = Group(Text("a\x1b[2Jb"), table(("\x1b[31mred", "1", "\u202egnp")))
    assert "\x1b" not in "".join(view.lines(80))
    assert "\u202e" not in "".join(view.lines())


@pytest.mark.parametrize("width", [None, 40])
def test_styles_change_nothing_of_what_is_read(width):
    view = Group(
        Text.assemble(("shop", "bold"), "  ", Text("2 failed of a great many", style="red")),
        table(("a", Text("1", style="green"), "")),
    )
    styled = view.lines(width, styled=True)
    assert "\x1b[31m" in styled[0]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in styled] == view.lines(width)


def test_rich_draws_the_same_lines():
    file = io.StringIO()
    view = table(("a", "1", "wrong"))
    Console(file=file, width=80).print(view)
    assert [line.rstrip() for line in file.getvalue().splitlines()] == view.lines(80)


def test_rows_alone_have_no_header_and_nothing_around_them():
    view = Group(Text("shop"), Group(table(("a", "1", "x"))), Text("and more"))
    assert rows_only(view).lines() == ["a  1  x"]
    assert rows_only(Text("nothing here")).lines() == []
