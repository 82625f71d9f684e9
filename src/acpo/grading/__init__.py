"""Graders of untrusted answers: pure, bounded in time and memory, never executing what they grade."""
