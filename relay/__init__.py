"""How it travels: the relay that runs the same at every tier, and the syncer of an edge."""
