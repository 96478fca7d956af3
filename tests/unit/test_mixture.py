"""Class shares and weights, against the formulas of the papers and of the audit, written out here."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from usimul.mixture import (
    acceptance_probability,
    anchor_share,
    mass_test,
    pair_anchor_share,
    printed_triplet_row,
    rows_of,
    similar_probability,
    similar_share,
    solve,
)
from usimul.validation import InputError

PRIORS = (0.2, 0.4, 0.6, 0.85)


def constants(p):
    q = 1 - p
    return q, p - q, 1 - p * q, p**2 + q**2  # q, D, Z, pS


class TestShares:
    @pytest.mark.parametrize("p", [0.1, 0.2, 0.4, 0.5, 0.6])
    def test_formulas(self, p):
        q, _, z, ps = constants(p)
        assert acceptance_probability(p) == pytest.approx(z, abs=1e-15)
        assert similar_probability(p) == pytest.approx(ps, abs=1e-15)
        assert similar_share(p) == pair_anchor_share(p) == pytest.approx(p**2 / ps, abs=1e-15)
        assert anchor_share(p) == pytest.approx(p**2 * (1 + q) / z, abs=1e-15)
        assert 1 - anchor_share(p) == pytest.approx(q**2 * (1 + p) / z, abs=1e-15)

    @pytest.mark.parametrize(
        ("p", "anchor", "mass"), [(0.2, 0.0857, 1.619), (0.4, 0.3368, 1.368), (0.6, 0.6632, 1.368)]
    )
    def test_printed_numbers_of_the_audit(self, p, anchor, mass):
        assert round(anchor_share(p), 4) == anchor
        assert round(sum(printed_triplet_row(p)), 3) == mass

    def test_printed_row_is_a_multiple_of_the_law_of_similar_pairs(self):
        first, second = printed_triplet_row(0.4)
        assert first / (first + second) == pytest.approx(0.4**2 / (0.4**2 + 0.6**2), abs=1e-14)

    def test_rows(self):
        np.testing.assert_array_equal(rows_of(0.25, 1.0), [[0.25, 0.75], [1.0, 0.0]])


def general_rule(s, p):
    """R = E_U[p l+ + q l-] + k (E_S - E_U)[l+ - l-], k = p q / (s - p): rows S, U; columns l+, l-."""
    k = p * (1 - p) / (s - p)
    return np.array([[k, -k], [p - k, 1 - p + k]])


@pytest.mark.parametrize("p", PRIORS)
class TestWeights:
    def test_anchors_of_definition_1(self, p):
        q, d, z, _ = constants(p)
        weights = solve(rows_of(anchor_share(p), p), p)
        expected = [[z / d, -z / d], [-q * (1 + p) / d, p * (1 + q) / d]]
        np.testing.assert_allclose(weights, expected, rtol=1e-9)

    @pytest.mark.parametrize(("share", "k"), [("half", 2), ("pooled", 3)])
    def test_pooled_positions(self, p, share, k):
        q, d, z, _ = constants(p)
        a = p * (1 - q**2) / z
        s = (a + p) / 2 if share == "half" else p + p * q * d / (3 * z)
        c = k * z / d
        np.testing.assert_allclose(solve(rows_of(s, p), p), [[c, -c], [p - c, q + c]], rtol=1e-7)

    def test_position_aware(self, p):
        """Audit 5(c): companions follow the unlabeled law, so the weight h may be shared among both in any way."""
        q, d, z, _ = constants(p)
        c = z / d
        rows = rows_of(anchor_share(p), p, p)
        for precision, lam in (([1, 0, 1], 1.0), ([1, 3, 1], 0.25), ([1, 1, 0], 0.0)):
            expected = [[c, -c], [(1 - lam) * (p - c), (1 - lam) * (q + c)], [lam * (p - c), lam * (q + c)]]
            np.testing.assert_allclose(solve(rows, p, precision=precision), expected, rtol=1e-8, atol=1e-12)

    def test_similar_pairs_give_su(self, p):
        q, d, _, ps = constants(p)
        expected = [[ps / d, -ps / d], [-q / d, p / d]]
        np.testing.assert_allclose(solve(rows_of(similar_share(p), p), p), expected, rtol=1e-9)

    def test_pair_plus_unlabeled_pooled(self, p):
        q, d, _, ps = constants(p)
        k = 3 * ps / (2 * d)
        np.testing.assert_allclose(
            solve(rows_of((2 * similar_share(p) + p) / 3, p), p), [[k, -k], [p - k, q + k]], rtol=1e-8
        )

    def test_similar_and_dissimilar_give_sd(self, p):
        q, d, _, ps = constants(p)
        pd = 2 * p * q
        expected = np.array([[ps * p, -ps * q], [-pd * q, pd * p]]) / d
        np.testing.assert_allclose(solve(rows_of(similar_share(p), 0.5), p), expected, rtol=1e-9)

    def test_compared_pairs_give_pcomp(self, p):
        q, _, z, _ = constants(p)
        np.testing.assert_allclose(solve(rows_of(p / z, p**2 / z), p), [[1, -p], [-q, 1]], rtol=1e-9)

    @pytest.mark.parametrize(("th", "th2"), [(0.9, 0.1), (0.8, 0.2), (0.3, 0.7)])
    def test_unlabeled_unlabeled(self, p, th, th2):
        q, gap = 1 - p, th - th2
        a, b, c, e = (1 - th2) * p / gap, th2 * q / gap, (1 - th) * p / gap, th * q / gap
        np.testing.assert_allclose(solve(rows_of(th, th2), p), [[a, -b], [-c, e]], rtol=1e-10, atol=1e-13)

    @pytest.mark.parametrize("s", [0.05, 0.5, 0.95])
    def test_general_rule(self, p, s):
        np.testing.assert_allclose(solve(rows_of(s, p), p), general_rule(s, p), rtol=1e-8)

    def test_printed_weights_of_theorem_4(self, p):
        q, d, z, _ = constants(p)
        k = z / (2 * d)
        weights = solve([printed_triplet_row(p), (p, q)], p)
        np.testing.assert_allclose(weights, [[k, -k], [-q / d, p / d]], rtol=1e-9)


@pytest.mark.parametrize(("p", "anchor_k", "anchor_u", "printed_k", "printed_u"), [
    (0.2, -1.4, (1.6, -0.6), -0.7, (1.333, -0.333)),
    (0.4, -3.8, (4.2, -3.2), -1.9, (3.0, -2.0)),
    (0.6, 3.8, (-3.2, 4.2), 1.9, (-2.0, 3.0)),
])  # fmt: skip
def test_numbers_of_the_audit(p, anchor_k, anchor_u, printed_k, printed_u):
    exact = solve(rows_of(anchor_share(p), p), p)
    printed = solve([printed_triplet_row(p), (p, 1 - p)], p)
    np.testing.assert_allclose(exact, [[anchor_k, -anchor_k], anchor_u], atol=1e-9)
    np.testing.assert_allclose(printed, [[printed_k, -printed_k], printed_u], atol=5e-4)


class TestMass:
    @pytest.mark.parametrize("p", PRIORS)
    def test_exact_weights_pass(self, p):
        for rows in (rows_of(anchor_share(p), p), rows_of(similar_share(p), p), rows_of(0.9, 0.3, 0.1)):
            assert mass_test(solve(rows, p)) == pytest.approx((p, 1 - p), abs=1e-9)

    @pytest.mark.parametrize(("p", "printed_pe"), [(0.2, 0.633), (0.4, 1.1), (0.6, -0.1)])
    def test_printed_weights_fail(self, p, printed_pe):
        q, d, z, _ = constants(p)
        pe = (z / 2 - q) / d
        found = mass_test(solve([printed_triplet_row(p), (p, q)], p))
        assert found == pytest.approx((pe, 1 - pe), abs=1e-12)
        assert round(found[0], 3) == printed_pe
        assert abs(found[0] - p) > 0.4

    def test_printed_weights_pass_only_for_sources_of_the_wrong_mass(self):
        rows = [printed_triplet_row(0.4), (0.4, 0.6)]
        assert mass_test(solve(rows, 0.4), rows) == pytest.approx((0.4, 0.6), abs=1e-12)


SHARES = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=5).filter(lambda s: max(s) - min(s) > 0.02)


@settings(max_examples=200, deadline=None)
@given(SHARES, st.floats(0.05, 0.95), st.data())
def test_solve_inverts_every_mixing_row(shares, p, data):
    precision = data.draw(st.lists(st.floats(0.1, 10.0), min_size=len(shares), max_size=len(shares)))
    weights = solve(rows_of(*shares), p, precision=precision)
    positive = np.array(shares)
    mixed = np.array([[w @ positive, w @ (1 - positive)] for w in weights.T])
    np.testing.assert_allclose(mixed, [[p, 0], [0, 1 - p]], atol=1e-7)


def test_least_norm_among_all_weights():
    """With three sources the solution has one degree of freedom; walking along it must never help."""
    shares, precision, p = np.array([0.9, 0.4, 0.2]), np.array([1.0, 5.0, 2.0]), 0.3
    weights = solve(rows_of(*shares), p, precision=precision)
    direction = np.cross(shares, 1 - shares)  # changes no mixture
    for column in weights.T:
        best = np.sum(column**2 / precision)
        for step in (-0.1, -0.001, 0.001, 0.1):
            assert np.sum((column + step * direction) ** 2 / precision) > best


class TestRefusals:
    def test_half(self):
        with pytest.raises(
            InputError, match=r"shares of positives 0.5, 0.5 do not tell the classes apart at prior 0.5"
        ):
            solve(rows_of(anchor_share(0.5), 0.5), 0.5)

    def test_equal_sources(self):
        with pytest.raises(InputError, match=r"shares of positives 0.3, 0.3, 0.3 do not tell"):
            solve(rows_of(0.3, 0.3, 0.3), 0.4)

    def test_one_source(self):
        with pytest.raises(InputError, match="do not tell the classes apart"):
            solve(rows_of(0.3), 0.4)

    @pytest.mark.parametrize("prior", [0.0, 1.0, 1.5])
    def test_prior(self, prior):
        with pytest.raises(InputError, match=r"`prior` must lie in \(0, 1\)"):
            solve(rows_of(0.1, 0.9), prior)
