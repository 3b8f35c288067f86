"""How all pictures look, as `figures` in config.yaml says: width, letters, and a style file of matplotlib."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, model_validator

from fu.errors import nearest

DARK = ["#882255", "#332288", "#6b3e1d", "#7f7f00"]  # further colours that the colour-blind tell from seaborn's ten
LINE = re.compile(r'([^:#]+):((?:"[^"]*"|[^"#])*)')  # of a style file: `name: value  # comment`


class Figures(BaseModel):
    """Size and style of figures. A change redraws all figures and recomputes nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    width: float = Field(7.0, ge=2, le=20, description="width in inches: 7 for a full page, 3.25 for one column")
    font: float = Field(
        8.0,
        ge=4,
        le=24,
        description="font size of labels and headings in points; ticks and legends are one point smaller",
    )
    style: Annotated[dict[str, str] | None, WithJsonSchema({"type": "string"})] = Field(
        None,
        description="matplotlib style file (.mplstyle) for everything else; methods take the first colours of its "
        "axes.prop_cycle",
    )

    @model_validator(mode="before")
    @classmethod
    def _read(cls, values: Any) -> Any:
        """Read the style file, so that its content counts and not its name."""
        if isinstance(values, dict) and isinstance(values.get("style"), str):
            return {**values, "style": read(values["style"])}
        return values


def read(name: str) -> dict[str, str]:
    """Return the settings of a style file; `ValueError` with a sentence where one of them is none."""
    from matplotlib import RcParams, rcParams

    try:
        lines = Path(name).expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, RuntimeError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "not a text file"
        raise ValueError(f"style: {name}: cannot be read ({problem})") from None
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        where = f"style: {name}: line {number}:"
        if not line.partition("#")[0].strip():
            continue
        found = LINE.match(line)
        if not found:
            raise ValueError(f"{where} must be `name: value`, got {line.strip()!r}")
        key, value = found[1].strip(), found[2].strip().removeprefix('"').removesuffix('"')
        if key not in rcParams:
            raise ValueError(f"{where} matplotlib has no setting {key!r}{nearest(key, rcParams)}")
        try:
            RcParams({key: value})
        except ValueError as error:
            raise ValueError(f"{where} {' '.join(str(error).split())}") from None
        settings[key] = value
    return settings


def parameters(figures: Figures) -> dict[Any, Any]:
    """Return matplotlib's settings: ours, over them those of the style file, over them what must be."""
    import seaborn as sns

    plain, small = figures.font, max(figures.font - 1, 4)
    ours = {
        **dict.fromkeys(("axes.titlesize", "axes.labelsize"), plain),
        **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), small),
        **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
        "axes.titleweight": "bold",
        "axes.prop_cycle": f"cycler('color', {[*sns.color_palette('colorblind').as_hex(), *DARK]})",
    }
    fixed = {
        "font.size": plain,
        "figure.figsize": (figures.width, 0.6 * figures.width),
        "text.parse_math": False,  # a $ in a title or label is one; formulas say `parse_math=True`
        "pdf.fonttype": 42,  # fonts are embedded
        "svg.hashsalt": "fu",  # equal numbers give equal bytes
    }
    return {**ours, **(figures.style or {}), **fixed}
