"""The pure part of each controller: objects in, decisions out."""
