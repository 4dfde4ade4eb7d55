"""Bake bread by numbers. Any flour will do.

Times are in minutes.
"""

import os.path
from collections import abc

# Ovens differ: measure yours.
HEAT = 230


class Oven(abc.Sized):
    """Where bread is baked."""

    def __len__(self):
        return 1

    def bake(self, loaf):
        def inner():
            return loaf

        return inner()


async def knead(dough):
    return os.path.join(dough, "ball")
