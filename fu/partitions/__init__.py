"""Partitions: ways to distribute a data set among clients. Plug-ins with `Params`, `check` and `deal`.

They use `fu.data` and do not import torch, so that the plan can check them.
"""
