"""What was observed: trials of one search, and the records that earlier searches left."""
