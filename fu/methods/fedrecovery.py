"""FedRecovery: removes the forgotten client's weighted residuals and adds noise (Zhang et al. 2023, Algorithm 2).

A single step without training (FedOSD section 4.1). A round with n clients moves by the mean D_t of their increments
D_t^i; without client u it would have moved by (n D_t - D_t^u) / (n - 1). The residual of the round, with u minus
without, is (D_t^u - D_t) / (n - 1); it is weighted by p_t = ||grad F(w_t)||^2 / sum_s ||grad F(w_s)||^2 and subtracted:
w_u = w_T + sum_t p_t (D_t - D_t^u) / (n - 1) + N(0, s^2 I). The denominator of p_t is the sum over all rounds; public
copies often divide by the sum up to round t, which removes more. All clients weigh the same in D_t, also where FedAvg
weighs them by samples. grad F(w_t) is estimated as -D_t / lr_t. The guarantee requires the same noise on the retrained
model, which is absent in FedOSD's tables. Stores one weighted sum of updates per client, m d numbers; communicates
nothing.
"""

from pydantic import BaseModel, Field
from torch import Tensor

from fu.federation.task import State, Task

needs = {"update_sums"}
FIDELITY = {"source": "paper", "citation": "Zhang et al. 2023, Algorithm 2; FedOSD section 4.1"}
ESTIMATE = {"forgotten": 0, "retained": 0}  # how often they train in a round, for the plan


class Params(BaseModel, extra="forbid"):
    """Hyper-parameters."""

    noise_std: float = Field(
        0.01,
        ge=0,
        description="s: our choice, as .01 to .025 are common in practice; s = D / (sqrt 2 (sqrt(log(1/beta) + "
        "epsilon) - sqrt(log(1/beta)))) for a bound D on the distance to the retrained model (Zhang et al. 2023)",
    )


def start(task: Task, p: Params) -> State:
    """Begin at the original model."""
    return State(task.original_model)


def step(task: Task, p: Params, state: State, round: int) -> State:
    """Take the residuals out; more rounds than one share them, and the noise's variance, equally."""
    recorded = task.histories["update_sums"]
    gone = residual(recorded["sums"], recorded["weight"], task.places(task.forgotten))
    return task.noisy(State(state.theta - gone / task.rounds), p.noise_std / task.rounds**0.5, round)


def residual(sums: Tensor, weight: Tensor, forgotten: list[int]) -> Tensor:
    """Return the weighted residuals [d] of the forgotten clients (rows of the sums): with them minus without them.

    `sums` [m, d]: sum_t ||grad F(w_t)||^2 D_t^i; `weight` [1]: sum_t ||grad F(w_t)||^2. k forgotten clients:
    (sum_u D_t^u - k D_t) / (n - k).
    """
    gone = sums[forgotten].sum(0) - len(forgotten) * sums.mean(0)
    return gone / (len(sums) - len(forgotten)) / weight.to(sums.dtype)
