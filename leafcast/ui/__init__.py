"""The page of a tree in a browser: it reads, asks as any command asks, and serves this machine."""
