"""Expressions of users, evaluated: CEL within bounds, and the sketch of quantiles."""
