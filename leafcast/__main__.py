"""`python -m leafcast` is the program `leafcast`."""

from __future__ import annotations

from leafcast.main import main

main()
