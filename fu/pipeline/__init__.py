"""Turns papers into jobs. Only this package depends on Snakemake, paths and papers; it may import all others.

Rooms, each of which uses those below it: `cli`, `documents`, `engine`, `bundle`, `page`, `plan`, `settings`, `stages`,
`oracles`, `provenance`.
"""
