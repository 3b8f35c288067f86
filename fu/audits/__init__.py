"""Does anything of the forgotten clients remain? Judged over repeats against retrained models, on stored predictions.

Each file is an audit: `LEAST` repeats of each kind of model, `METRICS`, `audit(models)`, and where it decides something
`SCORE` (the metric that grows with what is left) and `found(values)`. Those without only describe. All is numpy, knows
no path and no method.
"""
