"""Kubernetes objects: kinds, keys, selectors, order, files that people write."""
