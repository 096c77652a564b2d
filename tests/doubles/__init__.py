"""Doubles of buses and spaces, held by contract tests to what the real ones do."""
