"""Statistics: from verdict stores to tests, intervals, effects and ranks. `docs/statistics.md` says it in words."""
