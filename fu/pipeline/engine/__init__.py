"""Runs the plan: the adapter to Snakemake, the fork server, progress output, and submission to a cluster."""
