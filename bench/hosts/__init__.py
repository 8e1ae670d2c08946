# SPDX-License-Identifier: Apache-2.0
"""Collectives between hosts of namespaces with shaped links, in shares of what the links allow."""
