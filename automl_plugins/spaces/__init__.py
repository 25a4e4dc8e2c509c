"""The search space as arrays: vectors, conditions, values, branches and cells."""
