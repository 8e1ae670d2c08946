# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over this library, beside gloo."""
