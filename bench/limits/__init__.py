# SPDX-License-Identifier: Apache-2.0
"""The native library held against what the machine allows, measured in the same run."""
