"""Federated unlearning, judged: one federation, every method, every evaluation of four papers.

Three layers, each of which may use those below it: `pipeline`; `artefacts` and `api`; the science. In the science the
kinds of plug-ins rest on `federation`, that on `data`, all on `errors`, `plugins`, `seeds` and `types`. They are
enforced by `make lint`. `results`, above them all, reads what was made, without a plan.
"""

import sys

from fu import sources

sources.install(__file__, sys._getframe().f_code)
