# SPDX-License-Identifier: Apache-2.0
"""The kernels of sparse vectors beside floors."""
