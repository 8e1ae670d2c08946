# SPDX-License-Identifier: Apache-2.0
"""What a shaped link between two hosts of namespaces carries, before others are judged on it."""
