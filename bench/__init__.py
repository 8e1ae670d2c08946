# SPDX-License-Identifier: Apache-2.0
"""Benchmarks, for a checkout: ``make bench``, ``pytest bench``, ``python -m bench.limits``."""
