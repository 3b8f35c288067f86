"""Attack success rate of the implanted backdoor (FedOSD section 4.1 and appendix B.1)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import attack_success_rate

TRACE = ("asr", "asr_held_out")
METRICS = {
    "asr": {
        "label": "ASR",
        "unit": "fraction",
        "better": "lower",
        "formula": "accuracy on all training samples of the forgotten clients, with the trigger and flipped labels",
        "source": "FedOSD section 4.1",
        "tells": {"original": "higher"},
    },
    "asr_held_out": {
        "label": "ASR (held out)",
        "unit": "fraction",
        "better": "lower",
        "formula": "accuracy on the retained clients' test images (or a test set of no client's), with the trigger and "
        "flipped labels",
        "source": "our choice: no method gets these images, so none can be taught to pass on them",
        "tells": {"original": "higher"},
    },
    "asr_validation": {
        "label": "ASR (validation)",
        "unit": "fraction",
        "better": "lower",
        "formula": "ASR on the validation samples of the forgotten clients",
        "source": "our choice: to tune learning rates",
        "tells": {"original": "higher"},
    },
}


def evaluate(context: Context) -> dict[str, float]:
    """Return ASR, also on test and validation data if there are any; nothing if the scenario has no backdoor."""
    part, out = context.data.partition, trace(context)
    if out and all(len(part.validation[client]) for client in part.attacked):
        out["asr_validation"] = attack_success_rate(context, "validation")
    return out


def trace(context: Context) -> dict[str, float]:
    """Return ASR, also on test data if there are any; nothing if the scenario has no backdoor."""
    if context.data.mark is None:
        return {}
    x, y = context.data.flipped(context.data.retained_test)
    held_out = {"asr_held_out": context.accuracy(x, y)} if len(y) else {}
    return {"asr": attack_success_rate(context), **held_out}
