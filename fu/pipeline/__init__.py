"""Turns papers into jobs. Only this package depends on Snakemake, paths and papers; it may import all others."""
