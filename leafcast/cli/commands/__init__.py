"""The commands about a running tree: one file per group, each loaded when it is asked for."""
