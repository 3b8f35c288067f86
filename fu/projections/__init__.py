"""Projections: changes to updates in post-training. Plug-ins with `Params` and `project`. They use `fu.federation`."""
