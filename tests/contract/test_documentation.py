"""Every plug-in can be used, and says what it does, where it is from and what its hyper-parameters mean."""

import re

import pytest

from fu import plugins
from fu.pipeline.provenance.catalogue import KINDS, NEEDED, metrics_of
from fu.pipeline.settings.sources import origin_of
from tests.contract.names import FOLDER, case, files_of, is_helper, pairs_of, plugins_of, problem
from tests.factories import default_params

FILES = [case(kind, name, kind, name) for kind in KINDS for name in files_of(kind) if not is_helper(kind, name)]
OF_PAPERS = ("methods", "training", "models", "partitions", "attacks", "projections")
WITH_PARAMS = pairs_of(*OF_PAPERS, "claims")
OURS = pairs_of(*OF_PAPERS, only=lambda *_: FOLDER is None)


def documentation(kind: str, name: str) -> str:
    return " ".join((plugins.load(kind, name).__doc__ or "").split())


@pytest.mark.parametrize(("kind", "name"), FILES)
def test_a_plugin_can_be_used(kind: str, name: str) -> None:
    """The file can be imported, and defines the names that its kind needs, with the right arguments (docs/plugins)."""
    if told := problem(kind, name):
        pytest.fail(told, pytrace=False)


@pytest.mark.parametrize(("kind", "name"), pairs_of(*KINDS))
def test_a_plugin_and_its_functions_are_documented(kind: str, name: str) -> None:
    """The file and the functions that `fu` calls have docstrings."""
    assert documentation(kind, name)
    for function in plugins.CALLED[kind].keys() & NEEDED[kind]:
        assert getattr(plugins.load(kind, name), function).__doc__, function


@pytest.mark.parametrize(("kind", "name"), OURS)
def test_a_plugin_of_this_repository_names_its_source(kind: str, name: str) -> None:
    """In this repository the docstring and every hyper-parameter with a default name a source: the place in a paper, a
    citation with its year, the authors' code, or 'our choice: ' and the reason.
    """
    assert origin_of(documentation(kind, name)), documentation(kind, name)
    for field, about in plugins.load(kind, name).Params.model_fields.items():
        assert about.is_required() or origin_of(about.description), (field, about.description)


@pytest.mark.parametrize("name", plugins_of("evaluation", lambda _: FOLDER is None))
def test_a_metric_of_this_repository_names_its_source(name: str) -> None:
    """In this repository every metric names a source: the place in a paper, a citation with its year, the authors'
    code, or 'our choice: ' and the reason.
    """
    for metric in metrics_of(name):
        assert origin_of(metric.source), (metric.name, metric.source)


@pytest.mark.parametrize("name", plugins_of("methods"))
def test_a_method_says_what_it_stores_and_communicates(name: str) -> None:
    """The docstring says what the method 'stores' and 'communicates', in these words."""
    text = documentation("methods", name)
    assert re.search(r"\b[Ss]tores\b", text)
    assert re.search(r"\bcommunicates\b", text)


@pytest.mark.parametrize(("kind", "name"), WITH_PARAMS)
def test_hyper_parameters_are_documented_and_unknown_ones_refused(kind: str, name: str) -> None:
    """`Params` forbids unknown keys. Every field has a description, and every field without a default an example."""
    model = plugins.load(kind, name).Params
    for field, about in model.model_fields.items():
        assert about.description, field
        assert not about.is_required() or about.examples, f"{field} has neither a default nor an example"
    assert default_params(model) == default_params(model)
    assert model.model_config.get("extra") == "forbid"
