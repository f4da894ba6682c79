"""A two-component mixture on the loss or the margin: which hump does a sample belong to?"""

import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from labelclean.arrays import Floats

# Distance of the means in pooled standard deviations below which there is one hump: a single
# Gaussian that is cut in two halves already shows 2.6.
LEAST_GAP = 3.0


def two_component_mixture(values: NDArray[np.floating]) -> Floats:
    """(N,) suspicion from a two-Gaussian fit of values that are larger for suspects.

    Posterior of the upper hump, made monotone: with unequal variances the plain posterior turns
    round at the ends. Where there are not two humps (near-clean data) the fit says nothing, and
    the answer is the rank of the value times 0.5. NaN stays NaN. (DivideMix, ICLR 2020.)
    """
    finite = np.isfinite(values)
    answer = np.full(len(values), np.nan)
    given = values[finite].astype(np.float64)
    if not len(given):
        return answer
    order = np.argsort(given, kind="stable")
    rank = np.empty(len(given))
    rank[order] = np.arange(len(given))
    weak = 0.5 * rank / max(len(given) - 1, 1)
    spread = given.max() - given.min()
    if spread <= 0 or len(given) < 4:
        answer[finite] = weak
        return answer
    scaled = ((given - given.min()) / spread)[:, None]
    model = GaussianMixture(2, max_iter=100, tol=1e-3, reg_covar=5e-4, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(scaled)
    means = model.means_.ravel()
    pooled = float(np.sqrt(model.weights_ @ model.covariances_.ravel()))
    if abs(means[1] - means[0]) < LEAST_GAP * pooled:
        answer[finite] = weak
        return answer
    upper = model.predict_proba(scaled)[:, int(means.argmax())]
    upper[scaled[:, 0] <= means.min()] = 0.0
    smooth = np.maximum.accumulate(upper[order])
    # The rank breaks the ties that flattening makes, without changing what is a suspect.
    answer[finite] = (1 - 1e-3) * smooth[np.argsort(order)] + 1e-3 * 2 * weak
    return answer
