"""Models: plug-ins with `Params`, `build` and `ESTIMATE`. They use torch; `fu.data` provides pretrained weights."""
