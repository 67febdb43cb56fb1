"""How far one record, or one unit of records, moves a whole vector of coordinates.

Where a record touches several coordinates by unequal amounts, the norms of its vector say more than
their number and the largest amount. Both norms are whole numbers of steps, so that an encoded
vector either keeps to them or does not; nothing is rounded in between.
"""

from __future__ import annotations

from typing import NamedTuple


class Norms(NamedTuple):
    """Bounds on a vector of whole steps.

    Attributes:
        l1: On the sum of the absolute coordinates; what Laplace noise is charged by.
        l2_squared: On the sum of the squared coordinates; what Gaussian noise is charged by.
    """

    l1: int
    l2_squared: int

    def of_records(self, records: int) -> Norms:
        """Bounds on the sum of so many records' vectors.

        Norms obey the triangle inequality, whatever the vectors and however long each of them is
        there; equal records that begin and end together attain it.
        """
        return Norms(self.l1 * records, self.l2_squared * records**2)
