"""Generates the reference of all settings, docs/config.md, for `make docs`."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import yaml
from pydantic import BaseModel

from fu.artefacts.style import Figures
from fu.data.forget import Forget
from fu.pipeline.settings import records
from fu.plugins import Choice
from fu.types import NAME, WORD

SCHEMA = "workflow/schemas/config.schema.yaml"  # where snakedeploy looks for it
NAMES = (NAME, f"^{WORD}$")
# Of each tuple, the first key that a schema has counts; pydantic writes ge and le after a validator.
BOUNDS = (
    (("exclusiveMinimum", ">"), ("minimum", "≥"), ("ge", "≥")),
    (("exclusiveMaximum", "<"), ("maximum", "≤"), ("le", "≤")),
)
PLAIN = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}


class Section(NamedTuple):
    """A part of the reference: its heading, the record that it describes, and an example for config.yaml, if any."""

    title: str
    record: type[BaseModel]
    example: str = ""


PRESET_EXAMPLE = """\
description: Two seeds of MNIST in Pat-50 on embedded data.
seeds: [0, 1]
replace_datasets: {mnist: digits, fashion_mnist: digits, cifar10: digits_rgb, cifar100: digits_rgb}
papers:
  fedosd:
    settings: {data: {samples: 600}, training: {rounds: 10}, unlearning: {rounds: 2}, total_rounds: 4}
    scenarios: {cifar10-pat50: {settings: {data: {samples: 1000}}}}
"""
SECTIONS = (
    Section("config.yaml", records.Config, "preset: smoke\npapers: [fedosd]\nseeds: [0, 1, 2]\nthreads: 2"),
    Section("figures", Figures),
    Section(
        "A paper's YAML file (workflow/papers)",
        records.Paper,
        "overrides: {fedosd: {seeds: [0, 1], artefacts: {table1: {title: FMNIST and CIFAR-10}}}}",
    ),
    Section(
        "settings",
        records.Settings,
        "overrides: {fedosd: {settings: {total_rounds: 20, grid: {unlearning.lr: [0.02, 0.005]}}}}",
    ),
    Section("settings.data", records.Data, "overrides: {fedosd: {settings: {data: {samples: 1200, clients: 20}}}}"),
    Section("settings.data.forget", Forget, "overrides: {fedosd: {settings: {data: {forget: {clients: [0, 3]}}}}}"),
    Section("settings.training", records.Training),
    Section("settings.shadows", records.Shadows),
    Section("settings.relearning", records.Relearning),
    Section("settings.unlearning", records.Unlearning),
    Section("settings.recovery", records.Recovery),
    Section(
        "model, data.partition, data.attack, training.method, recovery.projection",
        Choice,
        "overrides: {fedosd: {scenarios: {mnist-pat20: {settings: {model: {name: mlp, params: {hidden: 100}}}}}}}",
    ),
    Section(
        "scenarios.{name}",
        records.Scenario,
        "overrides:\n"
        "  fedosd:\n"
        "    scenarios:\n"
        '      mnist-pat20-m20: {label: "MNIST, Pat-20, m = 20", base: mnist-pat20, settings: {data: {clients: 20}}}\n'
        "    artefacts: {table8: {scenarios: [mnist-pat20, mnist-pat20-m20]}}",
    ),
    Section(
        "scenarios.{name}.vary.{short}",
        records.Vary,
        "overrides:\n"
        "  fedosd:\n"
        "    scenarios:\n"
        "      mnist-few: {label: MNIST of few clients, base: mnist-iid,\n"
        "        vary: {m: {setting: data.clients, values: [5, 10]}}}\n"
        "    artefacts: {mnist_curves: {scenarios: [mnist-few]}}",
    ),
    Section(
        "trainings.{name}",
        records.Trained,
        "overrides:\n"
        "  fedosd:\n"
        "    trainings:\n"
        "      momentum: {label: FedAvg with momentum, plugin: fedavg, in_paper: false,\n"
        "        settings: {training: {momentum: 0.9}}}\n"
        "    artefacts: {table8: {trainings: [momentum]}}",
    ),
    Section(
        "methods.{name}",
        records.Method,
        "overrides:\n"
        "  fedosd:\n"
        "    methods:\n"
        "      fedosd.ascent: {label: FedOSD with ascent, plugin: fedosd, params: {loss: ascent},\n"
        "        in_paper: false, shown_in: [table8]}",
    ),
    Section(
        "artefacts.{name}",
        records.Artefact,
        "overrides:\n"
        "  fedosd:\n"
        "    artefacts:\n"
        "      mine: {kind: table, title: FedOSD on MNIST, caption: Two scenarios., in_paper: false,\n"
        "        scenarios: [mnist-pat20, mnist-pat50], methods: [retraining, fedosd], metrics: [asr, r_acc]}",
    ),
    Section("A preset (workflow/presets/{name}.yaml)", records.Preset, PRESET_EXAMPLE.rstrip()),
)


def kind(schema: Mapping[str, Any]) -> str:
    """Return, in words, which values a JSON schema accepts."""
    if "$ref" in schema:
        record = schema["$ref"].rpartition("/")[2]
        titles = [section.title for section in SECTIONS if section.record.__name__ == record]
        return f"[{record}](#{_anchor(titles[0])})" if titles else record
    if "anyOf" in schema:
        kinds = [kind(one) for one in schema["anyOf"]]
        return " or ".join(one for one in kinds if not (one == "integer" and "number" in kinds))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    match schema.get("type"):
        case "array":
            if "prefixItems" in schema:
                return f"list: {', '.join(kind(item) for item in schema['prefixItems'])}"
            return "list of " + re.sub("^(name|integer|number)", r"\1s", kind(schema.get("items", {})))
        case "object":
            below = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
            return f"mapping of names to {kind(below[0])}" if isinstance(below[0], dict) else "mapping"
        case "string" if schema.get("pattern") in NAMES:
            return "name"
        case plain:
            return f"{PLAIN.get(str(plain), 'any')}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    ends = (next((f" {sign} {schema[key]:g}" for key, sign in end if key in schema), "") for end in BOUNDS)
    return " and".join(filter(None, ends))


def _anchor(title: str) -> str:
    kept = "".join(letter for letter in title.lower() if letter.isalnum() or letter in " -_")
    return kept.replace(" ", "-")


def rows(heads: Sequence[str], cells: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *cells]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def table(model: type[BaseModel]) -> str:
    """Return one record's keys as a Markdown table."""
    schema = model.model_json_schema()
    required = schema.get("required", [])
    phase = issubclass(model, records.Phase) and model is not records.Training
    # What a paper's file may leave to the phase before is filled in before a record is made (fu.pipeline.plan.grid).
    filled = {*records.INHERITED, "rounds"} if phase else set()
    cells = (
        (
            f"`{name}`",
            kind(field) + (" or null" if name in filled and " or null" not in kind(field) else ""),
            "required" if name in required else f"`{shown(_default(model, name))}`",
            field.get("description", ""),
        )
        for name, field in schema.get("properties", {}).items()
    )
    return rows(("key", "type", "default", "meaning"), cells)


def _default(model: type[BaseModel], name: str) -> Any:
    (described,) = [field for key, field in model.model_fields.items() if name in (key, field.alias)]
    return described.get_default(call_default_factory=True)


def shown(value: Any) -> str:
    """Return a value as a person would write it in YAML."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {shown(below)}' for key, below in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(shown, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def schema() -> str:
    """Return the JSON schema of config.yaml, as YAML, for editors and Snakemake's catalogue."""
    about = {"$schema": "https://json-schema.org/draft/2020-12/schema", **records.Config.model_json_schema()}
    made = "# Generated by `make docs` from fu/pipeline/settings/records.py.\n"
    return made + yaml.safe_dump(about, sort_keys=False, width=120, allow_unicode=True)


def text() -> str:
    """Return the whole reference."""
    parts = [
        "# Settings\n\nGenerated by `make docs` from `fu/pipeline/settings/records.py`. An unknown key is an error "
        "that suggests the nearest valid one. The preset is merged into the paper's file, then `overrides` of "
        "config.yaml into the result: mappings are merged key by key; anything else, including a list, is replaced. In "
        "a paper's file every value has a source, `{value: ..., source: ...}`; presets and config.yaml may have plain "
        "values.\n\n"
        "[Plug-ins](plugins) lists the choices for `name`, `plugin`, `dataset` and `kind`, with all hyper-parameters. "
        "The examples go into config.yaml, the last one into its own file."
    ]
    for title, model, example in SECTIONS:
        block = f"\n\n```yaml\n{example}\n```" if example else ""
        parts.append(f"## {title}\n\n{inspect.getdoc(model)}\n\n{table(model)}{block}")
    return "\n\n".join(parts) + "\n"
