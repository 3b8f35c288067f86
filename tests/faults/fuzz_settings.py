"""What a person writes, damaged at random: configs, papers, presets, published numbers.

Every case must end in a plan or in one sentence, in time: python -m tests.faults.fuzz_settings [--cases N]
[--only paper-17].
"""

import argparse
import copy
import datetime
import math
import random
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from fu.errors import UserError
from fu.pipeline.plan.plan import Plan
from fu.pipeline.provenance import cached, digest
from fu.pipeline.settings import papers
from tests.faults import damage, limited

TOY = digest.ROOT / "tests" / "workflow"
SECONDS = 10  # of one case
PRESET = "description: of the fuzzer\nseeds: [0, 1]\npapers: {toy: {settings: {training: {rounds: 3}}}}\n"
CONFIG: dict[str, Any] = {
    **{"preset": "mine", "papers": ["toy"], "data_dir": "data", "threads": 1},
    "overrides": {"toy": {}},
}
NUMBERS = (0, -1, 1, 2, 0.5, 1e-300, 1e308, math.inf, math.nan, True, False)
TEXTS = (
    "", " ", "日本", "$x_{$", "%s{0}", "x" * 300, "1e400", "../x", "/etc/passwd", "~", "~nobody", "data", "all",
    "publish", "original", "unlearned", "toy", "null", "2024-13-45", "6/7", "1/0", "0b_", "1:1:1", "fedosd", "iid",
    "table", "curves", "bars", "across", "asr", "r_acc", "digits", "mnist",
)  # fmt: skip
TREES: tuple[Any, ...] = (
    None, [], {}, [[]], [None], [1, 1], {"value": 1}, {"value": 1, "source": " "}, {"name": "pat"}, {5: 1}, {None: {}},
    {"unlearning.lr": [0.1, 0.2]}, datetime.date(2024, 1, 1), b"x", {1, 2}, (1, 2),
)  # fmt: skip
SNIPPETS = [
    text.encode()
    for text in (
        "\n", "\t", ":", ": ", "- ", "[", "{", "}", "]", "&a ", "*a", "!!int ", "!!python/name:os.system ", "'", '"',
        "#", "|\n", "<<: *a\n", "? ", "%YAML 3.0\n", "---\n", "...\n", "\ufeff", "1e400", "2024-13-45", ",", ",,",
        "nan", "\r", "original", "1_0",
    )
]  # fmt: skip


def wild(random: random.Random) -> Any:
    """Return a value that few expect."""
    return random.choice(random.choice((NUMBERS, TEXTS, TREES)))


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every mapping or list of a tree with each of its keys."""
    found, left = [], [tree]
    while left:
        node = left.pop()
        keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        found += [(node, key) for key in keys]
        left += [node[key] for key in keys]
    return found


def damaged(tree: Any, random: random.Random) -> Any:
    """Return a tree with up to three of its values removed, replaced, moved or doubled."""
    whole = places(tree)
    tree = copy.deepcopy(tree)
    known = places(tree)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        (node, key), (other, place) = random.choice(known), random.choice(whole)
        if not (key in node if isinstance(node, dict) else key < len(node)):
            continue  # gone by now
        moved = copy.deepcopy(other[place])
        match random.randrange(5):
            case 0:
                del node[key]
            case 1:
                node[key] = wild(random)
            case 2:
                node[key] = moved
            case 3 if isinstance(node, dict):
                node[random.choice((*TEXTS, 5, None, 1.5))] = moved
            case _:
                node[key] = [node[key], node[key]]
    return tree


def scratched(content: bytes, random: random.Random) -> bytes:
    """Return a text damaged in up to three places."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        content = damage(content, random, SNIPPETS)
    return content


def dumped(tree: Any) -> bytes:
    """Return a tree as YAML."""
    return yaml.safe_dump(tree, allow_unicode=True).encode()


class Desk:
    """A folder `workflow/` of its own, with one paper, one preset and one file of published numbers."""

    def __init__(self, root: Path) -> None:
        self.paper = root / "workflow" / "papers" / "toy.yaml"
        self.preset = root / "workflow" / "presets" / "mine.yaml"
        self.numbers = root / "workflow" / "published" / "toy" / "numbers.csv"
        self.config = root / "config.yaml"
        for path in (self.paper, self.preset, self.numbers):
            path.parent.mkdir(parents=True)
        (root / "fu").symlink_to(digest.ROOT / "fu")
        self.plain = papers.without_sources(papers.read_yaml(TOY / "toy.yaml"))
        self.tidy()

    def tidy(self) -> None:
        """Write all files as they should be."""
        shutil.copy(TOY / "toy.yaml", self.paper)
        shutil.copy(TOY / "toy_numbers.csv", self.numbers)
        self.preset.write_text(PRESET)

    def case(self, kind: str, random: random.Random) -> Any:
        """Return the config of a case, its files damaged."""
        self.tidy()
        config: Any = copy.deepcopy(CONFIG)
        match kind:
            case "config":
                config["overrides"]["toy"] = copy.deepcopy(self.plain) if random.random() < 0.3 else {}
                config = damaged(config, random)
            case "overrides":
                config["overrides"]["toy"] = damaged(self.plain, random)
            case "paper":
                tree = papers.read_yaml(self.paper)
                scratch = scratched(self.paper.read_bytes(), random)
                self.paper.write_bytes(dumped(damaged(tree, random)) if random.random() < 0.5 else scratch)
            case "preset":
                tree = yaml.safe_load(PRESET) | {"papers": {"toy": self.plain}}
                self.preset.write_bytes(dumped(damaged(tree, random)))
            case "published":
                self.numbers.write_bytes(scratched(self.numbers.read_bytes(), random))
            case "file":
                self.config.write_bytes(scratched(dumped(config), random))
                config = papers.read_yaml(self.config)
        return config


KINDS = ("config", "overrides", "paper", "preset", "published", "file")


@contextmanager
def desk() -> Iterator[Desk]:
    """Lend a desk that the plan reads instead of this repository's `workflow/`."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        with patch.object(cached, "CACHE", root / "plan.json"), patch.object(digest, "CACHE", root / "digests.json"):
            made = Desk(root)
            with patch.object(papers, "ROOT", root), patch.object(digest, "ROOT", root):
                yield made


def ends(lent: Desk, seed: str) -> str:
    """Plan a case as far as the Snakefile does; return how it ends, `plan` or `sentence`; all else is an error."""
    try:
        with limited(SECONDS):
            plan = Plan(lent.case(seed.partition("-")[0], random.Random(seed)))
            plan.targets()
            plan.overview(plan.jobs(), cores=2)
            for job in plan.jobs():
                assert job.json
    except UserError as error:
        text = str(error)
        assert text.isprintable(), f"no sentence: {text!r}"
        assert text.endswith("."), f"no sentence: {text!r}"
        return "sentence"
    return "plan"


def main(arguments: list[str]) -> int:
    """Run the cases, print their counts, and return 1 at the first that fails."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=3000)
    parser.add_argument("--only", help="one case, as paper-17")
    given = parser.parse_args(arguments)
    seeds = [given.only] if given.only else [f"{KINDS[k % len(KINDS)]}-{k // len(KINDS)}" for k in range(given.cases)]
    counts: Counter[str] = Counter()
    with desk() as lent:
        for seed in seeds:
            try:
                counts[f"{seed.partition('-')[0]}: {ends(lent, seed)}"] += 1
            except BaseException:  # a hang, too
                traceback.print_exc()
                print(f"{seed} failed: python -m tests.faults.fuzz_settings --only {seed}", file=sys.stderr)
                return 1
    found = ", ".join(f"{what} {number}" for what, number in sorted(counts.items()))
    print(f"{len(seeds)} damaged configs, papers, presets and tables, none with a traceback: {found}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
