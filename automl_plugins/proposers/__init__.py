"""What proposes the next configuration: from a history to a proposal, step by step."""
