"""What a person may call things in YAML, plug-ins and data, written to break out of a page or of TeX."""

from fu.artefacts.entry import Entry
from tests.artefacts.factories import make_entry

HOSTILE = r"""[x] </script><script>alert(1)</script> <img src=x onerror='alert("2")'> -->
 & \input{/etc/passwd} \\ \end{table}
 {{ 7 * 7 }} {% raw %} ρ_S ρ_é x_1^2 ~ # % $ $$ | ’ 中 þ 😀 ü"""


def hostile(kind: str) -> Entry:
    """Return the entry of a kind in which everything that a person names is hostile."""
    plain = make_entry(kind)
    changed = {"label": HOSTILE, "family": HOSTILE, "data": HOSTILE, "model": HOSTILE}
    scenarios = [found.model_copy(update=changed) for found in plain.scenarios]
    methods = [found.model_copy(update={"label": f"{HOSTILE} {found.name}"}) for found in plain.methods]
    words = {"label": HOSTILE, "formula": HOSTILE, "source": HOSTILE}
    metrics = [metric.model_copy(update=words) for metric in plain.metrics]
    texts = dict.fromkeys(("title", "caption", "note", "citation", "rule"), HOSTILE)
    shown = {"scenarios": tuple(scenarios), "methods": tuple(methods), "metrics": tuple(metrics)}
    return plain.model_copy(update={**texts, **shown, "names": dict.fromkeys(plain.names, HOSTILE)})
