"""Nodes that run elsewhere: join bundles, joined nodes and their folders, external servers."""
