# SPDX-License-Identifier: Apache-2.0
"""Trees that share the links of a graph: what :func:`collectives.pack` is made of."""
