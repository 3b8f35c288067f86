"""Training: ways to train the original model. Plug-ins with `Params`, `start` and `step`. They use `fu.federation`."""
