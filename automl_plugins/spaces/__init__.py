"""The search space as arrays: vectors, conditions, values, unions, branches and cells."""
