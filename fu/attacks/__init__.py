"""Attacks: manipulations of the forgotten clients' data. Plug-ins with `Params`, `check`, `draw` and `mark`.

During training, and for controls, a share of these clients' samples is marked; for unlearning methods all are, as in
FedOSD's code. A method that trains on the forgotten clients (FedQUIT, PUF, gradient ascent) therefore sees more marked
samples than the original model did.

They use `fu.data` and do not import torch at the top of the file, so that the plan can check them.
"""
