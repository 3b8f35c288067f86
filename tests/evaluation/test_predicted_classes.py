"""Which classes the triggered images are given, in numbers worked out by hand."""

import torch

from fu.evaluation import predicted_classes
from fu.evaluation.context import Context
from tests.factories import CLASSES, make_context, make_data, make_federation, make_partition, make_task


def answering(classes: list[int], forgotten: tuple[int, ...] = (1, 3)) -> Context:
    """Return a context whose model gives the forgotten clients' triggered images these classes, in their order."""
    context = make_context(make_task(make_federation(make_data(make_partition((7, 2, 9, 3), forgotten)))))

    def logits(theta: torch.Tensor, x: torch.Tensor, batch: int = 1000) -> torch.Tensor:
        expected = torch.cat([context.data.backdoored(client)[0] for client in forgotten])
        assert torch.equal(x, expected)  # all of their training images, with the trigger, and nobody else's
        return torch.nn.functional.one_hot(torch.tensor(classes), CLASSES).float()

    context.network.logits = logits  # type: ignore[method-assign]
    return context


def test_the_shares_of_the_classes_are_counted_over_all_forgotten_clients() -> None:
    context = answering([4, 1, 4, 4, 0])
    shares = dict.fromkeys((f"predicted_{label}" for label in range(CLASSES)), 0.0)
    expected = {**shares, "predicted_4": 0.6, "predicted_1": 0.2, "predicted_0": 0.2}
    found = predicted_classes.trace(context)
    assert list(found) == list(shares)
    assert all(abs(found[name] - share) < 1e-12 for name, share in expected.items())
    assert abs(predicted_classes.evaluate(context)["one_class"] - 0.6) < 1e-12


def test_without_a_backdoor_there_is_nothing_to_trace() -> None:
    context = make_context(make_task(make_federation(make_data(make_partition(trigger=False)))))
    assert predicted_classes.trace(context) == predicted_classes.evaluate(context) == {}
