"""Turns papers into jobs. The only room that knows Snakemake, paths and papers; may use everything below it."""
