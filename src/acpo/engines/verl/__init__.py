"""verl trains: our losses in its workers, no fork."""
