# SPDX-License-Identifier: Apache-2.0
"""The rank programs. They run in the peers' environments, which have NumPy but not our package."""
