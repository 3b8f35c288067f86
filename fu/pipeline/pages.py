"""The pages that are made from the code: settings, every kind of plug-in, every paper. `make docs` writes them."""

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fu import plugins
from fu.data.dataset import about
from fu.federation.losses import OBJECTIVES
from fu.pipeline import catalogue
from fu.pipeline.digest import ROOT
from fu.pipeline.settings import papers, reference
from fu.pipeline.settings.records import Paper
from fu.pipeline.settings.reference import rows

ORIGINS = {
    "paper": "Settings as the paper states them",
    "code": "Settings from the authors' code, where the paper is silent or says otherwise",
    "ours": "Our choices, where both are silent",
}


def pages() -> dict[str, str]:
    """Return every generated page by its path below docs/."""
    found = {"config.md": reference.text()}
    found |= {f"plugins/{kind}.md": plugins_page(kind) for kind in catalogue.KINDS}
    return found | {f"papers/{name}.md": paper_page(name) for name in papers.names("papers")}


def write(folder: Path) -> None:
    """Write the pages into a folder, and remove those that nothing makes any more."""
    found = pages()
    for below in ("plugins", "papers"):
        (folder / below).mkdir(parents=True, exist_ok=True)
        for path in (folder / below).glob("*.md"):
            if f"{below}/{path.name}" not in found:
                path.unlink()
    for name, text in found.items():
        (folder / name).write_text(text, encoding="utf-8")


# ---- plug-ins ----------------------------------------------------------------------------------------------------


def plugins_page(kind: str) -> str:
    """Return the page of a kind of plug-in: what each one does, its hyper-parameters, what it declares."""
    needed = ", ".join(f"`{name}`" for name in catalogue.NEEDED[kind])
    parts = [
        f"# {kind.capitalize()}",
        f"{_doc(importlib.import_module(f'fu.{kind}'))} A file of `fu/{kind}` defines {needed}. (Made by `make docs`.)",
        *(_losses() if kind == "methods" else ()),
    ]
    for name in catalogue.available(kind):
        module = plugins.load(kind, name)
        parts += [f"## {name}", _doc(module), *_facts(kind, name)]
        if params := getattr(module, "Params", None):
            parts.append(reference.table(params) if params.model_fields else "No hyper-parameters.")
    return "\n\n".join(parts) + "\n"


def _doc(documented: object) -> str:
    """Return a docstring, each paragraph on one line, so that no wrapped formula reads as a list."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", inspect.getdoc(documented) or "")


def _losses() -> Iterator[str]:
    yield (
        'A client trains on one of these losses, `local_updates(..., objective="cross_entropy")`, or on a function of '
        "logits and labels that stands in the method's own file, `objective=my_loss`:"
    )
    yield rows(("loss", "per sample"), [(f"`{name}`", _doc(loss)) for name, loss in OBJECTIVES.items()])


def _facts(kind: str, name: str) -> Iterator[str]:
    declared: dict[str, Any] = catalogue.declared(kind, name)
    if needs := declared.get("needs"):
        yield f"Needs the history {', '.join(f'`{history}`' for history in sorted(needs))}."
    if kind == "evaluation":
        cells = [
            (f"`{metric.name}`", metric.label, metric.formula, metric.unit, metric.better, metric.source)
            for metric in catalogue.metrics_of(name)
        ]
        yield rows(("metric", "label", "formula", "unit", "better", "source"), cells)
    if kind == "datasets":
        facts = about(name)
        origin = (
            "embedded"
            if facts.embedded
            else f"torchvision's {facts.torchvision}"
            if facts.torchvision
            else "an archive"
        )
        yield f"{facts.samples:,} images of {' x '.join(map(str, facts.shape))}, {facts.classes} classes; {origin}."
    if kind == "artefacts":
        yield f"Made from: {declared['READS']}."


# ---- papers ------------------------------------------------------------------------------------------------------


def paper_page(name: str) -> str:
    """Return the page of a paper: what is reproduced of it, and where each of its values is from."""
    paper = papers.validate(Paper, papers.read_paper(name), f"{name}.yaml")
    parts = [
        f"# {paper.title}",
        f"{paper.citation} Made by `make docs` from `workflow/papers/{name}.yaml`. `make reproduce PAPERS={name}` "
        "makes all of it, `TARGETS=...` one table or figure. * marks what is not in the paper. A scenario's value "
        "replaces one that holds everywhere, and a method's value replaces both.",
        "## Tables and figures",
        rows(
            ("target", "kind", "what"),
            [
                (f"`{name}_{key}`", f"[{entry.kind}](../plugins/artefacts.md#{entry.kind})", entry.title + _star(entry))
                for key, entry in paper.artefacts.items()
            ],
        ),
        "## Methods",
        rows(
            ("method", "label", "plug-in", "source"),
            [
                (f"`{key}`", method.label + _star(method), _plugin(method), method.source)
                for key, method in paper.methods.items()
            ],
        ),
        "## Scenarios",
        rows(("scenario", "label"), [(f"`{key}`", scenario.label) for key, scenario in paper.scenarios.items()]),
    ]
    grouped: dict[tuple[str, str, str], list[str]] = {}
    for where, setting, value, source in [*sourced(papers.load("papers", name, "paper")), *_defaults(paper)]:
        grouped.setdefault((setting, reference.shown(value), source), []).append(where)
    for origin, heading in ORIGINS.items():
        cells = [
            (f"`{setting}`", f"`{value}`", ", ".join(dict.fromkeys(wheres)), source)
            for (setting, value, source), wheres in grouped.items()
            if origin_of(source) == origin
        ]
        parts += [f"## {heading}", rows(("setting", "value", "where", "source"), cells)]
    return "\n\n".join(parts) + "\n"


def _star(entry: Any) -> str:
    return "" if entry.in_paper else " *"


def _plugin(method: Any) -> str:
    if method.unlearned_from:
        return f"unlearned by `{method.unlearned_from}`"
    return f"[{method.plugin}](../plugins/methods.md#{method.plugin})"


def sourced(raw: dict[str, Any]) -> Iterator[tuple[str, str, Any, str]]:
    """Yield place, setting, value and source of every value of a paper's file."""

    def walk(tree: Any, *path: str) -> Iterator[tuple[str, Any, str]]:
        if isinstance(tree, dict) and set(tree) == {"value", "source"}:
            yield ".".join(path), tree["value"], tree["source"]
        elif isinstance(tree, dict):
            for key, below in tree.items():
                yield from walk(below, *path, key)

    for part in ("seeds", "settings"):
        yield from (("everywhere", *found) for found in walk(raw[part], *([part] if part == "seeds" else [])))
    for group in ("scenarios", "methods"):
        for name, entry in raw[group].items():
            yield from ((f"`{name}`", *found) for found in walk(entry.get("settings", {})))
            yield from ((f"`{name}`", *found) for found in walk(entry.get("params", {}), "params"))
            for method, tree in entry.get("methods", {}).items():
                yield from ((f"`{name}`, `{method}`", *found) for found in walk(tree))


def _defaults(paper: Paper) -> Iterator[tuple[str, str, Any, str]]:
    """Yield the same of the defaults of the methods' hyper-parameters."""
    for plugin in dict.fromkeys(method.plugin for method in paper.methods.values() if method.plugin):
        for name, field in plugins.load("methods", plugin).Params.model_fields.items():
            yield f"`{plugin}`", f"params.{field.alias or name}", field.default, field.description or ""


def origin_of(source: str) -> str:
    """Return where a value is from; of several origins the one that is farthest from the paper."""
    return "ours" if "our choice" in source else "code" if "authors'" in source or "'s code" in source else "paper"


if __name__ == "__main__":
    write(ROOT / "docs")
