"""Plug-ins: ways to share a data set out to clients, each with `Params`, `check` and `deal`.

Use `fu.data`; import no torch, so that the plan can check them.
"""
