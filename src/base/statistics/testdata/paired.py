# SPDX-License-Identifier: Apache-2.0
# The figures that src/base/statistics/paired_test.cc expects, by SciPy and statsmodels:
#   pip install scipy statsmodels && python paired.py > paired.txt
# Lines: "signed_rank NAME statistic p exact effect : differences",
# "bootstrap NAME low mean high : values", "holm NAME : p : adjusted".
import warnings

import numpy
import scipy
import scipy.stats
import statsmodels
from statsmodels.stats.multitest import multipletests

warnings.simplefilter("ignore")
random = numpy.random.default_rng(7)


def text(values):
    return " ".join(repr(float(v)) for v in values)


def signed_rank(name, d):
    d = numpy.asarray(d, dtype=float)
    kept = d[d != 0]
    ties = len(numpy.unique(numpy.abs(kept))) != len(kept)
    exact = len(d) <= 25 and len(kept) == len(d) and not ties
    r = scipy.stats.wilcoxon(d, zero_method="wilcox", correction=True,
                             method="exact" if exact else "approx")
    ranks = scipy.stats.rankdata(numpy.abs(kept))
    plus, minus = ranks[kept > 0].sum(), ranks[kept < 0].sum()
    effect = (plus - minus) / (plus + minus)
    print(f"signed_rank {name} {text([r.statistic, min(r.pvalue, 1.0)])} {int(exact)} "
          f"{float(effect)!r} : {text(d)}")


def bootstrap(name, values):
    r = scipy.stats.bootstrap((values,), numpy.mean, n_resamples=200000, method="percentile",
                              rng=numpy.random.default_rng(1), vectorized=True, batch=10000)
    low, high = r.confidence_interval
    print(f"bootstrap {name} {text([low, numpy.mean(values), high])} : {text(values)}")


def holm(name, p):
    print(f"holm {name} : {text(p)} : {text(multipletests(p, method='holm')[1])}")


print(f"# scipy {scipy.__version__}, statsmodels {statsmodels.__version__}, "
      f"numpy {numpy.__version__}")
for n in (1, 2, 5, 6, 12, 25):
    signed_rank(f"exact-{n}", random.normal(0.3, 1, n))
signed_rank("exact-all-positive", random.uniform(0.1, 2, 20))
signed_rank("exact-symmetric", [1, -2, -3, 4])
for n in (26, 40, 250):
    signed_rank(f"normal-{n}", random.normal(0.2, 1, n))
signed_rank("ties", random.integers(-4, 6, 30))
signed_rank("ties-few", [1, 1, -1, 2, 2, 3])
signed_rank("zeros", [0, 0.5, -0.25, 1.5, 0, 2.5, 3.5])
signed_rank("one-sided-ties", [1] * 30)
bootstrap("normal-20", random.normal(0.3, 1, 20))
bootstrap("skewed-40", random.exponential(1, 40))
bootstrap("normal-60", random.normal(-0.1, 0.5, 60))
holm("three", [0.01, 0.04, 0.03])
holm("capped", [0.6, 0.5, 0.001, 0.9])
holm("ties", [0.02, 0.02, 0.02, 0.5, 0.0001])
holm("one", [0.2])
