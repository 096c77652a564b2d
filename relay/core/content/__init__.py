"""Content on demand: what records lead to is fetched once, and leaves when nothing leads to it."""
