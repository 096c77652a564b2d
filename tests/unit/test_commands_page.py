"""The page about the commands says what the program says."""

from pathlib import Path

from tests.commands_page import commands_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def test_the_page_of_commands_is_what_the_program_says_now():
    assert PAGE.read_text() == commands_page(), "run `make docs`"
