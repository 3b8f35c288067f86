"""Write the page: equal artefacts give equal bytes, and a page that would not differ is left alone."""

import ast
import hashlib
import os
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image

from fu.artefacts.panels import boxed
from fu.artefacts.result import MADE
from fu.pipeline.digest import module_file
from fu.pipeline.estimates import counted, lasting
from fu.pipeline.page.made import DIGITS, Artefact, read
from fu.pipeline.paths import ARTEFACT, CERTIFIED
from fu.pipeline.plan import Plan

HERE = Path(__file__).parent
VERDICTS = "verdicts"  # the artefact of a paper that judges its claims
UNJUDGED = "not judged"
SIGNS = {"holds": "✓", "does not hold": "✗", "undecided": "?", UNJUDGED: "–"}
ROWS = 100  # of numbers that have no table of their own
WHAT = ("metric", "quantity")  # columns that say what a number measures
COLOURS = 128  # of a picture on the page: half the size of an SVG, and as sharp as the artefact's own PNG
SMALL = 800  # pixels across a picture on the first screen
OTHER_DATA = " in place of "  # in the reason why a claim is not judged
SETTING = re.compile(rf"(?s)<details><summary>{MADE}</summary>(.*?)</details>")  # which the page shows with more
TABLE = re.compile(r"<details><summary>As a picture</summary><img [^>]*></details>")  # which the page shows as a table
IMAGE = re.compile(r'(<img [^>]*)src="[^"]*">')


class Used(NamedTuple):
    """A training or a method of a paper: how tables name it, its plug-in ("methods/fedosd"), and its source."""

    label: str
    plugin: str
    source: str


@dataclass(frozen=True)
class Planned:
    """A paper as the plan has it: how it is cited, and the titles of its artefacts by name.

    `links`: text -> address. `claims`: their names, in order. `highlights`: the artefacts whose pictures stand on the
    first screen. `methods`: its trainings and methods by name.
    """

    citation: str
    titles: dict[str, str]
    links: dict[str, str] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    highlights: tuple[str, ...] = ()
    methods: dict[str, Used] = field(default_factory=dict)


def planned(plan: Plan) -> dict[str, Planned]:
    """Return what the page shows of a plan's papers."""
    papers = {}
    for name, paper in plan.papers.items():
        methods = {key: Used(one.label, f"training/{one.plugin}", one.source) for key, one in paper.trainings.items()}
        for key, method in paper.methods.items():
            plugin = paper.methods[method.unlearned_from or key].plugin
            methods[key] = Used(method.label, f"methods/{plugin}", method.source)
        papers[name] = Planned(
            paper.citation,
            {key: entry.title for key, entry in paper.artefacts.items()},
            {text: url for text, url in (("Paper", paper.url), ("Authors' code", paper.code)) if url},
            (*paper.claims,),
            tuple(key for key, entry in paper.artefacts.items() if entry.highlight),
            methods,
        )
    return papers


def update(plan: Plan) -> str:
    """Write the page of a plan's preset where it would differ; return what is wrong in one sentence, or ""."""
    path = Path(plan.paths.page)
    try:
        write(path, plan.config.preset, plan.preset.description, planned(plan))
    except Exception as error:  # results are there and right without it
        text = str(error.strerror if isinstance(error, OSError) else f"{type(error).__name__}: {error}")
        return f"error: {path}: the page was not made ({' '.join(text.split())}); all tables and figures are there."
    return ""


def write(path: Path, preset: str, description: str, papers: dict[str, Planned]) -> None:
    """Write the page of what lies in a preset's folder, whole or not at all."""
    text = render(path.parent, preset, description, papers)
    if path.is_file() and path.read_bytes() == text.encode():
        return
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def render(
    root: Path, preset: str, description: str, papers: dict[str, Planned], some: list[Artefact] | None = None
) -> str:
    """Return the page of what lies below `root`: of the planned papers in their order, then of others.

    `some`: of these artefacts alone, which were read and found to be as their jobs wrote them.
    """
    artefacts, wrong = read(root / "artefacts") if some is None else (some, [])
    made = {artefact.key: artefact for artefact in artefacts}
    names = [*papers, *sorted({paper for paper, _ in made} - {*papers})]
    costs = {path: cost["seconds"] for artefact in artefacts for path, cost in artefact.about["costs"].items()}
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    templates = FileSystemLoader(HERE)
    environment = Environment(
        loader=templates, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = lambda value: "–" if value is None else _number(value)
    shown = [_paper(name, papers.get(name), made) for name in names]
    claims = [claim for paper in shown for claim in paper["claims"]]
    return environment.get_template("page.html").render(
        preset=preset,
        description=description,
        papers=shown,
        wrong=wrong,
        number=len(artefacts),
        planned=len({*made, *((name, key) for name, paper in papers.items() for key in paper.titles)}),
        stand_ins=_stand_ins(artefacts),
        seeds=_seeds(artefacts),
        versions=", ".join(dict.fromkeys(_versions(artefact.about) for artefact in artefacts)),
        first=[
            {
                "id": f"{name}/{key}",
                "paper": _short(name, paper.citation),
                "title": paper.titles[key],
                "picture": _picture(made[name, key], SMALL),
            }
            for name, paper in papers.items()
            for key in paper.highlights
            if (name, key) in made
        ],
        judged=any(claim["verdict"] != UNJUDGED for claim in claims),
        unjudged=_why(claims),
        methods=_methods(papers, artefacts),
        spent=lasting(sum(costs.values())),
        commits=_commits(artefacts),
        rows=ROWS,
        style=Markup(style),
        script=Markup(script),
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _stand_ins(artefacts: list[Artefact]) -> str:
    """Return which data stand in for which of the papers'."""
    scenarios = [scenario for artefact in artefacts for scenario in artefact.about["spec"]["scenarios"]]
    pairs = {f"{one['data']}{OTHER_DATA}{one['replaces']}" for one in scenarios if one["replaces"]}
    return ", ".join(sorted(pairs))


def _seeds(artefacts: list[Artefact]) -> str:
    """Return the seeds of all artefacts: "0 to 7", where none between is missing."""
    seeds = sorted({seed for artefact in artefacts for seed in artefact.about["spec"]["seeds"]})
    whole = len(seeds) > 2 and seeds == [*range(seeds[0], seeds[-1] + 1)]
    return f"{seeds[0]} to {seeds[-1]}" if whole else ", ".join(map(str, seeds))


def _why(claims: list[dict[str, Any]]) -> str:
    """Return how many claims are not judged, and why, in one sentence; "" where all are."""
    reasons = Counter(
        "other data stand in for the paper's" if OTHER_DATA in claim["why"] else claim["why"]
        for claim in claims
        if claim["verdict"] == UNJUDGED
    )
    said = (
        "; ".join(f"{reason} ({number})" for reason, number in reasons.most_common())
        if len(reasons) > 1
        else "".join(reasons)
    )
    return f"Not judged: {counted(reasons.total(), 'claim')}, because {said}." if reasons else ""


def _methods(papers: dict[str, Planned], artefacts: list[Artefact]) -> dict[str, dict[str, Any]]:
    """Return each plug-in that trains or unlearns: its label, what it does, sources, names in papers, and costs."""
    shown = {f"{artefact.key[0]}/{one['name']}" for artefact in artefacts for one in artefact.about["spec"]["methods"]}
    seconds: dict[str, dict[str, float]] = {}
    for path, cost in (pair for artefact in artefacts for pair in artefact.about["costs"].items()):
        *_, paper, _, _, file = ("", "", "", *Path(path).parts)
        trial = file.removesuffix(".cost.json").rpartition(".")[0].partition("+")[0]
        seconds.setdefault(f"{paper}/{trial}", {})[path] = cost["seconds"]
    found: dict[str, dict[str, Any]] = {}
    for paper, about in papers.items():
        for name, used in about.methods.items():
            if (key := f"{paper}/{name}") in shown:
                empty: dict[str, Any] = {"label": used.label, "names": {}, "sources": [], "seconds": {}}
                one = found.setdefault(used.plugin, empty)
                one["names"].setdefault(paper, []).extend([name, used.label])
                one["sources"].append(used.source)
                one["seconds"] |= seconds.get(key, {})
    for plugin, one in found.items():
        costs = one.pop("seconds")
        one["cost"] = f"{lasting(sum(costs.values()))} in {counted(len(costs), 'job')}" if costs else ""
        one["about"] = _first_line(plugin)
        one["sources"] = [*dict.fromkeys(filter(None, one["sources"]))]
    return dict(sorted(found.items(), key=lambda item: (item[0].partition("/")[0], item[1]["label"].lower())))


def _first_line(plugin: str) -> str:
    """Return the first line of a plug-in's docstring, or "" where it has none."""
    path = module_file(f"fu.{plugin.replace('/', '.')}")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) if path else None
    return (text or "").partition("\n")[0]


def _picture(artefact: Artefact, wide: int | None = None) -> str:
    """Return its picture in few colours as part of a page, no wider than so many pixels."""
    with Image.open(artefact.file("png")) as file:
        image = file.convert("RGB")
    if wide and wide < image.width:
        image = image.resize((wide, round(image.height * wide / image.width)), Image.Resampling.LANCZOS)
    kept = BytesIO()
    image.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(kept, "PNG")
    return f"data:image/png;base64,{b64encode(kept.getvalue()).decode()}"


def _paper(name: str, planned: Planned | None, made: dict[tuple[str, str], Artefact]) -> dict[str, Any]:
    """Return what the page shows of a paper."""
    titles = planned.titles if planned else {}
    order = [*titles, *sorted({key for paper, key in made if paper == name} - {*titles})]
    shown = [made[name, key] for key in order if (name, key) in made]
    citation = planned.citation if planned else shown[0].about["spec"]["citation"]
    claims = _claims(made[name, VERDICTS], shown, planned) if (name, VERDICTS) in made else []
    return {
        "name": name,
        "short": _short(name, citation),
        "citation": citation,
        "links": planned.links if planned else {},
        "claims": claims,
        "unjudged": _why(claims),
        "verdicts": _counts(claims),
        "artefacts": [_artefact(artefact, planned) for artefact in shown],
        "unmade": {f"{name}_{key}": title for key, title in titles.items() if (name, key) not in made},
    }


def _short(name: str, citation: str) -> str:
    """Return what people call a paper: the last words of its citation, in parentheses, or its name."""
    short = re.search(r"\(([^()]+)\)\.?$", citation)
    return short[1] if short else name


def _claims(artefact: Artefact, shown: list[Artefact], planned: Planned | None) -> list[dict[str, Any]]:
    """Return a paper's claims in its order, each with its verdict in all scenarios and what it rests on."""
    rows = artefact.frame.astype(object).where(artefact.frame.notna(), None)
    others = {artefact.path.name for artefact in shown}
    order = {claim: place for place, claim in enumerate(planned.claims if planned else ())}
    params = {name: claim["params"] for name, claim in artefact.about["spec"].get("claims", {}).items()}
    claims = []
    for claim in sorted(
        rows[rows["scenario"].isna()].to_dict("records"), key=lambda one: order.get(one["claim"], len(order))
    ):
        own = rows[(rows["claim"] == claim["claim"]) & rows["scenario"].notna()].to_dict("records")
        wanted = claim["needed"] if claim["verdict"] == "undecided" else None
        about = {
            "link": f"{artefact.key[0]}/{claim['artefact']}" if claim["artefact"] in others else "",
            "sign": SIGNS.get(claim["verdict"], ""),
            "ours": _interval(own[0]) if len(own) == 1 else _counts(own),
            "needed": "–" if wanted is None else "too many" if wanted == inf else f"{wanted:.0f}",
            "why": claim["reason"] or next((row["reason"] for row in own if row["reason"]), "no reason is given"),
            "plugins": _plugins(planned, _texts(params.get(claim["claim"]))),
        }
        claims.append({**{str(name): value for name, value in claim.items()}, **about})
    return claims


def _texts(tree: Any) -> Iterator[str]:
    """Yield every text in the parameters of a claim, names of methods among them."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict | list):
        for below in tree.values() if isinstance(tree, dict) else tree:
            yield from _texts(below)


def _plugins(planned: Planned | None, names: Iterator[str]) -> str:
    """Return the plug-ins behind names of trainings and methods, separated by spaces; other names have none."""
    known = planned.methods if planned else {}
    return " ".join(dict.fromkeys(known[name].plugin for name in names if name in known))


def _interval(row: dict[Any, Any]) -> str:
    """Return the mean in a scenario, with the interval around it if there is one."""
    mean, low, high = (None if row[name] is None else _number(row[name]) for name in ("mean", "low", "high"))
    return "–" if mean is None else mean if low is None else f"{mean} ({low} to {high})"


def _counts(claims: list[dict[str, Any]]) -> str:
    """Return how many claims have each verdict: "holds: 3, undecided: 1"."""
    several = Counter(claim["verdict"] for claim in claims)
    return ", ".join(f"{verdict}: {several[verdict]}" for verdict in SIGNS if several[verdict])


def _artefact(artefact: Artefact, planned: Planned | None) -> dict[str, Any]:
    """Return what the page shows of an artefact."""
    about, (paper, name), (heading, body) = artefact.about, artefact.key, artefact.page
    spec = about["spec"]
    words = [paper, f"{paper}_{name}", spec["title"], spec["caption"], spec["kind"]]
    words += [entry[of] for entry in (*spec["scenarios"], *spec["methods"]) for of in ("name", "label")]
    names = [method["name"] for method in spec["methods"]]
    names += [text for claim in spec.get("claims", {}).values() for text in _texts(claim["params"])]
    setting = "".join(SETTING.findall(body))
    body = re.sub(r"<(/?)h2>", r"<\1h4>", SETTING.sub("", TABLE.sub("", body)))
    if IMAGE.search(body):
        svg = f"artefacts/{paper}/{name}.svg"
        body = IMAGE.sub(rf'<a href="{svg}">\1src="{_picture(artefact)}"></a>', body)
    caption, *shown = re.split(r"(?=<h4>|<p><a href)", body, maxsplit=1)
    return {
        "id": f"{paper}/{name}",
        "target": f"{paper}_{name}",
        "kind": spec["kind"],
        "title": spec["title"],
        "heading": Markup(heading),
        "caption": Markup(caption),
        "setting": Markup(setting),
        "body": Markup("".join(shown)),
        "plugins": _plugins(planned, iter(names)),
        "numbers": "" if "<table>" in body else _numbers(artefact),
        "rows": len(artefact.frame),
        "compared": _compared(artefact),
        "other_data": bool(spec["published"]) and all(scenario["replaces"] for scenario in spec["scenarios"]),
        "files": [(suffix, f"artefacts/{paper}/{name}.{suffix}", _size(artefact, suffix)) for suffix in ARTEFACT],
        "certificate": f"artefacts/{paper}/{name}{CERTIFIED}",
        "command": f"make reproduce PRESET={about['preset']} TARGETS={paper}_{name}",
        "commit": _commit(about),
        "code": artefact.made.code,
        "key": artefact.made.key[:DIGITS],
        "versions": _versions(about),
        "seeds": ", ".join(map(str, spec["seeds"])),
        "spent": lasting(about["seconds"]),
        "devices": ", ".join(about["devices"]),
        "threads": ", ".join(map(str, about["threads"])),
        "search": " ".join(dict.fromkeys(" ".join(words).lower().split())),
    }


def table(frame: pd.DataFrame, label: str) -> str:
    """Return numbers as a table like those of artefacts; a text in it is no markup."""
    cells = frame.astype(object).map(lambda value: "–" if pd.isna(value) else escape(str(_number(value))))
    return Markup(boxed(cells.rename(columns=escape), label))


def _number(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def _numbers(artefact: Artefact) -> str:
    """Return the first numbers as HTML, those that the paper prints, too, before the others."""
    frame = artefact.frame
    if "published" in frame:
        frame = pd.concat([frame[frame["published"].notna()], frame[frame["published"].isna()]])
    return table(frame[:ROWS].dropna(axis=1, how="all"), f"Numbers of {artefact.about['spec']['title']}")


def _compared(artefact: Artefact) -> str:
    """Return how far our numbers are from the paper's, metric by metric, as HTML; "" where none is printed."""
    if not {"published", "difference"} <= {*artefact.frame}:
        return ""
    known = artefact.frame.dropna(subset=["published", "difference"])
    named = [column for column in WHAT if column in known]
    if known.empty or not named:
        return ""
    labels = {metric["name"]: metric["label"] for metric in artefact.about["spec"]["metrics"]}
    rows = []
    for key, part in known.groupby(named, sort=False):
        far = part["difference"].abs()
        about = {"": " ".join(labels.get(str(name), str(name)) for name in key), "numbers of the paper": len(part)}
        spread = {"mean difference": part["difference"].mean(), "median distance": far.median(), "largest": far.max()}
        rows.append({**about, **spread})
    return table(pd.DataFrame(rows), f"Differences of {artefact.about['spec']['title']} from the paper")


def _versions(about: dict[str, Any]) -> str:
    return ", ".join(f"{library} {version}" for library, version in about["versions"].items())


def _size(artefact: Artefact, suffix: str) -> str:
    size = artefact.made.outputs[f"{artefact.path.name}.{suffix}"][0]
    return f"{size / 1000:.0f} kB" if size >= 1000 else f"{size} B"


def _commit(about: dict[str, Any]) -> str:
    return (
        "unknown" if about["commit"] is None else f"{about['commit'][:DIGITS]}{'' if about['clean'] else ' with edits'}"
    )


def _commits(artefacts: list[Artefact]) -> str:
    """Return the commits that artefacts were made at, the most frequent one first."""
    several = Counter(_commit(artefact.about) for artefact in artefacts)
    return ", ".join(name for name, _ in sorted(several.items(), key=lambda item: (-item[1], item[0])))
