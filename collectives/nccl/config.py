# SPDX-License-Identifier: Apache-2.0
"""How a communicator is to be: ``ncclConfig_t``, which grew with nearly every version.

The struct tells its size and its version, and a library reads no more than it knows. So one struct,
with the fields of all versions, serves all libraries: its size and version are set to those of the
library found. A field that this library does not have is refused, not ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from collectives.errors import InvalidArgumentError, UnsupportedError
from collectives.names import integer
from collectives.nccl.constants import DEFINED
from collectives.nccl.versions import NEWEST, Version

UNSET: int = DEFINED["NCCL_CONFIG_UNDEF_INT"]


class Field(NamedTuple):
    """A field: its name here, in C, its type there, and which version brought it."""

    name: str
    c_name: str
    since: str
    c_type: str = "int"


# In the order of the struct, behind size, magic and version.
FIELDS = (
    Field("blocking", "blocking", "2.14"),
    Field("cga_cluster_size", "cgaClusterSize", "2.17"),
    Field("min_ctas", "minCTAs", "2.17"),
    Field("max_ctas", "maxCTAs", "2.17"),
    Field("net_name", "netName", "2.17", "const char *"),
    Field("split_share", "splitShare", "2.18"),
    Field("traffic_class", "trafficClass", "2.26"),
    Field("comm_name", "commName", "2.27", "const char *"),
    Field("collnet_enable", "collnetEnable", "2.27"),
    Field("cta_policy", "CTAPolicy", "2.27"),
    Field("shrink_share", "shrinkShare", "2.27"),
    Field("nvls_ctas", "nvlsCTAs", "2.27"),
    Field("channels_per_net_peer", "nChannelsPerNetPeer", "2.28"),
    Field("nvlink_centric_sched", "nvlinkCentricSched", "2.28"),
    Field("graph_usage_mode", "graphUsageMode", "2.29"),
    Field("num_rma_ctx", "numRmaCtx", "2.29"),
    Field("max_p2p_peers", "maxP2pPeers", "2.30"),
    Field("graph_stream_ordering", "graphStreamOrdering", "2.30"),
    Field("launch_order_implicit", "launchOrderImplicit", "2.31"),
    Field("num_rma_sig", "numRmaSig", "2.31"),
    Field("rma_eager_init", "rmaEagerInit", "2.31"),
    Field("host_cft_mode", "hostCftMode", "2.31"),
    Field("nvls_host_mode", "nvlsHostMode", "2.32"),
)

CDEF = (
    "typedef struct { size_t size; unsigned int magic; unsigned int version;"
    + "".join(f" {field.c_type} {field.c_name};" for field in FIELDS)
    + " } ncclConfig_t;"
)


@dataclass(frozen=True)
class Config:
    """How a communicator is to be; None leaves a field to NCCL.

    ``blocking=False``: calls return at once, and what they began is waited for by the next one or
    by ``comm.wait(timeout)``, before which nothing is enqueued for sure. The others are NCCL's own,
    as its manual explains them: ``net_name`` is its netName, ``cta_policy`` its CTAPolicy,
    ``channels_per_net_peer`` its nChannelsPerNetPeer, and so on. A field that the library found
    does not have raises UnsupportedError where the communicator is made.
    """

    blocking: bool | None = None
    cga_cluster_size: int | None = None
    min_ctas: int | None = None
    max_ctas: int | None = None
    net_name: str | None = None
    split_share: bool | None = None
    traffic_class: int | None = None
    comm_name: str | None = None
    collnet_enable: bool | None = None
    cta_policy: int | None = None
    shrink_share: bool | None = None
    nvls_ctas: int | None = None
    channels_per_net_peer: int | None = None
    nvlink_centric_sched: bool | None = None
    graph_usage_mode: int | None = None
    num_rma_ctx: int | None = None
    max_p2p_peers: int | None = None
    graph_stream_ordering: bool | None = None
    launch_order_implicit: bool | None = None
    num_rma_sig: int | None = None
    rma_eager_init: bool | None = None
    host_cft_mode: int | None = None
    nvls_host_mode: int | None = None


class Made(NamedTuple):
    """A struct for C, with the texts that it points to."""

    struct: Any
    texts: tuple[Any, ...]


def size_for(ffi: Any, version: Version) -> int:
    """Return how many bytes ``ncclConfig_t`` has in the header of a version."""
    known = [field for field in FIELDS if Version.of_text(field.since) <= version]
    kind = ffi.typeof("ncclConfig_t")
    last = dict(kind.fields)[known[-1].c_name]
    end = last.offset + ffi.sizeof(last.type)
    aligned = ffi.alignof(kind)
    return int(-(-end // aligned) * aligned)


def made(ffi: Any, config: Config, version: Version) -> Made:
    """Return the struct that a library of this version reads."""
    struct = ffi.new("ncclConfig_t *")
    struct.size = size_for(ffi, version)
    struct.magic = DEFINED["NCCL_API_MAGIC"]
    struct.version = min(version, NEWEST).code
    texts = []
    for field in FIELDS:
        wish = getattr(config, field.name)
        if wish is not None and Version.of_text(field.since) > version:
            raise UnsupportedError(
                f"Config.{field.name} came with NCCL {field.since}, and this is {version}: leave "
                "it out, or use a newer libnccl"
            )
        if field.c_type != "int":
            if wish is not None:
                texts.append(ffi.new("char[]", _text(field.name, wish)))
                setattr(struct, field.c_name, texts[-1])
        else:
            setattr(struct, field.c_name, UNSET if wish is None else _number(field.name, wish))
    return Made(struct, tuple(texts))


def _text(name: str, wish: object) -> bytes:
    if not isinstance(wish, str) or not wish or "\0" in wish:
        raise InvalidArgumentError(f"Config.{name} is {wish!r}: give a text")
    return wish.encode()


def _number(name: str, wish: object) -> int:
    number = int(wish) if isinstance(wish, bool) else integer(wish)
    if number is None or not -(2**31) < number < 2**31:
        raise InvalidArgumentError(f"Config.{name} is {wish!r}: give an integer of 32 bits")
    return number
