r"""SU learning: similar pairs and unlabeled points.

One observation is a pair (x, x') known to share its class, drawn from :math:`[p^2 P_+ P_+' + q^2 P_- P_-']/p_S` with
:math:`p_S = p^2 + q^2`; unlabeled points are drawn from P. Each point of a pair has share of positives :math:`p^2/p_S`,
so with D = p - q

.. math::
   R_+ = \frac{p_S}{D} E_S[\ell_+] - \frac{q}{D} E_U[\ell_+] = p E_{P+}[\ell_+], \qquad
   R_- = -\frac{p_S}{D} E_S[\ell_-] + \frac{p}{D} E_U[\ell_-] = q E_{P-}[\ell_-].

If a share r of the pairs is wrong (``wrong_yes``), :math:`p_S/D` becomes :math:`p_S/(\kappa D)` with
:math:`\kappa = 1 - r/(2 p q)`, and the weights of the unlabeled points change to match.

Undefined at prior 1/2, where a pair's points follow the unlabeled law.

Examples
--------
>>> from usimul.methods import get_method
>>> from usimul.supervision import SimilarPairs
>>> sup = SimilarPairs([[0, 1]], unlabeled=[2])
>>> [(t.source, t.label, round(t.weight, 3)) for t in get_method("su").terms(sup, 0.7)]
[('similar', 1, 1.45), ('unlabeled', 1, -0.75), ('similar', -1, -1.45), ('unlabeled', -1, 1.75)]

Differs from the paper: any model and loss instead of a linear model with the square or double hinge loss; corrections
(``su-abs``, ``su-relu``) of the class parts, which the paper does not have; the square loss is (1 - m)^2, without 1/4.
"""

from __future__ import annotations

from collections.abc import Sequence

from usimul.methods.base import Paper, register_corrected
from usimul.mixture import noisy_share, rows_of, signal_kept, similar_probability, similar_share, solve
from usimul.risk import Term, class_terms
from usimul.supervision import SimilarPairs, Supervision


def su_terms(supervision: Supervision, prior: float, wrong_yes: float = 0.0) -> Sequence[Term]:
    """Weights for points of similar pairs and unlabeled points."""
    share = noisy_share(similar_share(prior), prior, signal_kept(wrong_yes, similar_probability(prior)))
    weights = solve(rows_of(share, prior), prior)
    return class_terms(weights, [("similar", (0, 1)), ("unlabeled", (0,))])


register_corrected(
    {"su": "none", "su-abs": "abs", "su-relu": "relu"},
    su_terms,
    module=__name__,
    summary="similar pairs and unlabeled points",
    supervision=SimilarPairs,
    formula="(pS/D) mean_S[l+ - l-] + mean_U[-q l+ + p l-]/D,  pS = p^2 + q^2, D = p - q",
    paper=Paper(
        "Bao, H., Niu, G., Sugiyama, M.",
        "Classification from Pairwise Similarity and Unlabeled Data",
        "ICML",
        2018,
        "https://proceedings.mlr.press/v80/bao18a.html",
    ),
    unbiased=("",),
    defined_at_half=False,
    needs_unlabeled=True,
    corrects_wrong_yes=True,
)
