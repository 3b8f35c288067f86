"""Does anything of the forgotten clients remain? Judged over repeats against retrained models, on stored predictions.

Each file is an audit: `LEAST` repeats of each kind of model, `METRICS`, `SCORE` (the one that is drawn, and grows with
what is left), `LABEL`, `CAVEAT` and `audit(models)`; where it decides something also `found(values)`: whether these
models fail it. Those without only describe. All is numpy, knows no path and no method.
"""
