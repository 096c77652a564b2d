"""What Leafcast costs and how fast it is, each figure beside the raw limit of the same run."""
