# SPDX-License-Identifier: Apache-2.0
"""The struct of a configuration, for libraries of all versions, as the library reads it."""

from __future__ import annotations

from typing import Any

import pytest

from collectives import nccl
from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.nccl import config as configs
from collectives.nccl.declarations import ffi
from collectives.nccl.versions import Version
from tests.nccl.standin import Standin

# Bytes, as compilers of those headers count them.
SIZES = {
    "2.18.3": 48, "2.26.5": 48, "2.27.7": 72, "2.28.9": 80, "2.29.7": 88, "2.30.7": 96,
    "2.31.2": 112, "2.32.3": 120,
}  # fmt: skip


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_sizes_are_those_of_the_headers(text: str, size: int) -> None:
    version = Version.of_text(text)
    made = configs.made(ffi, nccl.Config(), version).struct
    assert (made.size, made.magic, made.version) == (size, 0xCAFEBEEF, version.code)
    assert configs.size_for(ffi, version) == size


def test_newer_libraries_get_the_newest_version_that_is_known() -> None:
    made = configs.made(ffi, nccl.Config(), Version(2, 40, 1)).struct
    assert (made.size, made.version) == (ffi.sizeof("ncclConfig_t"), 23203)


def test_fields_arrive_where_the_library_looks(standin: Standin) -> None:
    config = nccl.Config(
        blocking=True, min_ctas=2, max_ctas=8, net_name="IB", split_share=True, traffic_class=3,
        comm_name="tp", collnet_enable=False, cta_policy=1, shrink_share=True, nvls_ctas=4,
        channels_per_net_peer=5, nvlink_centric_sched=True, graph_usage_mode=2, num_rma_ctx=6,
        max_p2p_peers=7, graph_stream_ordering=True,
    )  # fmt: skip
    nccl.init_rank(2, nccl.unique_id(), 1, config=config).close()
    assert standin.log()[:-1] == [
        "ncclCommInitRankConfig 2 1 id 121",
        "config 96 cafebeef 23007",
        "netName IB",
        "commName tp",
        *(
            f"number {place} {value}"
            for place, value in {
                0: 1, 2: 2, 3: 8, 4: 1, 5: 3, 6: 0, 7: 1, 8: 1, 9: 4, 10: 5, 11: 1, 12: 2, 13: 6,
                14: 7, 15: 1,
            }.items()
        ),
    ]  # fmt: skip


def test_a_field_that_the_library_does_not_have_is_refused(standin: Standin) -> None:
    with pytest.raises(
        UnsupportedError, match=r"num_rma_sig came with NCCL 2.31, and this is 2.30"
    ):
        nccl.init_rank(1, nccl.unique_id(), 0, config=nccl.Config(num_rma_sig=1))
    assert standin.log() == []


@pytest.mark.parametrize(
    "wrong",
    [{"min_ctas": "2"}, {"max_ctas": 2**31}, {"min_ctas": 1.5}, {"net_name": 3}, {"comm_name": ""}],
)
def test_what_is_no_value_is_refused(standin: Standin, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=f"Config.{next(iter(wrong))} is"):
        nccl.init_rank(1, nccl.unique_id(), 0, config=nccl.Config(**wrong))
