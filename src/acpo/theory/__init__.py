"""What the paper derives, as code: pure numpy and scipy, every function with its equation."""
