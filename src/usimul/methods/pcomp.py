r"""Pcomp learning: pairs of which the first point is known to be at least as positive as the second.

One observation is an independent pair kept unless its labels are (-, +):
:math:`[p^2 P_+ P_+' + p q P_+ P_-' + q^2 P_- P_-']/Z`, Z = 1 - p q. First points have share of positives p/Z, second
points :math:`p^2/Z`, so

.. math::
   R_+ = E[\ell_+] - q E[\ell_+'] = p E_{P+}[\ell_+], \qquad R_- = E[\ell_-'] - p E[\ell_-] = q E_{P-}[\ell_-].

If a share r of the pairs is wrong (``wrong_yes``), that is negative before positive, both shares move towards p by the
factor :math:`\kappa = 1 - r/(p q)`, and the weights are solved for those.

Works at every prior. ``pcomp-relu`` and ``pcomp-abs`` correct each part.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import ComparedPairs
>>> [(t.columns, t.label, round(t.weight, 3)) for t in get_method("pcomp-abs").terms(ComparedPairs([[0, 1]]), 0.4)]
[((0,), 1, 1.0), ((1,), 1, -0.6), ((0,), -1, -0.4), ((1,), -1, 1.0)]

Differs from the paper: in nothing but the choice of model and training settings.
"""

from __future__ import annotations

from collections.abc import Sequence

from usimul.methods.base import Paper, register_corrected
from usimul.mixture import acceptance_probability, compared_shares, noisy_share, rows_of, signal_kept, solve
from usimul.risk import Term, class_terms
from usimul.supervision import ComparedPairs, Supervision


def pcomp_terms(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> Sequence[Term]:
    """Weights for first and second points."""
    kept = signal_kept(wrong_yes, acceptance_probability(prior))
    weights = solve(rows_of(*(noisy_share(share, prior, kept) for share in compared_shares(prior))), prior)
    return class_terms(weights, [("compared", (0,)), ("compared", (1,))])


register_corrected(
    {"pcomp-unbiased": "none", "pcomp-relu": "relu", "pcomp-abs": "abs"},
    pcomp_terms,
    module=__name__,
    summary="compared pairs",
    supervision=ComparedPairs,
    formula="mean[l+ - q l+'] + mean[l-' - p l-]",
    paper=Paper(
        "Feng, L., Shu, S., Lu, N., Han, B., Xu, M., Niu, G., An, B., Sugiyama, M.",
        "Pointwise Binary Classification with Pairwise Confidence Comparisons",
        "ICML",
        2021,
        "https://proceedings.mlr.press/v139/feng21d.html",
    ),
    unbiased=("",),
    corrects_wrong_yes=True,
)
