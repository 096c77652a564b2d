"""From a placement's objects to its delta."""
