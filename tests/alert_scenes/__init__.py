"""Scenes of real nodes in which alerts fire, and what Prometheus would scrape of them."""
