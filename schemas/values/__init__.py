"""Values that everything else is made of: names, ids, bytes, JSON, words of errors."""
