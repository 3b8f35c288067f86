"""Write the page: equal artefacts give equal bytes, and a page that would not differ is left alone."""

import ast
import hashlib
import json
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import suppress
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from fu.artefacts.panels import boxed
from fu.pipeline.page.made import Artefact, read
from fu.pipeline.plan.estimates import counted, lasting
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance.digest import module_file
from fu.pipeline.settings.records import Paper

HERE = Path(__file__).parent
VERDICTS = "verdicts"  # the artefact of a paper that judges its claims
ROWS = 100  # of numbers that have no table of their own
WHAT = ["metric", "quantity"]  # columns that say what a number measures
COLOURS = 128  # of a picture on the page: half the size of an SVG, and as sharp as the artefact's own PNG
SMALL = 800  # pixels across a picture on the first screen
IMAGE = re.compile(r'(<img [^>]*)src="[^"]*">')


def update(plan: Plan) -> str:
    """Write the page of a plan's preset where it would differ; return what is wrong in one sentence, or ""."""
    path = Path(plan.paths.page)
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        page = render(path.parent, plan.config.preset, plan.preset.description, plan.papers).encode()
        if not path.is_file() or path.read_bytes() != page:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_bytes(page)
            part.replace(path)
    except Exception as error:  # results are there and right without it
        text = str(error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}")
        return f"error: {path}: the page was not made ({' '.join(text.split())}); all tables and figures are there."
    finally:
        with suppress(OSError):
            part.unlink()
    return ""


def render(
    root: Path, preset: str, description: str, papers: Mapping[str, Paper], some: list[Artefact] | None = None
) -> str:
    """Return the page of what lies below `root`: of the planned papers in their order, then of others.

    `some`: of these artefacts alone, which were read and found to be as their jobs wrote them.
    """
    artefacts, wrong = read(root / "artefacts") if some is None else (some, {})
    scenarios = [scenario for artefact in artefacts for scenario in artefact.about["spec"]["scenarios"]]
    names = [*papers, *sorted({artefact.key[0] for artefact in artefacts} - {*papers})]
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    loader = FileSystemLoader(HERE)
    engine = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return engine.get_template("page.html").render(
        preset=preset,
        description=description,
        papers=[_paper(name, papers.get(name), artefacts) for name in names],
        artefacts=artefacts,
        wrong=wrong.values(),
        stand_ins=sorted({f"{one['data']} in place of {one['replaces']}" for one in scenarios if one["replaces"]}),
        methods=_methods(papers, artefacts),
        costs={path: cost["seconds"] for artefact in artefacts for path, cost in artefact.about["costs"].items()},
        lasting=lasting,
        style=Markup(style),
        script=Markup(script),
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _plugins(paper: Paper | None) -> dict[str, str]:
    """Return the plug-in of each training and method of a paper, such as "methods/fedosd"."""
    if paper is None:
        return {}
    trainings = {name: f"training/{one.plugin}" for name, one in paper.trainings.items()}
    methods = paper.methods
    return trainings | {name: f"methods/{methods[one.unlearned_from or name].plugin}" for name, one in methods.items()}


def _named(plugins: Mapping[str, str], tree: Any) -> str:
    """Return the plug-ins of all trainings and methods named in nested data, separated by spaces."""
    text = json.dumps(tree)
    return " ".join(dict.fromkeys(plugin for name, plugin in plugins.items() if json.dumps(name) in text))


def _methods(papers: Mapping[str, Paper], artefacts: list[Artefact]) -> dict[str, dict[str, Any]]:
    """Return each plug-in that trains or unlearns: its label, what it does, names in papers, sources, and cost."""
    shown = {(artefact.key[0], one["name"]) for artefact in artefacts for one in artefact.about["spec"]["methods"]}
    costs = {path: cost["seconds"] for artefact in artefacts for path, cost in artefact.about["costs"].items()}
    methods: dict[str, dict[str, Any]] = {}
    for paper, about in papers.items():
        for name, plugin in _plugins(about).items():
            if (paper, name) in shown:
                used = {**about.trainings, **about.methods}[name]
                empty = {"label": used.label, "about": _first_line(plugin), "names": {}, "sources": [], "costs": []}
                one = methods.setdefault(plugin, empty)
                one["names"].setdefault(paper, []).extend([name, used.label])
                one["sources"] += {used.source} - {"", None, *one["sources"]}
                own = re.compile(rf".*/{re.escape(paper)}/[^/]*/[^/]*/{re.escape(name)}(\+[^/]*)?\.[a-z]+\.cost\.json")
                one["costs"] += [seconds for path, seconds in costs.items() if own.fullmatch(path)]
    for one in methods.values():
        jobs = one.pop("costs")
        one["cost"] = f"{lasting(sum(jobs))} in {counted(len(jobs), 'job')}" if jobs else ""
    return dict(sorted(methods.items(), key=lambda item: (item[0].partition("/")[0], item[1]["label"].lower())))


def _first_line(plugin: str) -> str:
    """Return the first line of a plug-in's docstring, or "" where it has none."""
    path = module_file(f"fu.{plugin.replace('/', '.')}")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path else None
    return (text or "").partition("\n")[0]


def _paper(name: str, paper: Paper | None, artefacts: list[Artefact]) -> dict[str, Any]:
    """Return what the page shows of a paper."""
    made = {artefact.key[1]: artefact for artefact in artefacts if artefact.key[0] == name}
    planned, plugins = paper.artefacts if paper else {}, _plugins(paper)
    citation = paper.citation if paper else next(iter(made.values())).about["spec"]["citation"]
    short = re.search(r"\(([^()]+)\)\.?$", citation)  # what people call it
    order = [key for key in (*planned, *sorted({*made} - {*planned})) if key in made]
    return {
        "name": name,
        "short": short[1] if short else name,
        "citation": citation,
        "links": {"Paper": paper.url, "Authors' code": paper.code} if paper else {},
        "claims": [*_claims(made[VERDICTS], made, plugins)] if VERDICTS in made else [],
        "cards": [_card(made[key], plugins) for key in order],
        "highlights": {
            key: _picture(made[key], SMALL)
            for key in order
            if key in planned and planned[key].highlight and made[key].has_picture
        },
        "unmade": {key: entry.title for key, entry in planned.items() if key not in made},
    }


def _claims(verdicts: Artefact, made: Mapping[str, Artefact], plugins: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield each claim of a paper with its verdict in all scenarios and what it rests on."""
    rows = verdicts.frame.astype(object).where(verdicts.frame.notna(), "")
    judged = verdicts.about["spec"].get("claims", {})
    for claim in rows[rows["scenario"] == ""].to_dict("records"):
        reasons = [reason for reason in rows[rows["claim"] == claim["claim"]]["reason"] if reason]
        yield {
            **{str(name): value for name, value in claim.items()},
            "reason": reasons[0] if reasons and claim["verdict"] == "not judged" else "",
            "rests_on": claim["artefact"] if claim["artefact"] in made else VERDICTS,
            "plugins": _named(plugins, judged.get(claim["claim"])),
        }


def _card(artefact: Artefact, plugins: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page shows of an artefact besides its provenance."""
    spec, (heading, body), path = artefact.about["spec"], artefact.page, "/".join(artefact.key)
    body = re.sub(r"<(/?)h2>", r"<\1h4>", body)
    if IMAGE.search(body):
        body = IMAGE.sub(rf'<a href="artefacts/{path}.svg">\1src="{_picture(artefact)}"></a>', body)
    return {
        "id": path,
        "of": artefact,
        "heading": Markup(heading),
        "body": Markup(body),
        "plugins": _named(plugins, [[method["name"] for method in spec["methods"]], spec.get("claims")]),
        "numbers": "" if "<table>" in body else _numbers(artefact),
        "compared": _compared(artefact),
    }


def _picture(artefact: Artefact, wide: int | None = None) -> str:
    """Return its picture as a data URL with few colours; `wide`: the largest width in pixels."""
    with Image.open(artefact.file("png")) as file:
        image = file.convert("RGB")
    if wide and wide < image.width:
        image = image.resize((wide, round(image.height * wide / image.width)), Image.Resampling.LANCZOS)
    kept = BytesIO()
    image.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(kept, "PNG")
    return f"data:image/png;base64,{b64encode(kept.getvalue()).decode()}"


def _table(frame: pd.DataFrame, label: str) -> Markup:
    """Return numbers as an HTML table, all text escaped."""
    cells = frame.map(lambda value: f"{value:.4g}" if isinstance(value, float) else value).where(frame.notna(), "–")
    return Markup(boxed(cells.astype(str).map(escape).rename(columns=escape), label))


def _numbers(artefact: Artefact) -> Markup:
    """Return the first numbers as HTML, those that the paper prints, too, before the others."""
    frame = artefact.frame
    if "published" in frame:
        frame = frame.sort_values("published", key=pd.isna, kind="stable")
    return _table(frame[:ROWS].dropna(axis=1, how="all"), f"Numbers of {artefact.about['spec']['title']}")


def _compared(artefact: Artefact) -> Markup | str:
    """Return how far our numbers are from the paper's, metric by metric, as HTML; "" where none is printed."""
    labels = {metric["name"]: metric["label"] for metric in artefact.about["spec"]["metrics"]}
    needed = ["published", "difference"]
    known = artefact.frame.reindex(columns=[*WHAT, *needed]).dropna(subset=needed)
    if known.empty:
        return ""
    names = known[WHAT].fillna("").replace(labels).agg(" ".join, axis=1).str.strip().rename("")
    ours, far = (part.groupby(names, sort=False) for part in (known["difference"], known["difference"].abs()))
    columns = {"numbers of the paper": ours.size(), "mean difference": ours.mean()}
    columns |= {"median distance": far.median(), "largest": far.max()}
    label = f"Differences of {artefact.about['spec']['title']} from the paper"
    return _table(pd.DataFrame(columns).reset_index(), label)
