"""A reproducible pipeline from data to paper tables for reinforcement learning with verifiable rewards."""
