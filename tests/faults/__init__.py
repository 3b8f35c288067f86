"""Faults on purpose."""
