"""A private function of one's own: which single price would have earned most?"""

from fractions import Fraction

from retrodp import Coins, private

PRICES = range(1, 51)  # pounds


@private(epsilon=1, low=1, high=50)
def best_price(pence: list[int], coins: Coins) -> int:
    """If every line paid one price, or nothing where it was worth less: the price that earns most.

    A line more raises each of the sums, by 50 at most, so the greatest noisy one is 1-private.
    """
    earned = [price * sum(amount >= 100 * price for amount in pence) for price in PRICES]
    noisy = [pounds + coins.laplace(Fraction(50)) for pounds in earned]
    return PRICES[noisy.index(max(noisy))]
