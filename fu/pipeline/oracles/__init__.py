"""Archives of original and retrained models of a scenario, from which others audit their methods (docs/oracles.md)."""
