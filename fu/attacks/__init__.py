"""Plug-ins: what is planted in the forgotten clients' data, each with `Params`, `check`, `draw` and `mark`.

Use `fu.data`; import no torch at the top, so that the plan can check them.
"""
