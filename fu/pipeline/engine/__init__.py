"""What runs the plan: Snakemake through one adapter, a fork server, a screen, and what a cluster is given."""
