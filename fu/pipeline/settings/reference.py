"""Write the reference of all settings: `python -m fu.pipeline.settings.reference > docs/config.md`."""

from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from fu.pipeline.settings import records

MODELS: dict[str, type[BaseModel]] = {
    "config.yaml": records.Config,
    "A paper's YAML file (workflow/papers)": records.Paper,
    "settings: what a scenario computes with": records.Settings,
    "settings.data": records.Data,
    "settings.data.forget": records.Forget,
    "settings.training": records.Training,
    "settings.unlearning": records.Unlearning,
    "settings.recovery": records.Recovery,
    "model, data.partition, data.attack, training.method, recovery.projection": records.Plugin,
    "scenarios.{name}": records.Scenario,
    "methods.{name}": records.Method,
    "artefacts.{name}": records.Artefact,
    "A preset (workflow/presets)": records.Preset,
}


def _kind(annotation: Any) -> str:
    if isinstance(annotation, type):
        return annotation.__name__
    return str(annotation).replace("typing.", "").replace("fu.pipeline.settings.records.", "").replace("|", "or")


def _default(field: FieldInfo) -> str:
    return "required" if field.is_required() else f"`{field.get_default(call_default_factory=True)}`"


def table(model: type[BaseModel]) -> str:
    """Return one record's keys as a Markdown table."""
    rows = [
        f"| `{name}` | {_kind(field.annotation) if 'Annotated' not in str(field.annotation) else 'see text'} "
        f"| {_default(field)} | {field.description or ''} |"
        for name, field in model.model_fields.items()
    ]
    return "\n".join(["| key | type | default | meaning |", "|---|---|---|---|", *rows])


def text() -> str:
    """Return the whole reference."""
    parts = [
        "# Settings\n\nMade from `fu/pipeline/settings/records.py` by "
        "`python -m fu.pipeline.settings.reference > docs/config.md`; a test "
        "compares them. "
        "An unknown key is an error that names the nearest valid one. Papers, presets and `overrides` are laid over "
        "each other in this order; in a paper's file a value is written `{value: ..., source: ...}`."
    ]
    parts += [f"## {title}\n\n{(model.__doc__ or '').strip()}\n\n{table(model)}" for title, model in MODELS.items()]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(text(), end="")
