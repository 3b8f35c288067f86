"""What a person may call things in YAML, plug-ins and data, written to break out of a page, of TeX or of Markdown."""

from fu.artefacts.entry import Entry
from tests.artefacts.factories import make_entry

HOSTILE = r"""[x] </script><script>alert(1)</script> <img src=x onerror='alert("2")'> -->
 & \input{/etc/passwd} \\ \end{table}
 {{ 7 * 7 }} {% raw %} ρ_S ρ_é x_1^2 ~ # % $ $$ | ’ 中 þ 😀 ü"""


MARKUP = r"""w_* a|b \| <b>c</b> <!-- *i* _u_ **s** `d` &lt; ~~e~~ [f](https://g) ![h](i) [j][k] [k]: l *m(*n)
# o"""


def hostile(kind: str, text: str = HOSTILE) -> Entry:
    """Return the entry of a kind in which everything that a person names is this text."""
    plain = make_entry(kind)
    changed = {"label": text, "family": text, "data": text, "model": text}
    scenarios = [found.model_copy(update=changed) for found in plain.scenarios]
    methods = [found.model_copy(update={"label": f"{text} {found.name}"}) for found in plain.methods]
    words = {"label": text, "formula": text, "source": text}
    metrics = [metric.model_copy(update=words) for metric in plain.metrics]
    texts = dict.fromkeys(("title", "caption", "note", "citation", "rule"), text)
    shown = {"scenarios": tuple(scenarios), "methods": tuple(methods), "metrics": tuple(metrics)}
    return plain.model_copy(update={**texts, **shown, "names": dict.fromkeys(plain.names, text)})
