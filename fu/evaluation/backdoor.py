"""Attack success rate of the implanted backdoor (FedOSD section 4.1 and appendix B.1)."""

from fu.evaluation.context import Context
from fu.evaluation.measure import attack_success_rate

METRICS = ("asr",)


def evaluate(context: Context) -> dict[str, float]:
    """Return asr; nothing where the scenario has no backdoor."""
    if not context.task.federation.data.partition.trigger.size:
        return {}
    return {"asr": attack_success_rate(context.task, context.theta)}
