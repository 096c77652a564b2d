"""A node on several machines, as each of them runs: its server always, its node while active."""
