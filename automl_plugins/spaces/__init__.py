"""What the values of a search space are: one rule, for all frameworks."""
