"""Attack success rate of the implanted backdoor (FedOSD section 4.1 and appendix B.1)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import attack_success_rate

METRICS = ("asr", "asr_validation")


def evaluate(context: Context) -> dict[str, float]:
    """Return asr, and on validation data where there are any; nothing where the scenario has no backdoor."""
    task, part = context.task, context.task.federation.data.partition
    if not part.trigger.size:
        return {}
    out = {"asr": attack_success_rate(task, context.theta)}
    if all(len(part.validation[client]) for client in part.forgotten):
        out["asr_validation"] = attack_success_rate(task, context.theta, "validation")
    return out
