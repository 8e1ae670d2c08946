# SPDX-License-Identifier: Apache-2.0
"""Our calls beside those of Gloo and three MPIs, interleaved in one run: ``make bench-peers``."""
