"""Plug-ins: ways to train the original model, each with `Params`, `start` and `step`. Use `fu.federation`."""
