# SPDX-License-Identifier: Apache-2.0
"""What runs in each rank; nothing here needs more than its own library and NumPy."""
