"""Artefacts in one file to hand over, and its check without a plan."""
