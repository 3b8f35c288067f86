"""Plug-ins: what is done to updates in post-training, each with `Params` and `project`. Use `fu.federation`."""
