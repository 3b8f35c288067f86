"""Plug-ins: architectures, each with `Params`, `build` and `ESTIMATE`. Use torch; `fu.data` has pretrained weights."""
