# SPDX-License-Identifier: Apache-2.0
"""Sparse allreduce beside Gloo, MPI and our own dense one."""
