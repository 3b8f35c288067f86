"""All data sets by name, for checking a config."""

from fu.data.dataset import about
from fu.plan.inputs import available

DATASETS = {name: about(name) for name in available("datasets")}
