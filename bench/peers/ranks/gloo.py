# SPDX-License-Identifier: Apache-2.0
"""A rank of Gloo, through torch.distributed."""

from __future__ import annotations

from bench.peers.ranks import torch_api
from bench.peers.ranks.serve import serve, station

if __name__ == "__main__":
    place = station()
    serve(place, torch_api.meet("gloo", place), torch_api.bind)
    torch_api.leave()
