"""Benchmarks that the field knows: the problems, and the pages that show how samplers do."""
