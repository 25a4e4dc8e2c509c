"""Observations: trials of one search, and the records that earlier searches left."""
