# SPDX-License-Identifier: Apache-2.0
"""Where ranks are and what lies between them, as a value: measured, kept, edited and drawn."""

from collectives.topology.value import LEVELS, Link, Place, Topology

__all__ = ["LEVELS", "Link", "Place", "Topology"]
