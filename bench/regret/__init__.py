# SPDX-License-Identifier: Apache-2.0
"""How far what a call runs is from the best plan there is, cell by cell."""
