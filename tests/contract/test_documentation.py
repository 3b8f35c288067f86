"""Every plug-in says what it does, where it is from and what its hyper-parameters mean."""

import re

import pytest

from fu import plugins
from fu.pipeline.catalogue import KINDS, available
from tests.contract.names import pairs_of, plugins_of
from tests.factories import default_params

WITH_PARAMS = pairs_of("methods", "training", "models", "partitions", "attacks", "projections")
FUNCTIONS = {
    "methods": ("start", "step"),
    "training": ("start", "step"),
    "models": ("build",),
    "datasets": (),
    "partitions": ("check", "deal"),
    "attacks": ("check", "draw", "mark"),
    "histories": ("record",),
    "projections": ("project",),
    "evaluation": ("evaluate",),
    "artefacts": ("make",),
    "claims": ("operands", "statistics", "region"),
}


def documentation(kind: str, name: str) -> str:
    return " ".join((plugins.load(kind, name).__doc__ or "").split())


def test_every_kind_has_the_plugins_that_this_project_is_about() -> None:
    about = {
        "methods": {
            "retrain",
            "federaser",
            "fedrecovery",
            "mode",
            "sfu",
            "ewcsga",
            "fupga",
            "fedosd",
            "fr2",
            "untouched",
            "random_weights",
        },
        "training": {"fedavg", "safari", "server_sgd"},
        "models": {"mlp", "lenet5", "cnn", "nfresnet18"},
        "datasets": {"mnist", "fashion_mnist", "cifar10", "cifar100", "digits", "digits_rgb"},
        "partitions": {"iid", "pat", "balanced_classes"},
        "attacks": {"patch"},
        "histories": {"last_local_models", "update_norms", "update_sums"},
        "projections": {"away_from_original"},
        "evaluation": {"utility", "backdoor", "distance", "conflicts", "predicted_classes", "accuracy", "cost"},
        "artefacts": {"table", "curves", "classes", "across", "runtime", "losses", "images", "verdicts"},
        "claims": {"order", "limit", "equal", "trend", "best", "exact"},
    }
    assert set(about) == set(KINDS) == set(FUNCTIONS)
    assert {kind: names - set(available(kind)) for kind, names in about.items()} == {kind: set() for kind in about}


@pytest.mark.parametrize(("kind", "name"), pairs_of(*KINDS))
def test_a_plugin_and_its_functions_are_documented(kind: str, name: str) -> None:
    assert documentation(kind, name)
    for function in FUNCTIONS[kind]:
        assert getattr(plugins.load(kind, name), function).__doc__, function


@pytest.mark.parametrize(("kind", "name"), WITH_PARAMS)
def test_a_plugin_names_its_source(kind: str, name: str) -> None:
    assert re.search(r"et al\. (19|20)\d\d|FedOSD|SAFARI|our choice", documentation(kind, name))


@pytest.mark.parametrize("name", plugins_of("methods"))
def test_a_method_says_what_it_stores_and_communicates(name: str) -> None:
    text = documentation("methods", name)
    assert re.search(r"\b[Ss]tores\b", text)
    assert re.search(r"\bcommunicates\b", text)


@pytest.mark.parametrize(("kind", "name"), WITH_PARAMS)
def test_hyper_parameters_are_documented_and_unknown_ones_refused(kind: str, name: str) -> None:
    model = plugins.load(kind, name).Params
    for field, about in model.model_fields.items():
        assert about.description, field
        assert not about.is_required() or about.examples, f"{field} has neither a default nor an example"
    assert default_params(model) == default_params(model)
    assert model.model_config["extra"] == "forbid"
