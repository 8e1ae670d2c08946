# SPDX-License-Identifier: Apache-2.0
"""``python -m bench.gpu``: checks and measures collectives on a GPU; docs/gpu.md says what."""
