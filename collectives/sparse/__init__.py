# SPDX-License-Identifier: Apache-2.0
"""Vectors of which most elements are zero, and their collectives."""
