"""What is handed to who helps: one file about a tree, without a secret in it."""
