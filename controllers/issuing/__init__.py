"""What the centre issues: its keys, the one writer of its ledger, and the records of nodes."""
