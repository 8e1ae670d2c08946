# SPDX-License-Identifier: Apache-2.0
"""The functions of libnccl, as cffi calls them, and which version brought each.

Addresses of memory, communicators, windows, streams and handles are ``uintptr_t`` here, which
travel in the same registers as pointers do: a call takes plain integers, and nothing is cast for
it. Results and enumerations are ``int``. What a function writes through a pointer has its type.
"""

from __future__ import annotations

from typing import Any

from cffi import FFI

from collectives.nccl.config import CDEF
from collectives.nccl.versions import Version

_STRUCTS = """
typedef struct { char internal[128]; } ncclUniqueId;
typedef struct { size_t size; unsigned int magic; unsigned int version; float estimatedTime; }
    ncclSimInfo_t;
typedef struct { int opCnt; int peer; int sigIdx; int ctx; } ncclWaitSignalDesc_t;
typedef struct ncclConfigExt {
  struct ncclConfigExt *next;
  struct { int vendorId; int optionId; } key;
  union { int i; const char *s; void *raw; } val;
} ncclConfigExt_t;
typedef struct {
  size_t size; unsigned int magic; unsigned int version; ncclConfigExt_t *ext;
  int minCTAs; int maxCTAs; int nvlsCTAs; int cgaClusterSize; const char *algSelection;
  int forceAlgSelection; int CTAPolicy; uint64_t userProfilerTag; uintptr_t launchCompletionEvent;
} ncclCollConfig_t;
"""

_ARRAYS = "uintptr_t send, uintptr_t recv, size_t count, int dtype"
_ONE = "uintptr_t array, size_t count, int dtype"
_WHERE = "uintptr_t comm, uintptr_t stream"
_PER_CALL = f"{_WHERE}, const ncclCollConfig_t *config"

# By version; the first are those that 2.18 has.
_BY_VERSION: dict[str, dict[str, str]] = {
    "2.18": {
        "ncclGetVersion": "int *version",
        "ncclGetUniqueId": "ncclUniqueId *id",
        "ncclCommInitRank": "uintptr_t *comm, int ranks, ncclUniqueId id, int rank",
        "ncclCommInitRankConfig": (
            "uintptr_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config"
        ),
        "ncclCommInitAll": "uintptr_t *comms, int devices, const int *list",
        "ncclCommFinalize": "uintptr_t comm",
        "ncclCommDestroy": "uintptr_t comm",
        "ncclCommAbort": "uintptr_t comm",
        "ncclCommSplit": (
            "uintptr_t comm, int color, int key, uintptr_t *made, ncclConfig_t *config"
        ),
        "ncclCommGetAsyncError": "uintptr_t comm, int *error",
        "ncclCommCount": "uintptr_t comm, int *count",
        "ncclCommCuDevice": "uintptr_t comm, int *device",
        "ncclCommUserRank": "uintptr_t comm, int *rank",
        "ncclRedOpCreatePreMulSum": (
            "int *op, uintptr_t scalar, int dtype, int residence, uintptr_t comm"
        ),
        "ncclRedOpDestroy": "int op, uintptr_t comm",
        "ncclReduce": f"{_ARRAYS}, int op, int root, {_WHERE}",
        "ncclBcast": f"{_ONE}, int root, {_WHERE}",
        "ncclBroadcast": f"{_ARRAYS}, int root, {_WHERE}",
        "ncclAllReduce": f"{_ARRAYS}, int op, {_WHERE}",
        "ncclReduceScatter": f"{_ARRAYS}, int op, {_WHERE}",
        "ncclAllGather": f"{_ARRAYS}, {_WHERE}",
        "ncclSend": f"{_ONE}, int peer, {_WHERE}",
        "ncclRecv": f"{_ONE}, int peer, {_WHERE}",
        "ncclGroupStart": "void",
        "ncclGroupEnd": "void",
    },
    "2.19": {
        "ncclMemAlloc": "uintptr_t *memory, size_t size",
        "ncclMemFree": "uintptr_t memory",
        "ncclCommRegister": "uintptr_t comm, uintptr_t memory, size_t size, uintptr_t *handle",
        "ncclCommDeregister": "uintptr_t comm, uintptr_t handle",
    },
    "2.22": {"ncclGroupSimulateEnd": "ncclSimInfo_t *info"},
    "2.23": {
        "ncclCommInitRankScalable": (
            "uintptr_t *comm, int ranks, int rank, int n, ncclUniqueId *ids, ncclConfig_t *config"
        ),
    },
    "2.27": {
        "ncclCommShrink": (
            "uintptr_t comm, int *excluded, int n, uintptr_t *made, ncclConfig_t *config, int flags"
        ),
        "ncclCommWindowRegister": (
            "uintptr_t comm, uintptr_t memory, size_t size, uintptr_t *window, int flags"
        ),
        "ncclCommWindowDeregister": "uintptr_t comm, uintptr_t window",
    },
    "2.28": {
        "ncclAlltoAll": f"{_ARRAYS}, {_WHERE}",
        "ncclGather": f"{_ARRAYS}, int root, {_WHERE}",
        "ncclScatter": f"{_ARRAYS}, int root, {_WHERE}",
    },
    "2.28.7": {"ncclCommRevoke": "uintptr_t comm, int flags"},
    "2.29": {
        "ncclCommGetUniqueId": "uintptr_t comm, ncclUniqueId *id",
        "ncclCommGrow": (
            "uintptr_t comm, int ranks, const ncclUniqueId *id, int rank, uintptr_t *made, "
            "ncclConfig_t *config"
        ),
        "ncclWinGetUserPtr": "uintptr_t comm, uintptr_t window, uintptr_t *memory",
        "ncclPutSignal": (
            f"{_ONE}, int peer, uintptr_t window, size_t offset, int signal, int context, "
            f"unsigned int flags, {_WHERE}"
        ),
        "ncclSignal": f"int peer, int signal, int context, unsigned int flags, {_WHERE}",
        "ncclWaitSignal": f"int n, ncclWaitSignalDesc_t *signals, {_WHERE}",
    },
    "2.29.7": {
        "ncclCommSuspend": "uintptr_t comm, int flags",
        "ncclCommResume": "uintptr_t comm",
        "ncclCommMemStats": "uintptr_t comm, int stat, uint64_t *value",
    },
    "2.30.4": {
        "ncclParamBind": "uintptr_t *handle, const char *key",
        "ncclParamGetI8": "uintptr_t handle, int8_t *value",
        "ncclParamGetI16": "uintptr_t handle, int16_t *value",
        "ncclParamGetI32": "uintptr_t handle, int32_t *value",
        "ncclParamGetI64": "uintptr_t handle, int64_t *value",
        "ncclParamGetU8": "uintptr_t handle, uint8_t *value",
        "ncclParamGetU16": "uintptr_t handle, uint16_t *value",
        "ncclParamGetU32": "uintptr_t handle, uint32_t *value",
        "ncclParamGetU64": "uintptr_t handle, uint64_t *value",
        "ncclParamGetStr": "uintptr_t handle, const char **value",
        "ncclParamGet": "uintptr_t handle, void *value, int most, int *length",
        "ncclParamGetParameter": "const char *key, const char **value, int *length",
        "ncclParamGetAllParameterKeys": "const char ***keys, int *count",
    },
    "2.31": {
        "ncclAllReduceConfig": f"{_ARRAYS}, int op, {_PER_CALL}",
        "ncclBroadcastConfig": f"{_ARRAYS}, int root, {_PER_CALL}",
        "ncclReduceConfig": f"{_ARRAYS}, int op, int root, {_PER_CALL}",
        "ncclAllGatherConfig": f"{_ARRAYS}, {_PER_CALL}",
        "ncclReduceScatterConfig": f"{_ARRAYS}, int op, {_PER_CALL}",
        "ncclAlltoAllConfig": f"{_ARRAYS}, {_PER_CALL}",
        "ncclGatherConfig": f"{_ARRAYS}, int root, {_PER_CALL}",
        "ncclScatterConfig": f"{_ARRAYS}, int root, {_PER_CALL}",
    },
}
# Those that return something else than a result.
_TEXTS = {"ncclGetErrorString": "int result", "ncclGetLastError": "uintptr_t comm"}

# By function: the first version that has it, or 2.18 of an older one.
SINCE: dict[str, Version] = {
    **{name: Version(2, 18) for name in _TEXTS},
    **{
        name: Version.of_text(version)
        for version, functions in _BY_VERSION.items()
        for name in functions
    },
}

# Of libraries that take arrays in memory of the host: they export it, whatever it returns.
HOST_ARRAYS = "coll_nccl_takes_host_arrays"


def _declared() -> Any:
    """Return the FFI that knows all of it."""
    made = FFI()
    made.cdef(_STRUCTS)
    made.cdef(CDEF)
    for functions in _BY_VERSION.values():
        made.cdef("".join(f"int {name}({types});\n" for name, types in functions.items()))
    made.cdef("".join(f"const char *{name}({types});\n" for name, types in _TEXTS.items()))
    made.cdef(f"int {HOST_ARRAYS}(void);")
    return made


ffi: Any = _declared()
