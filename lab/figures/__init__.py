"""The figures of the workbook: each draws what the library computes.

A figure function takes numbers by keyword and returns panels. A panel is a figure and its text alternative,
which says in words, with the same numbers, what the figure shows. `__all__` lists the functions that content
may name; a file holds one of them, and `lines` what several share.
"""

from lab.drawing import COLOURS as COLOURS  # which a page replaces, so not a figure and not in the list
from lab.figures.clipping import clipped_surrogate
from lab.figures.estimators import kl_estimators
from lab.figures.margin import dpo_margin
from lab.figures.rewards import token_rewards
from lab.figures.scores import over_optimisation
from lab.figures.variance import baseline_variance
from lab.figures.weights import gae_weights

__all__ = [
    "baseline_variance",
    "clipped_surrogate",
    "dpo_margin",
    "gae_weights",
    "kl_estimators",
    "over_optimisation",
    "token_rewards",
]
