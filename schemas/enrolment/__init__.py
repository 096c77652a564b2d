"""How a node is let in: tokens, requests, grants."""
