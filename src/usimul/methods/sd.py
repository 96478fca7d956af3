r"""SD and DU learning: similar and dissimilar pairs; dissimilar pairs and unlabeled points.

For ``sd`` one observation is an independent pair with the answer to "do both share their class?". Points of similar
pairs have share of positives :math:`p^2/p_S`, points of dissimilar pairs one half; with :math:`p_S = p^2 + q^2`,
:math:`p_D = 2 p q`, D = p - q

.. math::
   R = p_S E_S\Bigl[\frac{p \ell_+ - q \ell_-}{D}\Bigr] + p_D E_{Dis}\Bigl[\frac{p \ell_- - q \ell_+}{D}\Bigr].

For ``du`` it is a pair known to be dissimilar, plus unlabeled points:

.. math:: R = -\frac{p_D}{D} E_{Dis}[\ell_+ - \ell_-] + E_U\Bigl[\frac{p \ell_+ - q \ell_-}{D}\Bigr].

If a share r of the similar answers is wrong (``wrong_yes``), ``sd`` takes both answers to be given wrongly equally
often, :math:`e = r p_S / (r p_S + (1-r) p_D)`; shares of positives move towards p and the weights are solved for those.
For ``du``, r is the share of pairs that are not dissimilar.

Both are undefined at prior 1/2.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import DissimilarPairs
>>> sup = DissimilarPairs([[0, 1]], unlabeled=[2])
>>> [(t.source, t.label, round(t.weight, 3)) for t in get_method("du").terms(sup, 0.7)]
[('dissimilar', 1, -1.05), ('unlabeled', 1, 1.75), ('dissimilar', -1, 1.05), ('unlabeled', -1, -0.75)]

Differs from the paper: any model and loss.
"""

from __future__ import annotations

from collections.abc import Sequence

from usimul.methods.base import Paper, RiskMethod, register
from usimul.mixture import noisy_share, rows_of, signal_kept, similar_probability, similar_share, solve
from usimul.noise import wrong_no_share
from usimul.risk import Term, class_terms
from usimul.supervision import DissimilarPairs, PairAnswers, Supervision

PAPER = Paper(
    "Shimada, T., Bao, H., Sato, I., Sugiyama, M.",
    "Classification From Pairwise Similarities/Dissimilarities and Unlabeled Data via Empirical Risk Minimization",
    "Neural Computation 33(5)",
    2021,
    "https://doi.org/10.1162/neco_a_01373",
)


def sd_terms(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> Sequence[Term]:
    """Weights for points of similar and of dissimilar pairs."""
    holds = similar_probability(prior)
    similar = noisy_share(similar_share(prior), prior, signal_kept(wrong_yes, holds))
    dissimilar = noisy_share(0.5, prior, signal_kept(wrong_no_share(wrong_yes, holds), 1.0 - holds))
    weights = solve(rows_of(similar, dissimilar), prior)
    return class_terms(weights, [("similar", (0, 1)), ("dissimilar", (0, 1))])


def du_terms(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> Sequence[Term]:
    """Weights for points of dissimilar pairs and unlabeled points."""
    share = noisy_share(0.5, prior, signal_kept(wrong_yes, 1.0 - similar_probability(prior)))
    weights = solve(rows_of(share, prior), prior)
    return class_terms(weights, [("dissimilar", (0, 1)), ("unlabeled", (0,))])


register(
    RiskMethod(
        "sd",
        sd_terms,
        summary="similar and dissimilar pairs",
        supervision=PairAnswers,
        formula="pS mean_S[(p l+ - q l-)/D] + pD mean_Dis[(p l- - q l+)/D],  pD = 2 p q",
        paper=PAPER,
        unbiased=("",),
        defined_at_half=False,
        corrects_wrong_yes=True,
    ),
    module=__name__,
)
register(
    RiskMethod(
        "du",
        du_terms,
        summary="dissimilar pairs and unlabeled points",
        supervision=DissimilarPairs,
        formula="-(pD/D) mean_Dis[l+ - l-] + mean_U[(p l+ - q l-)/D]",
        paper=PAPER,
        unbiased=("",),
        defined_at_half=False,
        corrects_wrong_yes=True,
        needs_unlabeled=True,
    ),
    module=__name__,
)
