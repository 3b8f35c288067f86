"""Turns papers into jobs. The only package that knows Snakemake, paths and papers; may use everything below it."""
