# SPDX-License-Identifier: Apache-2.0
"""NCCL beside our own calls of arrays on GPUs: who may be chosen, who is faster, and why not."""
