"""Generates the reference of all settings, docs/config.md, from config.md.in for `make docs`."""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml
from jinja2 import Template
from pydantic import BaseModel

from fu.artefacts.entry import Claim
from fu.artefacts.style import Figures
from fu.data.forget import Forget
from fu.pipeline.provenance.digest import ROOT
from fu.pipeline.settings import records
from fu.plugins import Choice
from fu.types import NAME, WORD

TEMPLATE = ROOT / "docs/config.md.in"
SCHEMA = "workflow/schemas/config.schema.yaml"  # where snakedeploy looks for it
NAMES = (NAME, f"^{WORD}$")
# Of each tuple, the first key that a schema has counts; pydantic writes ge and le after a validator.
BOUNDS = (
    (("exclusiveMinimum", ">"), ("minimum", "≥"), ("ge", "≥")),
    (("exclusiveMaximum", "<"), ("maximum", "≤"), ("le", "≤")),
)
PLAIN = {"string": "text", "integer": "integer", "number": "number", "boolean": "true or false", "null": "null"}


SECTIONS: dict[str, type[BaseModel]] = {  # by the heading of each
    "config.yaml": records.Config,
    "figures": Figures,
    "A paper's YAML file (workflow/papers)": records.Paper,
    "settings": records.Settings,
    "settings.data": records.Data,
    "settings.data.forget": Forget,
    "settings.training": records.Training,
    "settings.shadows": records.Shadows,
    "settings.relearning": records.Relearning,
    "settings.unlearning": records.Unlearning,
    "settings.recovery": records.Recovery,
    "model, data.partition, data.attack, training.method, recovery.projection": Choice,
    "scenarios.{name}": records.Scenario,
    "scenarios.{name}.vary.{short}": records.Vary,
    "trainings.{name}": records.Trained,
    "methods.{name}": records.Method,
    "artefacts.{name}": records.Artefact,
    "claims.{name}": Claim,
    "A preset (workflow/presets/{name}.yaml)": records.Preset,
}


def kind(schema: Mapping[str, Any]) -> str:
    """Return, in words, which values a JSON schema accepts."""
    if "$ref" in schema:
        record = schema["$ref"].rpartition("/")[2]
        titles = [title for title, described in SECTIONS.items() if described.__name__ == record]
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


def section(title: str) -> str:
    """Return a section of the reference: its heading, and what its record is and holds."""
    return f"## {title}\n\n{inspect.getdoc(SECTIONS[title])}\n\n{table(SECTIONS[title])}"


def text() -> str:
    """Return the whole reference: its template, which has the examples, with all sections."""
    template = Template(TEMPLATE.read_text(encoding="utf-8"), keep_trailing_newline=True)
    return template.render(section=section)
