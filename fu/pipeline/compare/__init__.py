"""What differs between two runs: what made them, files, numbers. No plan is needed."""
