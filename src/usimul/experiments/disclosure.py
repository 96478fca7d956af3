"""The paper's privacy comparison with numbers instead of adjectives: what one answer says of the labels behind it.

Exact, by enumeration of the admissible label tuples; no run is needed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import permutations

from usimul.events import EVENTS, Event, companions

__all__ = ["Disclosure", "disclosure", "disclosure_markdown"]

PRIORS = (0.2, 0.4, 0.6)
KINDS = {
    "similar pair": EVENTS["similar-pair"],
    "dissimilar pair": EVENTS["dissimilar-pair"],
    "compared pair": EVENTS["compared-pair"],
    "triplet (USimUL)": EVENTS["triplet"],
    "one of 3 companions": companions(3),
}


@dataclass(frozen=True)
class Disclosure:
    """What a yes answer gives away, for independent points.

    Parameters
    ----------
    bits
        Information of the answer on the labels of its tuple, in bits: log2(1 / P(yes)).
    bits_a_point
        The same divided by the points of the tuple.
    alone
        The farthest that the answer moves P(y = +1) of one member away from the prior.
    one_known
        The highest certainty on one member's class, given the answer and another member's label.
    rest_known
        The same, given the answer and all other labels; 1 is certainty.
    """

    bits: float
    bits_a_point: float
    alone: float
    one_known: float
    rest_known: float


def disclosure(event: Event, prior: float) -> Disclosure:
    """Enumerate an event.

    >>> found = disclosure(EVENTS["similar-pair"], 0.4)
    >>> round(found.bits, 3), found.rest_known
    (0.943, 1.0)
    """
    posterior = dict(zip(event.admissible, event.posterior(prior), strict=True))

    def certainty(member: int, known: tuple[int, ...]) -> float:
        """Highest probability of either class of a member, over the labels that the known members can have."""
        best = 0.0
        for labels in {tuple(y[i] for i in known) for y in posterior}:
            fits = {y: w for y, w in posterior.items() if tuple(y[i] for i in known) == labels}
            share = sum(w for y, w in fits.items() if y[member]) / sum(fits.values())
            best = max(best, float(share), 1.0 - float(share))
        return best

    bits = -math.log2(event.probability(prior))
    members = range(event.size)
    return Disclosure(
        bits,
        bits / event.size,
        float(max(abs(share - prior) for share in event.marginals(prior))),
        max(certainty(a, (b,)) for a, b in permutations(members, 2)),
        max(certainty(a, tuple(b for b in members if b != a)) for a in members),
    )


def disclosure_markdown() -> str:
    """Return the table."""
    head = ["answer", "prior", "bits", "bits a point", "moves one label by", "one label known", "all others known"]
    lines = [
        "## What one answer gives away",
        "",
        "The paper compares kinds of supervision by adjectives and promises full protection. These are the numbers: a",
        "yes answer about independent points, nothing else known.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + " --- |" * len(head),
    ]
    for name, event in KINDS.items():
        for prior in PRIORS:
            d = disclosure(event, prior)
            numbers = [f"{v:.3f}" for v in (d.bits, d.bits_a_point, d.alone, d.one_known, d.rest_known)]
            lines.append("| " + " | ".join([name, f"{prior:g}", *numbers]) + " |")
    return "\n".join(
        [
            *lines,
            "",
            "*moves one label by*: how far P(y = +1) of a member moves from the prior. *one label known*, *all others",
            "known*: the highest certainty about another member's class then; 1 is certainty. A triplet gives away",
            "less than a similar pair, not nothing.",
        ]
    )
