"""`leafcast demo`: a tree that lives for a minute, and what is shown of it."""
