"""The page about the internet shows the proxies' files as they are, which other tests run."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "deploy" / "proxies").iterdir())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_page_shows_the_file_as_it_is(file):
    assert f"\n{file.read_text()}```" in (ROOT / "docs" / "internet.md").read_text()
