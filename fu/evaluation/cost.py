"""Cost of a model's run: client-rounds, steps, samples, time and bytes (FedOSD appendix B.4; FATS section 6.1.3)."""

from fu.evaluation.context import Context
from fu.evaluation.trace import COUNTS

METRICS = {
    "client_rounds": {
        "label": "Client-rounds",
        "unit": "rounds of one client",
        "better": "lower",
        "formula": "number of local trainings",
        "source": "FedOSD B.4",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "forgotten_rounds": {
        "label": "Rounds of forgotten clients",
        "unit": "rounds of one client",
        "better": "lower",
        "formula": "number of local trainings on forgotten clients",
        "source": "our choice: a forgotten client may refuse to take part",
    },
    "steps": {
        "label": "Gradient steps",
        "unit": "steps",
        "better": "lower",
        "formula": "mini-batch steps of all clients",
        "source": "FedOSD B.4",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "samples": {
        "label": "Samples",
        "unit": "samples",
        "better": "lower",
        "formula": "training samples processed",
        "source": "FedOSD B.4",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "time_steps": {
        "label": "Unlearning time",
        "unit": "time steps",
        "better": "lower",
        "formula": "mini-batch steps computed, counting in each round those of the slowest client",
        "source": "Tao et al. 2024, section 6.1.3",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "replayed": {
        "label": "Replayed",
        "unit": "time steps",
        "better": "lower",
        "formula": "time steps that only rebuild a model from before the request; not part of the unlearning time",
        "source": "our choice: what storing every model would save",
    },
    "bytes_up": {
        "label": "Bytes up",
        "unit": "bytes",
        "better": "lower",
        "formula": "updates sent to the server, 4 bytes per number",
        "source": "our choice: network traffic",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "bytes_down": {
        "label": "Bytes down",
        "unit": "bytes",
        "better": "lower",
        "formula": "models sent to clients, 4 bytes per number",
        "source": "our choice: network traffic",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "stored": {
        "label": "Bytes stored",
        "unit": "bytes",
        "better": "lower",
        "formula": "histories and stored models that the method reads",
        "source": "our choice: what the server must have stored before the request",
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the counts of the last round, if there is a trace; a recovered model's cover post-training alone."""
    if not context.trace:
        return {}
    last = context.trace[-1]
    return {name: float(last[name]) for name in COUNTS}
