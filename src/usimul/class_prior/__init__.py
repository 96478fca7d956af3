"""The class prior: estimates of it, and whether supervision contradicts a stated one."""

from usimul.class_prior.conflict import CONFLICT_Z, Conflict, prior_conflict
from usimul.class_prior.estimate import METHODS, estimate_prior
from usimul.class_prior.result import SIDES, PriorEstimate, PriorNearHalfError

__all__ = [
    "CONFLICT_Z",
    "METHODS",
    "SIDES",
    "Conflict",
    "PriorEstimate",
    "PriorNearHalfError",
    "estimate_prior",
    "prior_conflict",
]
