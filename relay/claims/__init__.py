"""Who may work on a space that others reach, too: one edge on a cluster, one centre on a hub."""
