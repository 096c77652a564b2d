"""What the publisher of releases makes: keys, roots, and releases that they sign."""
