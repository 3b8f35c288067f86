"""Federated unlearning on one's own model and data, from Python: train, unlearn, evaluate, audit (docs/python.md).

Uses the science alone; needs neither a workflow nor files. No job imports it.
"""

from fu.api.federation import Federation as Federation
from fu.api.model import Model as Model
