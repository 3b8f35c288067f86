"""Attacks: manipulations of the forgotten clients' data. Plug-ins with `Params`, `check`, `draw` and `mark`.

They use `fu.data` and do not import torch at the top of the file, so that the plan can check them.
"""
