"""Federated unlearning, judged: one federation, every method, every evaluation of four papers.

Three floors, each of which may use those below it: `pipeline`; `artefacts` and `api`; the science. In the science the
kinds of plug-ins rest on `federation`, that on `data`, all on `errors`, `plugins`, `seeds` and `types`; `make lint`
holds it. `results`, above them all, reads what was made, without a plan.
"""

import sys

from fu import sources

sources.install(__file__, sys._getframe().f_code)
