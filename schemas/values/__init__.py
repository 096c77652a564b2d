"""Values that everything else is made of: names, ids, bytes, JSON, words of errors."""

from schemas.lean_import import load_without

# Python has all of it that msgspec asks for.
load_without("msgspec", "typing_extensions")
