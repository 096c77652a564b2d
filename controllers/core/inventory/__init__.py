"""What an inventory space says: destinations, Locations, who is meant, who moves."""
