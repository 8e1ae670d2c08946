# SPDX-License-Identifier: Apache-2.0
"""Choices that were measured: what is tried, how it is raced, and the table that comes of it."""
