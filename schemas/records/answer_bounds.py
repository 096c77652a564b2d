"""What bounds texts and moments in an answer; apart, as whoever only asks loads nothing else."""

TEXT_MAX_CHARACTERS = 1000
MOMENT_MAX_MS = 253_402_300_799_000
"""The end of the year 9999, ms since 1970."""
