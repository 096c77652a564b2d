"""What collectors collect: rows of each destination, merged at each tier by one algebra."""
