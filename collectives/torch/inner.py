# SPDX-License-Identifier: Apache-2.0
"""What torch asks of the backend within a group, which here is the group itself."""

from __future__ import annotations

from typing import Any

import torch
from torch import distributed

DEVICES = ("cpu", "cuda")  # whose tensors a group takes


class Inner:
    """A group that holds no backend of C++, which its tensors could go through unseen."""

    supports_coalescing = supports_shrinking = supports_splitting = False
    supports_time_estimate = False

    def _get_backend(self, device: Any) -> Any:
        """Return the group itself; raise RuntimeError for another device, as torch's groups do."""
        if torch.device(device).type in DEVICES:
            return self
        return distributed.ProcessGroup._get_backend(self, torch.device(device))

    def supports_tensor_alloc(self, device: Any) -> bool:
        """Whether the group has memory of its own for tensors of a device."""
        del device
        return False
