"""Table 5."""
