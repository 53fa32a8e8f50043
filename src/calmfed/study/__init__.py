"""Studies: grids of runs, and what they show."""
