"""How many examples a property is tried with that says a number of its own."""

from hypothesis import settings

USUAL = 100
"""As many as Hypothesis tries where nobody says a number."""


def examples(most: int) -> int:
    """So many in `make test`, and as much less in `make check` as its profile says."""
    return max(1, most * settings().max_examples // USUAL)
