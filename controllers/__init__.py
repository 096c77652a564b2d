"""What the centre decides: reconcilers over ports, level-based, named as the field names them."""
