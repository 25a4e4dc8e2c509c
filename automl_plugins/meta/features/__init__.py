"""The parts of ``meta_features``: reading a table, the groups of features, the clock."""
