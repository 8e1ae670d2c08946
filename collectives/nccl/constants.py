# SPDX-License-Identifier: Apache-2.0
"""The numbers of NCCL's interface, under its own names; they are never renumbered."""

from __future__ import annotations

RESULTS: dict[str, int] = {
    "ncclSuccess": 0,
    "ncclUnhandledCudaError": 1,
    "ncclSystemError": 2,
    "ncclInternalError": 3,
    "ncclInvalidArgument": 4,
    "ncclInvalidUsage": 5,
    "ncclRemoteError": 6,
    "ncclInProgress": 7,
    "ncclTimeout": 8,
}
SUCCESS = RESULTS["ncclSuccess"]
IN_PROGRESS = RESULTS["ncclInProgress"]

DTYPES: dict[str, int] = {
    "ncclInt8": 0,
    "ncclUint8": 1,
    "ncclInt32": 2,
    "ncclUint32": 3,
    "ncclInt64": 4,
    "ncclUint64": 5,
    "ncclFloat16": 6,
    "ncclFloat32": 7,
    "ncclFloat64": 8,
    "ncclBfloat16": 9,
    "ncclFloat8e4m3": 10,
    "ncclFloat8e5m2": 11,
}

OPS: dict[str, int] = {
    "ncclSum": 0,
    "ncclProd": 1,
    "ncclMax": 2,
    "ncclMin": 3,
    "ncclAvg": 4,
}

RESIDENCES: dict[str, int] = {
    "ncclScalarDevice": 0,
    "ncclScalarHostImmediate": 1,
}

MEMORY: dict[str, int] = {  # of ncclCommMemStats
    "ncclStatGpuMemSuspend": 0,
    "ncclStatGpuMemSuspended": 1,
    "ncclStatGpuMemPersist": 2,
    "ncclStatGpuMemTotal": 3,
}

# What nccl.h defines by #define.
DEFINED: dict[str, int] = {
    "NCCL_UNIQUE_ID_BYTES": 128,
    "NCCL_CONFIG_UNDEF_INT": -(2**31),
    "NCCL_SPLIT_NOCOLOR": -1,
    "NCCL_API_MAGIC": 0xCAFEBEEF,
    "NCCL_WIN_DEFAULT": 0,
    "NCCL_WIN_COLL_SYMMETRIC": 1,
    "NCCL_WIN_STRICT_ORDERING": 2,
    "NCCL_WIN_REQUIRED_ALIGNMENT": 4096,
    "NCCL_CTA_POLICY_DEFAULT": 0,
    "NCCL_CTA_POLICY_EFFICIENCY": 1,
    "NCCL_CTA_POLICY_ZERO": 2,
    "NCCL_SHRINK_DEFAULT": 0,
    "NCCL_SHRINK_ABORT": 1,
    "NCCL_REVOKE_DEFAULT": 0,
    "NCCL_SUSPEND_MEM": 1,
}
SIMULATION_MAGIC = 0x74685283  # of ncclSimInfo_t

ALL: dict[str, int] = {**RESULTS, **DTYPES, **OPS, **RESIDENCES, **MEMORY, **DEFINED}
