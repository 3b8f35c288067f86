"""What a model's run cost: rounds of clients, steps, samples, time, bytes (FedOSD appendix B.4; FATS section 6.1.3)."""

from fu.evaluation.context import Context
from fu.evaluation.trace import COUNTS

METRICS = {
    "client_rounds": {
        "label": "Client-rounds",
        "unit": "rounds of one client",
        "better": "lower",
        "formula": "local trainings run",
        "source": "FedOSD B.4",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "forgotten_rounds": {
        "label": "Rounds of forgotten clients",
        "unit": "rounds of one client",
        "better": "lower",
        "formula": "local trainings that a forgotten client runs",
        "source": "our choice: who is to be forgotten may not help",
    },
    "steps": {
        "label": "Gradient steps",
        "unit": "steps",
        "better": "lower",
        "formula": "minibatch steps of all clients",
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
        "formula": "steps computed, in each round those of the slowest client",
        "source": "Tao et al. 2024, section 6.1.3",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "replayed": {
        "label": "Replayed",
        "unit": "time steps",
        "better": "lower",
        "formula": "time steps that rebuild a model from before the request, and are no unlearning time",
        "source": "our choice: what keeping every model would save",
    },
    "bytes_up": {
        "label": "Bytes up",
        "unit": "bytes",
        "better": "lower",
        "formula": "updates sent to the server, 4 bytes per number",
        "source": "our choice: what crosses the network",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "bytes_down": {
        "label": "Bytes down",
        "unit": "bytes",
        "better": "lower",
        "formula": "models sent to clients, 4 bytes per number",
        "source": "our choice: what crosses the network",
        "tells": {"original": "lower", "broken": "lower"},
    },
    "stored": {
        "label": "Bytes stored",
        "unit": "bytes",
        "better": "lower",
        "formula": "histories and kept models that the method reads",
        "source": "our choice: what a server must keep beforehand",
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return the counts at the end of the run; the recovered model's are those of post-training alone."""
    last = context.trace[-1]
    return {name: float(last[name]) for name in COUNTS}
