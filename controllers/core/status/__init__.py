"""What comes back, as status of placements and objects."""
