"""Write the page: equal artefacts give equal bytes, and a page that would not differ is left alone."""

import hashlib
import os
import re
from base64 import b64encode
from collections import Counter
from dataclasses import dataclass
from html import escape
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from fu.artefacts.panels import boxed
from fu.pipeline.estimates import counted, lasting
from fu.pipeline.page.made import DIGITS, UNKNOWN, Artefact, Chain, read
from fu.pipeline.paths import ARTEFACT, CERTIFIED, OUTPUTS
from fu.pipeline.plan import Plan

HERE = Path(__file__).parent
VERDICTS = "verdicts"  # the artefact of a paper that judges its claims
SIGNS = {"holds": "✓", "does not hold": "✗", "undecided": "?", "not judged": "–"}
ROWS = 100  # of numbers that have no table of their own
WHAT = ("metric", "quantity")  # columns that say what a number measures


@dataclass(frozen=True)
class Planned:
    """A paper as the plan has it: how it is cited, and the titles of its artefacts by name."""

    citation: str
    titles: dict[str, str]


def update(plan: Plan) -> str:
    """Write the page of a plan's preset where it would differ; return what is wrong in one sentence, or ""."""
    papers = {
        name: Planned(paper.citation, {key: entry.title for key, entry in paper.artefacts.items()})
        for name, paper in plan.papers.items()
    }
    path = Path(plan.paths.page)
    try:
        write(path, plan.config.preset, plan.preset.description, papers)
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
    chain = Chain(root)
    made = {artefact.key: artefact for artefact in artefacts}
    names = [*papers, *sorted({paper for paper, _ in made} - {*papers})]
    costs = {path: cost["seconds"] for artefact in artefacts for path, cost in artefact.about["costs"].items()}
    style, script = ((HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    templates = FileSystemLoader(HERE)
    environment = Environment(
        loader=templates, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = lambda value: "–" if value is None else _number(value)
    shown = [_paper(name, papers.get(name), made, chain) for name in names]
    return environment.get_template("page.html").render(
        preset=preset,
        description=description,
        papers=shown,
        wrong=wrong,
        number=len(artefacts),
        planned=len({*made, *((name, key) for name, paper in papers.items() for key in paper.titles)}),
        verdicts=_counts([claim for paper in shown for claim in paper["claims"]]),
        spent=lasting(sum(costs.values())),
        commits=_commits(artefacts),
        chain=chain.jobs,
        rows=ROWS,
        style=Markup(style),
        script=Markup(script),
        digest=b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _paper(name: str, planned: Planned | None, made: dict[tuple[str, str], Artefact], chain: Chain) -> dict[str, Any]:
    """Return what the page shows of a paper."""
    titles = planned.titles if planned else {}
    order = [*titles, *sorted({key for paper, key in made if paper == name} - {*titles})]
    shown = [made[name, key] for key in order if (name, key) in made]
    citation = planned.citation if planned else shown[0].about["spec"]["citation"]
    short = re.search(r"\(([^()]+)\)\.?$", citation)
    claims = (
        _claims(made[name, VERDICTS], {artefact.path.name for artefact in shown}) if (name, VERDICTS) in made else []
    )
    return {
        "name": name,
        "short": short[1] if short else name,
        "citation": citation,
        "claims": claims,
        "verdicts": _counts(claims),
        "artefacts": [_artefact(artefact, chain) for artefact in shown],
        "unmade": {f"{name}_{key}": title for key, title in titles.items() if (name, key) not in made},
    }


def _claims(artefact: Artefact, others: set[str]) -> list[dict[str, Any]]:
    """Return a paper's claims, each with its verdict in all scenarios and the artefact that it rests on."""
    rows = artefact.frame.astype(object).where(artefact.frame.notna(), None)
    claims = []
    for claim in rows[rows["scenario"].isna()].to_dict("records"):
        own = rows[(rows["claim"] == claim["claim"]) & rows["scenario"].notna()].to_dict("records")
        wanted = claim["needed"] if claim["verdict"] == "undecided" else None
        about = {
            "link": f"{artefact.key[0]}/{claim['artefact']}" if claim["artefact"] in others else "",
            "sign": SIGNS.get(claim["verdict"], ""),
            "ours": _interval(own[0]) if len(own) == 1 else _counts(own),
            "needed": "–" if wanted is None else "too many" if wanted == inf else f"{wanted:.0f}",
        }
        claims.append({**{str(name): value for name, value in claim.items()}, **about})
    return claims


def _interval(row: dict[Any, Any]) -> str:
    """Return the mean in a scenario, with the interval around it if there is one."""
    mean, low, high = (None if row[name] is None else _number(row[name]) for name in ("mean", "low", "high"))
    return "–" if mean is None else mean if low is None else f"{mean} ({low} to {high})"


def _counts(claims: list[dict[str, Any]]) -> str:
    """Return how many claims have each verdict: "holds: 3, undecided: 1"."""
    several = Counter(claim["verdict"] for claim in claims)
    return ", ".join(f"{verdict}: {several[verdict]}" for verdict in SIGNS if several[verdict])


def _artefact(artefact: Artefact, chain: Chain) -> dict[str, Any]:
    """Return what the page shows of an artefact."""
    about, (paper, name), (heading, body) = artefact.about, artefact.key, artefact.page
    spec, number = about["spec"], chain.add(artefact.file(CERTIFIED[1:]))
    words = [paper, f"{paper}_{name}", spec["title"], spec["caption"], spec["kind"]]
    words += [entry[of] for entry in (*spec["scenarios"], *spec["methods"]) for of in ("name", "label")]
    return {
        "id": f"{paper}/{name}",
        "target": f"{paper}_{name}",
        "kind": spec["kind"],
        "title": spec["title"],
        "heading": Markup(heading),
        "body": Markup(re.sub(r"<(/?)h2>", r"<\1h4>", body)),
        "numbers": "" if "<table>" in body else _numbers(artefact),
        "rows": len(artefact.frame),
        "compared": _compared(artefact),
        "files": [(suffix, f"artefacts/{paper}/{name}.{suffix}", _size(artefact, suffix)) for suffix in ARTEFACT],
        "certificate": f"artefacts/{paper}/{name}{CERTIFIED}",
        "command": f"make reproduce PRESET={about['preset']} TARGETS={paper}_{name}",
        "commit": _commit(about),
        "code": artefact.made.code,
        "key": artefact.made.key[:DIGITS],
        "versions": ", ".join(f"{library} {version}" for library, version in about["versions"].items()),
        "seeds": ", ".join(map(str, spec["seeds"])),
        "spent": lasting(about["seconds"]),
        "devices": ", ".join(about["devices"]),
        "threads": ", ".join(map(str, about["threads"])),
        "job": number,
        "behind": _behind(chain.stages(number)),
        "search": " ".join(dict.fromkeys(" ".join(words).lower().split())),
    }


def _behind(stages: Counter[str]) -> str:
    """Return how many jobs of each stage are behind an artefact, in the order in which they run."""
    several = [f"{stages[stage]} {stage}" for stage in (*OUTPUTS, UNKNOWN) if stages[stage]]
    return f"{counted(stages.total(), 'job')}: {', '.join(several)}" if several else ""


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


def _size(artefact: Artefact, suffix: str) -> str:
    size = artefact.made.outputs[f"{artefact.path.name}.{suffix}"][0]
    return f"{size / 1000:.0f} kB" if size >= 1000 else f"{size} B"


def _commit(about: dict[str, Any]) -> str:
    return "unknown" if about["commit"] is None else f"{about['commit'][:DIGITS]}{'' if about['clean'] else ', edited'}"


def _commits(artefacts: list[Artefact]) -> str:
    """Return the commits that artefacts were made at, the most frequent one first."""
    several = Counter(_commit(artefact.about) for artefact in artefacts)
    return ", ".join(name for name, _ in sorted(several.items(), key=lambda item: (-item[1], item[0])))
