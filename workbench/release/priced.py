"""What a release cost, and how it was drawn: from its receipts alone."""

from __future__ import annotations

from workbench.privacy import ADD_REMOVE, DP, ZCDP, Receipt, compose, guarantee


class Priced:
    """What has a receipt for each of its measurements."""

    ledger: tuple[Receipt, ...]

    @property
    def privacy(self) -> DP | ZCDP:
        """What the release cost, computed from the receipts and never merely stated."""
        return compose(self.ledger)

    def at(self, delta: float) -> DP:
        """What the release cost as (ε, δ)-differential privacy, at a δ that the reader names.

        Parameters
        ----------
        delta : float
            As for `privacy.guarantee`.

        Returns
        -------
        DP
            The smallest ε that is proven, rounded up.

        Raises
        ------
        ValueError
            If δ is no probability, or too little for what was measured.
        """
        return guarantee(self.ledger, delta)

    @property
    def relation(self) -> str:
        """Which neighbours the guarantee is about."""
        return self.ledger[0].relation if self.ledger else ADD_REMOVE

    @property
    def by_theorem(self) -> str:
        """Which of its prices a theorem sets below the sum of their draws; "" if none."""
        return "; ".join(r.description for r in self.ledger if r.theorem)

    @property
    def simulated(self) -> bool:
        """Whether anyone with the seed can replay the noise."""
        return any(r.simulated for r in self.ledger)

    @property
    def idealised(self) -> bool:
        """Whether a law was drawn with floating point."""
        return any(r.idealised for r in self.ledger)
