"""What is believed and held: the snapshot of all records in force, and what it makes of each."""
