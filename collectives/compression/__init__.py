# SPDX-License-Identifier: Apache-2.0
"""Allreduces that move fewer bytes and are less exact: ``allreduce(x, compress=...)``."""
