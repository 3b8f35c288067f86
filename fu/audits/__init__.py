"""Audits: does anything of the forgotten clients remain? Decided over repeats by comparison with retrained models.

Each file is one audit of stored predictions. It defines `LEAST` (the minimum number of models of each kind), `METRICS`,
`SCORE` (the metric that is plotted; it grows with what remains), `LABEL`, `CAVEAT` and `audit(models)`. An audit that
decides something also names its p-value (`P`) and the controls that it must find (`SEES`, method plug-ins), and may
say something of each model (`runs(models)`). The others are descriptive. Audits use numpy and scipy only and know no
path and no method.
"""
