"""Plug-ins: unlearning methods, each with `Params`, `needs`, `start` and `step`. Use `fu.federation`."""
