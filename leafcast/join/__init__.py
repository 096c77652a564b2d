"""Nodes that run elsewhere: asking to be let in, joined nodes, their folders, external servers."""
