"""Content by its hash: pieces and their addresses, what lists them, and how they are sealed."""
