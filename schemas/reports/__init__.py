"""What is said upward: the link, reports, rows, returned states."""
