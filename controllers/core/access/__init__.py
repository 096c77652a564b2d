"""Who may be let in, and which keys a tree has."""
