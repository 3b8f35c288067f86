"""Both sides of the inequalities of Shao et al. 2024 (sections 5 and 6), on quadratics where each can be computed.

Clients take one step a round (E = 1) along their full gradients, and there is one retained client unless a system says
otherwise: beta_S, zeta_S, sigma and Gamma are 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np
import pandas as pd

from fu.artefacts.entry import ORIGINAL, Entry
from fu.artefacts.panels import grid
from fu.artefacts.quadratics import Groups, Loss, Vector, across, loss, square, unlearn, weighted
from fu.artefacts.result import Result, of_table
from fu.artefacts.rows import FORMULAS
from fu.seeds import derive_integer

INPUTS = ()
TABLE = True
BY_SEED = (  # the statements: 1 where one holds, 0 where it is false
    "Lemma 5.6",
    "Lemma 5.8",
    "Theorem 5.10",
    "Theorem 5.11",
    "Lemma 6.3, sampling",
    "Lemma 6.3, all",
    "Lemma 6.3, all, drawn",
    "(36) with 1 - cos²",
    "Lemma 6.3, all, with 1 - cos²",
    "Theorem 6.4",
    "Theorem 6.4, B of (29)",
    "Theorem 6.7",
    "Theorem 6.10",
)
DRAWS = 20_000
ROUNDING = 1e-9
BETA_S = NOISE = 0.0  # NOISE: sigma^2 + zeta_S^2
COLLINEAR = 1.0  # cos^2 theta of g_J and g_S on one line
OPPOSED = Groups(retained=loss(1, -1), forgotten=loss(1, 1), share=0.5)

Sides = tuple[float, float]


def prescribed_rate(retained: Loss, rounds: int) -> float:
    """Return eta of Lemma 5.6 and Theorem 5.10."""
    mu, low = retained.mu, BETA_S - 1
    return sqrt(low / min(mu * low, retained.smoothness * low)) / (rounds * sqrt(mu))


def c_1(retained: Loss, start: Vector, rounds: int) -> float:
    """Return C_1, Eq. (5); its two differences of F_{-J} add up to F_{-J}(w_o) - F_{-J}(w_r*)."""
    gap = retained(start) - retained.least
    return (1 + 2 * (BETA_S**2 - 1) / rounds) * gap + NOISE / (2 * retained.smoothness * rounds)


def lemma_5_6() -> Sides:
    """Return V and C_1."""
    alone, rounds = Groups(loss(1, 0), loss(1, 0), 0.0), 10
    path = unlearn(alone, np.ones(1), [prescribed_rate(alone.retained, rounds)] * rounds)
    return alone.retained(path[-1]) - alone.retained.least, c_1(alone.retained, path[0], rounds)


def lemma_5_8() -> Sides:
    """Return S and C_2, Eq. (6), at T = mu / eta^2."""
    rate, rounds, everyone = 0.5, 4, OPPOSED.everyone
    path = unlearn(OPPOSED, everyone.centre, [rate] * rounds)
    delta = everyone(path[0]) - everyone.least
    return everyone(path[-1]) - everyone.least, OPPOSED.share * rate * rounds / 2 * OPPOSED.apart(path[0]) + delta


def theorem_5_10() -> Sides:
    """Return V + S and C_s, Eq. (7)."""
    rounds, everyone, retained = 1, OPPOSED.everyone, OPPOSED.retained
    start, end = unlearn(OPPOSED, everyone.centre, [prescribed_rate(retained, rounds)] * rounds)
    delta = everyone(start) - everyone.least
    c_s = OPPOSED.share / (sqrt(2) * retained.mu) * OPPOSED.apart(start) + delta + c_1(retained, start, rounds)
    return retained(end) - retained.least + everyone(end) - everyone.least, c_s


def theorem_5_11() -> Sides:
    """Return 2V + Q and C_q, Eq. (8)."""
    clients, weights = (loss(2, 1), loss(2, -1)), (0.5, 0.5)
    groups = Groups(weighted(clients, weights), loss(2, 0), 0.5)
    start = groups.everyone.centre
    end = unlearn(groups, start, [0.1] * 10)[-1]
    changes = np.array([f(end) - f(start) for f in clients])
    q = float(np.average(np.abs(changes - np.average(changes, weights=weights)), weights=weights))
    v = groups.retained(end) - groups.retained.least
    return 2 * v + q, groups.retained.least - sum(p * f.least for p, f in zip(weights, clients, strict=True))


def lemma_6_3(g_s: Vector, g_j: Vector, sign: int = 1) -> tuple[Vector, Vector]:
    """Return E||g_c||^2 [...] and its bound [...] at lambda P_J = 1.

    `g_s` [..., m, d]: the gradients of equally likely samples, grad F_{-J} in the mean; `g_j` [..., d]. cos^2 is the
    mean over them; zeta' and beta' are as small as Assumption 6.2 admits. `sign` -1 puts 1 - cos^2 for 1 + cos^2.
    """
    each, gradient = np.broadcast_to(g_j[..., None, :], g_s.shape), g_s.mean(-2)
    cosine = (each * g_s).sum(-1) ** 2 / (square(each) * square(g_s))
    within = square(g_j - gradient) + square(gradient)
    return square(across(each, g_s)).mean(-1), (1 + sign * cosine.mean(-1)) * within


def lemma_6_3_here(sampled: int) -> Sides:
    """Return the two sides where one of two clients is `sampled`, or both."""
    gradient, apart = np.array([1.0, 0.0]), np.array([-1.0, 4.0])
    drawn = np.stack([gradient + apart, gradient - apart] if sampled == 1 else [gradient])
    left, right = lemma_6_3(drawn, np.array([2.0, 0.0]))
    return float(left), float(right)


def drawn() -> tuple[Vector, Vector]:
    """Return g_S = grad F_{-J} [n, 1, d] of full participation, and g_J [n, d]: normal, in three dimensions."""
    random = np.random.default_rng(derive_integer("bounds", "lemma 6.3"))
    return random.standard_normal((DRAWS, 1, 3)), random.standard_normal((DRAWS, 3))


def violations(sign: int) -> Sides:
    """Return in how many draws Lemma 6.3 fails, and in how many it may."""
    left, right = lemma_6_3(*drawn(), sign)
    return float((left > right * (1 + ROUNDING)).sum()), 0.0


def equation_36() -> Sides:
    """Return ||g_c||^2 in units of (1 - cos^2) ||g_J||^2, where it is farthest from 1, and 1."""
    g_s, g_j = drawn()[0][:, 0], drawn()[1]
    ratio = square(across(g_j, g_s)) / (square(g_j) - (g_j * g_s).sum(-1) ** 2 / square(g_s))
    return float(ratio[np.abs(ratio - 1).argmax()]), 1.0


def phi(penalty: float, share: float) -> float:
    """Return phi of Lemma 6.3 where g_J and g_S lie on one line."""
    return penalty**2 * share**2 * (1 + COLLINEAR)


def theorem_6_4(appendix: bool = False) -> Sides:
    """Return H(w) - H(w*) and its bound; `appendix`: with B as Eq. (29) has it, with phi once more.

    G and zeta' (at beta' = 0) are the least that the path admits, L is that of the losses.
    """
    penalty, beta, gamma, rounds, share = 5.0, 8.0, 16.0, 10_000, OPPOSED.share
    retained, forgotten, start = OPPOSED.retained, OPPOSED.forgotten, OPPOSED.everyone.centre
    path = unlearn(OPPOSED, start, [beta / (2 * (t + gamma)) for t in range(1, rounds + 1)], penalty)

    def h(w: Vector) -> float:
        """Return H(w) of P3, Eq. (10)."""
        f_2 = forgotten.gradient(start) @ (w - start) + forgotten.smoothness / 2 * float(square(w - start))
        return (1 + penalty * (1 - share)) * retained(w) + penalty * share * float(f_2)

    steepest = max(square(f.gradient(path)).max() for f in (retained, forgotten))
    zeta = square(OPPOSED.estimate(start, path) - retained.gradient(path)).max()
    factor = phi(penalty, share)
    b = 2 * factor * ((factor if appendix else 1) * steepest + zeta) + NOISE
    v = max(beta**2 * b / (beta * retained.mu - 4), (gamma + 1) * float(square(start - retained.centre)))
    bound = retained.smoothness / 2 * (v / (gamma + rounds) + float(square(retained.centre - start)))
    return h(path[-1]) - h(start), bound


def theorem_6_7() -> Sides:
    """Return V / D and (chi_1 + chi_2) / D; zeta' (at beta' = 0) and epsilon are the least that the path admits."""
    same = loss([0.01, 1], [0, 0])
    groups, penalty, rounds, start = Groups(same, same, 0.5), 1.0, 100, np.array([1.0, 0.0])
    smoothness, gap = same.smoothness, same(start) - same.least
    path = unlearn(groups, start, [2 / (smoothness * rounds)] * rounds, penalty)
    norms = square(same.gradient(path))
    epsilon = (norms[1:] / norms[:-1]).max()
    zeta = square(groups.estimate(start, path) - same.gradient(path)).max()
    factor, both = phi(penalty, groups.share), 2 * smoothness * rounds
    beta = factor * epsilon + 1  # beta''^2 of Lemma 6.6
    slow = 1 - 1 / both + (BETA_S**2 + 1) / (smoothness * rounds**2)
    fast = 1 - 2 / both + (beta + 1) / (smoothness * rounds**2)
    chi = (slow**rounds + fast**rounds) / 2 * gap + (NOISE + factor * zeta) / both
    return (same(path[-1]) - same.least) / gap, chi / gap


@dataclass(frozen=True)
class Fair:
    """P5 with the epsilon of Theorem 6.10: retained clients of equal weight, w_o [d] and Lambda."""

    clients: tuple[Loss, ...]
    start: Vector
    most: float

    @property
    def retained(self) -> Loss:
        """F_{-J}."""
        return weighted(self.clients, [1 / len(self.clients)] * len(self.clients))

    def excess(self, w: Vector) -> Vector:
        """Return r(w): how much each client's loss has grown beyond epsilon."""
        epsilon = (self.retained(self.start) - self.retained.least) / self.most
        return np.array([f(w) - f(self.start) - epsilon for f in self.clients])

    def lagrangian(self, multipliers: Vector) -> Loss:
        """Return F_{-J} + lambda r but for a constant."""
        return weighted((self.retained, *self.clients), (1, *multipliers))

    def nu(self, w: Vector, multipliers: Vector) -> float:
        """Return the least nu of which w and multipliers >= 0 with sum <= Lambda are an approximate saddle point."""
        lagrangian, up = self.lagrangian(multipliers), self.most * max(self.excess(w).max(), 0)
        return float(max(up - multipliers @ self.excess(w), lagrangian(w) - lagrangian.least))


FAIR = Fair((loss(1, 0), loss(1, 1)), np.zeros(1), 4.0)


def theorem_6_10() -> Sides:
    """Return V and 2 nu where descent in w and ascent in the multipliers end."""
    w, multipliers = FAIR.start, np.zeros(len(FAIR.clients))
    for _ in range(200):
        w = w - 0.5 * FAIR.lagrangian(multipliers).gradient(w)
        multipliers = np.maximum(multipliers + 8 * FAIR.excess(w), 0)
    assert multipliers.sum() <= FAIR.most
    return FAIR.retained(w) - FAIR.retained.least, 2 * FAIR.nu(w, multipliers)


@dataclass(frozen=True)
class Row:
    """A statement, where it is tried, what it says of which two sides, and what is to be known of both."""

    statement: str
    system: str
    left: str
    sign: str
    right: str
    sides: Callable[[], Sides]
    why: str

    def holds(self, value: float, bound: float) -> bool:
        """Whether the claim is true of two numbers, up to rounding."""
        room = bound - value
        return {"≤": room, "≥": -room, "=": -abs(room)}[self.sign] >= -ROUNDING


READ = (
    "Left and right are the two sides of the claim, computed from the definitions; false: the system meets the "
    "statement's assumptions and contradicts it; holds: it does not contradict it."
)
OPPOSITES = "(x + 1)²/2 retained, (x - 1)²/2 forgotten, P_J 1/2"
SAMPLED = "∇F (1, 0), clients ∇F ± (-1, 4), g_J (2, 0)"
DRAWN = f"∇F and g_J normal, {DRAWS:,} draws"
PENALISED = "Lemma 5.8's, λ 5, β 8, γ 16, t 10,000"
ROWS = (
    Row(
        *("Lemma 5.6", "x²/2 retained, T 10, η 1/T as prescribed", "V", "≥", "C_1", lemma_5_6),
        "μ = L = 1, w_o = 1. On the way to (15) a lower bound of ‖G_S‖² is put where its factor ημ - 1 is negative.",
    ),
    Row(
        *("Lemma 5.8", f"{OPPOSITES}, T 4, η 1/2", "S", "≥", "C_2", lemma_5_8),
        "μ = L = 1, T = μ/η², w_o = w* = 0, so that δ = 0. (22) adds G² where (21) subtracts squared gradients.",
    ),
    Row(
        *("Theorem 5.10", "Lemma 5.8's, T 1, η 1 as prescribed", "V + S", "≥", "C_s", theorem_5_10),
        "As in Lemma 5.8. The proof adds Lemmas 5.6 and 5.8; (7) also has 1/(√2 μ) for ηT/2, which is at most 1/(2μ).",
    ),
    Row(
        *("Theorem 5.11", "(x - 1)² and (x + 1)² retained, x² forgotten", "2V + Q", "≥", "C_q", theorem_5_11),
        "w_u = w* = w_r* = 0. (25) puts the optimum of F_{-J} for the mean of the clients' own optima, which is lower, "
        "where that raises the bound; without it 2V + Q ≥ 0 is left.",
    ),
    Row(
        *("Lemma 6.3, sampling", f"{SAMPLED}, one takes part", "E‖g_c‖²", "≤", "bound", lambda: lemma_6_3_here(1)),
        "λP_J = 1, ζ'² + β'² = 1, cos² its mean over the two. The last step takes ‖g_J‖² for at most ‖g_J - ∇F‖² + "
        "‖∇F‖²: it drops 2⟨g_J - ∇F, ∇F⟩.",
    ),
    Row(
        *("Lemma 6.3, all", f"{SAMPLED}, both take part", "‖g_c‖²", "≤", "bound", lambda: lemma_6_3_here(2)),
        "g_S = ∇F lies along g_J, so that nothing is left of g_J.",
    ),
    Row(
        *("Lemma 6.3, all, drawn", DRAWN, "violations", "≤", "0", lambda: violations(1)),
        "True where g_S = ∇F: with a = ‖g_J‖, b = ‖∇F‖, c = cos θ the bound exceeds ‖g_c‖² by 2(c²a² - c(1 + c²)ab + "
        "(1 + c²)b²), which is never negative.",
    ),
    Row(
        *("(36) with 1 - cos²", DRAWN, "‖g_c‖²/(1 - cos²)‖g_J‖²", "=", "1", equation_36),
        "An equality: the 1 + cos² of (36) is loose, and grows where ‖g_c‖² falls.",
    ),
    Row(
        *("Lemma 6.3, all, with 1 - cos²", DRAWN, "violations", "≤", "0", lambda: violations(-1)),
        "What (36) gives away makes up for what the step after it drops: with (36) tightened, the lemma is false.",
    ),
    Row(
        *("Theorem 6.4", PENALISED, "H - H(w*)", "≤", "bound", theorem_6_4),
        "g_c = 0 and cos² = 1 in one dimension, η_g = η_l, w* = 0 the optimum of F. L is the losses', as in Assumption "
        "5.3, but the proof needs that of H, (1 + λ)L. g_J is that of P3; the printed one makes the bound lower.",
    ),
    Row(
        *("Theorem 6.4, B of (29)", PENALISED, "H - H(w*)", "≤", "bound", lambda: theorem_6_4(appendix=True)),
        "As above; the appendix has φ twice in B.",
    ),
    Row(
        *("Theorem 6.7", "h (.01, 1), F_J = F_{-J}, λP_J 1/2, T 100", "V/D", "≤", "(χ_1 + χ_2)/D", theorem_6_7),
        "w_o = (1, 0), so that g_c = 0; μ = .01, L = 1; T meets its conditions. (30) takes ‖∇F‖² for at least F - F*, "
        "which needs 2μ ≥ 1: the bound lacks μ.",
    ),
    Row(
        *("Theorem 6.10", "x²/2 and (x - 1)²/2 retained, w_o 0, Λ 4", "V", "≤", "2ν", theorem_6_10),
        "The saddle point is exact. The proof compares it with w_r* as if that met the constraints.",
    ),
)


def by_seed(frame: pd.DataFrame, entry: Entry) -> pd.DataFrame:
    """Return whether each statement holds on its system."""
    rows = [{"metric": row.statement, "value": float(row.holds(*row.sides()))} for row in ROWS]
    return pd.DataFrame(rows).assign(scenario=FORMULAS, method=ORIGINAL, trial=ORIGINAL, stage=ORIGINAL, seed=-1)


def make(frame: pd.DataFrame, entry: Entry) -> Result:
    """Try every statement on its system."""
    found, shown = [], []
    for row in ROWS:
        value, bound = row.sides()
        holds, claim = row.holds(value, bound), f"{row.left} {row.sign} {row.right}"
        about = {"statement": row.statement, "system": row.system, "quantity": claim}
        found.append({**about, "value": value, "bound": bound, "holds": holds})
        sides = {name: f"{round(number, 3):g}" for name, number in (("Left", value), ("Right", bound))}
        cells = {"Statement": row.statement, "System": row.system, "Claim": claim, **sides}
        shown.append({**cells, "Verdict": "holds" if holds else "false"})
    words = [f"{row.statement}: {row.why}" for row in ROWS]
    return of_table(pd.DataFrame(found), [("Statements", grid(shown))], READ, [words], ("statements",))
