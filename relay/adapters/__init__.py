"""One module per outside thing, and the only importer of its library."""
