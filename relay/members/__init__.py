"""A node on several machines: which of its members is active, by what each of them saw."""
