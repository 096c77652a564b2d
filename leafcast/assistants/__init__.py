"""What assistants may ask of a tree: they read, within bounds, and are told no secret."""
