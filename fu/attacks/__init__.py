"""Attacks: manipulations of the forgotten clients' data. Plug-ins with `Params`, `check`, `draw` and `mark`.

Trainings and controls mark a share of these clients' samples; methods that unlearn get all of them marked, as in
FedOSD's code. So a method that trains on the forgotten clients (FedQUIT, PUF, gradient ascent) sees more marked samples
than the original model did.

They use `fu.data` and do not import torch at the top of the file, so that the plan can check them.
"""
