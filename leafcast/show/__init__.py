"""Values as text for people: tables, descriptions, durations; nothing here asks or runs a tree."""
