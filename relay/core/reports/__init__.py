"""What children report of placements: taken within bounds, folded, and passed up."""
