"""Data sets by name, and who holds what of them."""
