"""`python -m leafcast` is the program `leafcast`."""

from __future__ import annotations

from leafcast.cli.main import main

main()
