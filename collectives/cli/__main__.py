# SPDX-License-Identifier: Apache-2.0
"""``python -m collectives.cli`` is collbench."""

from __future__ import annotations

from collectives.cli import main

main()
