"""Table 7."""
