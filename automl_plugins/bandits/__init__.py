"""Which algorithm gets the next trial: bandits, successive filtering, weighted model sampling."""
