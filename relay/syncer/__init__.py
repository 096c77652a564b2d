"""An edge's syncer: makes its space equal to its mailbox, and reports what became of it."""
