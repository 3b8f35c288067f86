"""Methods: unlearning methods. Plug-ins with `Params`, `needs`, `start` and `step`. They use `fu.federation`."""
