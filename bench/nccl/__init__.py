# SPDX-License-Identifier: Apache-2.0
"""libnccl.so.2 beside the C interface below it."""
