"""figures - what a few runs of two contenders say about how many times as fast one is. Arithmetic alone."""
import math


def quantile(values, part):
    """The value below which `part` of them lie, between neighbours in proportion."""
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    low = int(at)
    if low + 1 == len(ordered):
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[low + 1] - ordered[low])


def median(values):
    return quantile(values, 0.5)


def median_interval(values, confidence=0.95):
    """Two of the values that have the median of what they are drawn from between them, with `confidence` at least.

    Each value is above the true median or below it as a coin falls, whatever they are distributed like: so the k-th of
    them from both ends leaves it out as often as n coins show fewer than k heads, twice. Runs that were taken in the
    same round belong together, which is why this looks at their ratios alone and not, as bench/ratio.h does for runs
    that have nothing to do with each other, at all pairs. Too few values: 0 to infinity.
    """
    ordered, n = sorted(values), len(values)
    outside, k = 2 * 0.5**n, 0
    while outside <= 1 - confidence and 2 * k < n:
        k += 1
        outside += 2 * math.comb(n, k) * 0.5**n
    return (ordered[k - 1], ordered[n - k]) if k else (0.0, math.inf)


def ratio(ours, theirs):
    """How many times as fast we are, of the seconds of both in each round: the median and its interval."""
    ratios = [b / a for a, b in zip(ours, theirs)]
    return (median(ratios), *median_interval(ratios))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))
