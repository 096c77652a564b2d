"""Backups of a centre: written whole or piece by piece, closed for an operator, put back."""
