# SPDX-License-Identifier: Apache-2.0
"""Types of the compiled module, in the order of native/include/collectives.h."""

from collections.abc import Callable, Sequence
from typing import Any

CData = Any  # a cffi pointer, array or struct

class _FFI:
    NULL: CData
    def new(self, cdecl: object, init: object = ..., /) -> CData: ...
    def callback(
        self, cdecl: object, function: Callable[..., Any], /, *, error: object, onerror: object
    ) -> CData: ...
    def def_extern(
        self, *, error: object, onerror: Callable[..., None]
    ) -> Callable[[Callable[[CData], int]], Callable[[CData], int]]: ...
    def gc(self, pointer: CData, destructor: object, /) -> CData: ...
    def cast(self, cdecl: object, value: object, /) -> CData: ...
    def typeof(self, cdecl: object, /) -> object: ...
    def sizeof(self, cdecl: object, /) -> int: ...
    def addressof(self, cdata: CData, field: object = ..., /) -> CData: ...
    def from_buffer(
        self, cdecl: object, buffer: object, require_writable: bool = ..., /
    ) -> CData: ...
    def buffer(self, cdata: CData, size: int = ..., /) -> memoryview: ...
    def string(self, cdata: object, maxlen: int = ..., /) -> bytes: ...
    def unpack(self, cdata: CData, length: int, /) -> list[int]: ...

class _Lib:
    asked_to_stop: CData  # calls what def_extern() decorates
    install_plain_calls: Callable[[], int]  # of plain.c
    main_asked_to_stop: CData
    COLL_OK: int
    COLL_INVALID_ARGUMENT: int
    COLL_UNSUPPORTED: int
    COLL_MISMATCH: int
    COLL_TIMEOUT: int
    COLL_PEER_LOST: int
    COLL_ABORTED: int
    COLL_CLOSED: int
    COLL_OUT_OF_MEMORY: int
    COLL_SYSTEM: int
    COLL_BOOTSTRAP: int
    COLL_INTERNAL: int
    COLL_IN_PROGRESS: int
    COLL_ALLREDUCE: int
    COLL_REDUCE_SCATTER: int
    COLL_ALLGATHER: int
    COLL_BROADCAST: int
    COLL_REDUCE: int
    COLL_BARRIER: int
    COLL_GATHER: int
    COLL_SCATTER: int
    COLL_ALLTOALL: int
    COLL_SCAN: int
    COLL_EXSCAN: int
    COLL_FLOAT32: int
    COLL_FLOAT64: int
    COLL_INT32: int
    COLL_INT64: int
    COLL_UINT8: int
    COLL_BFLOAT16: int
    COLL_INT8: int
    COLL_INT16: int
    COLL_UINT16: int
    COLL_UINT32: int
    COLL_UINT64: int
    COLL_BOOL: int
    COLL_FLOAT16: int
    COLL_COMPLEX64: int
    COLL_COMPLEX128: int
    COLL_FLOAT8_E4M3FN: int
    COLL_FLOAT8_E5M2: int
    COLL_FLOAT32_INT32: int
    COLL_FLOAT64_INT64: int
    COLL_INT32_INT32: int
    COLL_INT64_INT64: int
    COLL_SUM: int
    COLL_PROD: int
    COLL_MIN: int
    COLL_MAX: int
    COLL_AVG: int
    COLL_LAND: int
    COLL_LOR: int
    COLL_LXOR: int
    COLL_BAND: int
    COLL_BOR: int
    COLL_BXOR: int
    COLL_MINLOC: int
    COLL_MAXLOC: int
    COLL_MODE_AUTO: int
    COLL_MODE_STAGED: int
    COLL_MODE_INLINE: int
    COLL_MODE_PULL: int
    COLL_MODE_PUSH: int
    COLL_ACCUMULATE_AS_STORED: int
    COLL_ACCUMULATE_FLOAT32: int
    COLL_ACCUMULATE_FLOAT64: int
    COLL_ACCUMULATE_COMPLEX64: int
    COLL_ACCUMULATE_COMPLEX128: int
    COLL_NOT_REPRODUCIBLE: int
    COLL_REPRODUCIBLE: int
    COLL_REPRODUCIBLE_ANY_P: int
    COLL_NO_COLOR: int
    COLL_SECRET_BYTES: int
    COLL_ANY_SOURCE: int
    COLL_ANY_TAG: int
    COLL_CHECK_STRUCTURE: int
    COLL_CHECK_MATCHING: int
    COLL_CHECK_DEFINED: int
    COLL_CHECK_RESULT: int
    COLL_CHECK_INPUT: int
    COLL_CHECK_COST: int
    COLL_CHECK_TREE: int
    COLL_CHECK_ALL: int
    COLL_STORES_ORDINARY: int
    COLL_STORES_NON_TEMPORAL: int
    COLL_PHASE_RING: int
    COLL_ACT_SEND: int
    COLL_ACT_RECEIVE: int
    COLL_ACT_FOLD: int
    COLL_ACT_COPY: int
    COLL_ACT_ENTER: int
    COLL_ACT_LEAVE: int
    COLL_SPARSE_AUTO: int
    COLL_SPARSE_PAIRS: int
    COLL_SPARSE_DENSE: int
    COLL_SPARSE_CODING_AUTO: int
    COLL_SPARSE_CODING_RAW: int
    COLL_SPARSE_CODING_CODED: int
    COLL_SPARSE_CODING_QUICK: int
    COLL_SPARSE_CHOOSE: int
    COLL_SPARSE_AS_DENSE: int
    COLL_SPARSE_AT_ONCE: int
    COLL_PLAN_BUTTERFLY: int
    COLL_PLAN_OWNERS: int
    COLL_PLAN_DIRECT: int
    COLL_TIMES_OF_NONE: int
    COLL_TIMES_OF_LARGE: int
    COLL_TIMES_OF_ALL: int
    COLL_GPU_LAUNCH: int
    COLL_GPU_HOST: int
    COLL_TRACE_OPERATION: int
    COLL_TRACE_MESSAGE: int
    COLL_TRACE_STEP: int
    COLL_TRACE_WAIT: int
    COLL_TRACE_SEND: int
    COLL_TRACE_RECV: int
    COLL_TRACE_SENDRECV: int
    COLL_TRACE_PROBE: int
    COLL_TRACE_WAITED: int
    COLL_TRACE_ISEND: int
    COLL_TRACE_IRECV: int
    COLL_TRACE_SPARSE_ALLREDUCE: int
    COLL_TRACE_SPARSE_REDUCE_SCATTER: int
    COLL_TRACE_SPARSE_ALLGATHER: int
    COLL_TRACE_SPARSE_BROADCAST: int
    COLL_TRACE_SPARSE_PLAN: int
    COLL_TRACE_SPARSE_PLAN_REDUCE: int
    COLL_TRACE_ADASUM: int
    COLL_PHASE_CIRCULANT: int
    COLL_PHASE_DIRECT: int
    COLL_PHASE_HALVING: int
    COLL_PHASE_BINOMIAL: int

    def coll_init(self, options: CData, comm: CData, /) -> int: ...
    def coll_init_from_environment(self, interruptible: int, comm: CData, /) -> int: ...
    def coll_local(self, options: CData, comms: CData, /) -> int: ...
    def coll_close(self, comm: CData, /) -> int: ...
    def coll_abort(self, comm: CData, reason: bytes, /) -> int: ...
    def coll_stop_by(self, comm: CData, stop: CData, context: CData, /) -> int: ...
    def coll_rank(self, comm: CData, /) -> int: ...
    def coll_ranks(self, comm: CData, /) -> int: ...
    def coll_look(self, comm: CData, rank: int, /) -> int: ...
    def coll_sequence(self, comm: CData, /) -> int: ...
    def coll_timeout(self, comm: CData, /) -> float: ...
    def coll_run(self, comm: CData, call: CData, /) -> int: ...
    def coll_validate(self, comm: CData, call: CData, /) -> int: ...
    def coll_persistent_new(self, comm: CData, call: CData, persistent: CData, /) -> int: ...
    def coll_start(self, persistent: CData, /) -> int: ...
    def coll_finish(self, persistent: CData, /) -> int: ...
    def coll_run_persistent(self, persistent: CData, /) -> int: ...
    def coll_persistent_free(self, persistent: CData, /) -> int: ...
    def coll_directory_open(self, options: CData, directory: CData, /) -> int: ...
    def coll_directory_rank(self, directory: CData, /) -> int: ...
    def coll_directory_ranks(self, directory: CData, /) -> int: ...
    def coll_directory_put(
        self, directory: CData, key: bytes, value: bytes, bytes: int, timeout: float, /
    ) -> int: ...
    def coll_directory_get(
        self, directory: CData, key: bytes, value: CData, room: int, bytes: CData, timeout: float, /
    ) -> int: ...
    def coll_directory_fence(self, directory: CData, timeout: float, /) -> int: ...
    def coll_directory_close(self, directory: CData, /) -> None: ...
    def coll_listener_open(self, address: bytes, listener: CData, /) -> int: ...
    def coll_listener_text(self, listener: CData, text: CData, room: int, /) -> int: ...
    def coll_listener_close(self, listener: CData, /) -> None: ...
    def coll_own_address(
        self, interfaces: bytes, peer: CData, text: CData, room: int, /
    ) -> int: ...
    def coll_init_wire(self, options: CData, listener: CData, comm: CData, /) -> int: ...
    def coll_transport(self, comm: CData, /) -> CData: ...
    def coll_ucx_version(
        self, library: bytes, devices: bytes, text: CData, room: int, /
    ) -> int: ...
    def coll_make_secret(self, secret: CData, /) -> int: ...
    def coll_read_secret(self, path: bytes, secret: CData, /) -> int: ...
    def coll_gpu_count(self, why: CData, room: int, /) -> int: ...
    def coll_gpu_get(self, device: int, gpu: CData, /) -> int: ...
    def coll_gpu_owner(self, memory: CData, /) -> int: ...
    def coll_gpu_allocate(self, device: int, bytes_: int, memory: CData, /) -> int: ...
    def coll_gpu_free(self, device: int, memory: CData, /) -> int: ...
    def coll_gpu_copy(
        self, device: int, to: CData, source: CData, bytes_: int, stream: CData, /
    ) -> int: ...
    def coll_gpu_run(self, comm: CData, call: CData, device: int, stream: CData, /) -> int: ...
    def coll_gpu_persistent_new(
        self, comm: CData, call: CData, device: int, persistent: CData, /
    ) -> int: ...
    def coll_gpu_persistent_run(self, persistent: CData, stream: CData, /) -> int: ...
    def coll_gpu_persistent_free(self, persistent: CData, /) -> int: ...
    def coll_gpu_captured(self, device: int, stream: CData, captured: CData, /) -> int: ...
    def coll_gpu_follow(self, device: int, stream: CData, other: CData, /) -> int: ...
    def coll_gpu_wait(self, comm: CData, device: int, stream: CData, /) -> int: ...
    def coll_gpu_top_k_room(self, device: int, selection: CData, bytes_: CData, /) -> int: ...
    def coll_gpu_top_k(self, device: int, selection: CData, stream: CData, /) -> int: ...
    def coll_gpu_sparse_run(
        self, comm: CData, call: CData, device: int, stream: CData, /
    ) -> int: ...
    def coll_gpu_sparse_entries(
        self, comm: CData, device: int, stream: CData, entries: CData, /
    ) -> int: ...
    def coll_gpu_sparse_take(
        self,
        comm: CData,
        device: int,
        stream: CData,
        index_bytes: int,
        indices: CData,
        values: CData,
        /,
    ) -> int: ...
    def coll_exact_limbs(self, dtype: int, ranks: int, limbs: CData, /) -> int: ...
    def coll_exact_add(
        self, dtype: int, ranks: int, limbs: CData, array: CData, count: int, /
    ) -> int: ...
    def coll_exact_round(
        self, dtype: int, ranks: int, array: CData, limbs: CData, divisor: int, count: int, /
    ) -> int: ...
    def coll_memory_new(self, comm: CData, bytes: int, memory: CData, data: CData, /) -> int: ...
    def coll_memory_free(self, memory: CData, /) -> None: ...
    def coll_tell_times(self, comm: CData, which: int, /) -> int: ...
    def coll_last(self, comm: CData, out: CData, /) -> int: ...
    def coll_trace_begin(self, comm: CData, most: int, /) -> int: ...
    def coll_trace_end(self, comm: CData, /) -> int: ...
    def coll_trace_read(
        self, comm: CData, events: CData, room: int, count: CData, dropped: CData, /
    ) -> int: ...
    def coll_is_symmetric(self, comm: CData, data: CData, bytes: int, /) -> int: ...
    def coll_resume(self, comm: CData, /) -> int: ...
    def coll_collective(
        self,
        comm: CData,
        kind: int,
        input: CData,
        output: CData,
        count: int,
        dtype: int,
        op: int,
        root: int,
        algorithm: int,
        mode: int,
        timeout: float,
        /,
    ) -> int: ...
    def coll_allreduce(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, op: int, /
    ) -> int: ...
    def coll_reduce_scatter(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, op: int, /
    ) -> int: ...
    def coll_reduce_scatterv(
        self, comm: CData, input: CData, output: CData, counts: CData, dtype: int, op: int, /
    ) -> int: ...
    def coll_allgather(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, /
    ) -> int: ...
    def coll_allgatherv(
        self, comm: CData, input: CData, output: CData, counts: CData, dtype: int, /
    ) -> int: ...
    def coll_broadcast(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, root: int, /
    ) -> int: ...
    def coll_reduce(
        self,
        comm: CData,
        input: CData,
        output: CData,
        count: int,
        dtype: int,
        op: int,
        root: int,
        /,
    ) -> int: ...
    def coll_gather(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, root: int, /
    ) -> int: ...
    def coll_gatherv(
        self, comm: CData, input: CData, output: CData, counts: CData, dtype: int, root: int, /
    ) -> int: ...
    def coll_scatter(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, root: int, /
    ) -> int: ...
    def coll_scatterv(
        self, comm: CData, input: CData, output: CData, counts: CData, dtype: int, root: int, /
    ) -> int: ...
    def coll_alltoall(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, /
    ) -> int: ...
    def coll_alltoallv(
        self, comm: CData, input: CData, output: CData, counts: CData, dtype: int, /
    ) -> int: ...
    def coll_scan(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, op: int, /
    ) -> int: ...
    def coll_exscan(
        self, comm: CData, input: CData, output: CData, count: int, dtype: int, op: int, /
    ) -> int: ...
    def coll_barrier(self, comm: CData, /) -> int: ...
    def coll_split(self, comm: CData, color: int, key: int, made: CData, /) -> int: ...
    def coll_subgroup(self, comm: CData, ranks: CData, n: int, made: CData, /) -> int: ...
    def coll_dup(self, comm: CData, made: CData, /) -> int: ...
    def coll_revoke(self, comm: CData, /) -> int: ...
    def coll_shrink(self, comm: CData, timeout: float, made: CData, /) -> int: ...
    def coll_axis(
        self, comm: CData, shape: CData, axes: int, axis: int, name: bytes, made: CData, /
    ) -> int: ...
    def coll_send(
        self,
        comm: CData,
        data: CData,
        count: int,
        dtype: int,
        to: int,
        tag: int,
        timeout: float,
        /,
    ) -> int: ...
    def coll_recv(
        self,
        comm: CData,
        data: CData,
        count: int,
        dtype: int,
        source: int,
        tag: int,
        received: CData,
        timeout: float,
        /,
    ) -> int: ...
    def coll_sendrecv(
        self,
        comm: CData,
        data: CData,
        count: int,
        dtype: int,
        to: int,
        send_tag: int,
        into: CData,
        into_count: int,
        into_dtype: int,
        source: int,
        recv_tag: int,
        received: CData,
        timeout: float,
        /,
    ) -> int: ...
    def coll_probe(
        self, comm: CData, source: int, tag: int, found: CData, timeout: float, /
    ) -> int: ...
    def coll_iprobe(
        self, comm: CData, source: int, tag: int, there: CData, found: CData, /
    ) -> int: ...
    def coll_isend(
        self,
        comm: CData,
        data: CData,
        count: int,
        dtype: int,
        to: int,
        tag: int,
        request: CData,
        /,
    ) -> int: ...
    def coll_irecv(
        self,
        comm: CData,
        data: CData,
        count: int,
        dtype: int,
        source: int,
        tag: int,
        request: CData,
        /,
    ) -> int: ...
    def coll_test(self, comm: CData, request: int, done: CData, received: CData, /) -> int: ...
    def coll_wait(self, comm: CData, request: int, received: CData, timeout: float, /) -> int: ...
    def coll_last_error(self) -> CData: ...
    def coll_last_error_rank(self) -> int: ...
    def coll_status_name(self, status: int, /) -> CData: ...
    def coll_kind_name(self, kind: int, /) -> CData: ...
    def coll_version(self) -> CData: ...
    def coll_variable_count(self) -> int: ...
    def coll_variable_get(self, index: int, out: CData, /) -> int: ...
    def coll_algorithm_count(self) -> int: ...
    def coll_algorithm_get(self, index: int, out: CData, /) -> int: ...
    def coll_algorithm_find(self, kind: int, name: bytes, /) -> int: ...
    def coll_algorithm_fits(self, index: int, p: int, /) -> int: ...
    def coll_formula(self, formula: bytes, p: int, value: CData, /) -> int: ...
    def coll_choose(
        self, kind: int, ranks: int, bytes: int, algorithm: CData, mode: CData, /
    ) -> int: ...
    def coll_work_stop_by(self, stop: CData, context: CData, /) -> None: ...
    def coll_prove(
        self, algorithm: int, p: int, root: int, in_place: int, out: CData, /
    ) -> int: ...
    def coll_prove_plan(
        self,
        algorithm: int,
        p: int,
        root: int,
        in_place: int,
        how: CData,
        out: CData,
        /,
    ) -> int: ...
    def coll_schedule(
        self, algorithm: int, p: int, root: int, data: CData, length: CData, /
    ) -> int: ...
    def coll_plan(
        self,
        algorithm: int,
        p: int,
        root: int,
        how: CData,
        data: CData,
        length: CData,
        /,
    ) -> int: ...
    def coll_prove_encoded(
        self, data: CData, length: int, in_place: int, algorithm: int, checks: int, out: CData, /
    ) -> int: ...
    def coll_op_create(
        self, function: CData, context: CData, commutative: int, name: bytes, op: CData, /
    ) -> int: ...
    def coll_op_free(self, op: int, /) -> int: ...
    def coll_builder_new(
        self, kind: int, p: int, root: int, chunks: int, builder: CData, /
    ) -> int: ...
    def coll_builder_rank(self, builder: CData, rank: int, /) -> int: ...
    def coll_builder_send(
        self,
        builder: CData,
        round: int,
        peers: Sequence[int],
        n_peers: int,
        chunks: Sequence[int],
        n_pairs: int,
        /,
    ) -> int: ...
    def coll_builder_recv(
        self, builder: CData, round: int, peer: int, chunks: Sequence[int], n_pairs: int, /
    ) -> int: ...
    def coll_builder_recv_reduce(
        self,
        builder: CData,
        round: int,
        order: Sequence[int],
        n_order: int,
        balanced: int,
        chunks: Sequence[int],
        n_pairs: int,
        /,
    ) -> int: ...
    def coll_builder_copy(
        self,
        builder: CData,
        round: int,
        source: int,
        target: int,
        chunks: Sequence[int],
        n_pairs: int,
        /,
    ) -> int: ...
    def coll_builder_finish(self, builder: CData, data: CData, length: CData, /) -> int: ...
    def coll_builder_free(self, builder: CData, /) -> None: ...
    def coll_add_schedule(
        self, comm: CData, data: Sequence[int], length: int, name: bytes, algorithm: CData, /
    ) -> int: ...
    def coll_product_schedule(self, product: CData, data: CData, length: CData, /) -> int: ...
    def coll_product_prove(self, product: CData, in_place: bool, out: CData, /) -> int: ...
    def coll_product_between(
        self, product: CData, level: int, sent: CData, received: CData, /
    ) -> int: ...
    def coll_sparse_algorithm_count(self) -> int: ...
    def coll_sparse_algorithm_get(self, index: int, out: CData, /) -> int: ...
    def coll_sparse_run(self, comm: CData, call: CData, result: CData, /) -> int: ...
    def coll_sparse_free(self, result: CData, /) -> None: ...
    def coll_sparse_look(self, result: CData, out: CData, /) -> int: ...
    def coll_top_k(
        self,
        x: CData,
        dtype: int,
        n: int,
        k: int,
        index_bytes: int,
        indices: CData,
        values: CData,
        /,
    ) -> int: ...
    def coll_select_above(
        self,
        x: CData,
        dtype: int,
        n: int,
        threshold: float,
        index_bytes: int,
        room: int,
        indices: CData,
        values: CData,
        found: CData,
        /,
    ) -> int: ...
    def coll_adasum(
        self,
        comm: CData,
        input: CData,
        output: CData,
        count: int,
        dtype: int,
        timeout: float,
        /,
    ) -> int: ...
    def coll_sparse_plan_make(self, comm: CData, indices: CData, plan: CData, /) -> int: ...
    def coll_sparse_plan_reduce(
        self,
        comm: CData,
        plan: CData,
        values: CData,
        sums: CData,
        dtype: int,
        op: int,
        timeout: float,
        /,
    ) -> int: ...
    def coll_sparse_plan_sent(
        self, plan: CData, bytes: CData, messages: CData, rounds: CData, /
    ) -> int: ...
    def coll_sparse_plan_how(self, plan: CData, way: CData, /) -> int: ...
    def coll_sparse_plan_free(self, plan: CData, /) -> None: ...
    def coll_tune(self, comm: CData, lines: CData, count: int, /) -> int: ...
    def coll_announce(self, comm: CData, lines: CData, count: int, cores: int, /) -> int: ...
    def coll_shared_cores(self, comm: CData, cores: CData, /) -> int: ...
    def coll_refine(self, comm: CData, budget: float, machine: CData, /) -> int: ...
    def coll_check_wishes(self, words: bytes, ranks: int, /) -> int: ...
    def coll_chosen(
        self, comm: CData, kind: int, bytes: int, far: int, out: CData, tuned: CData, /
    ) -> int: ...
    def coll_usual_machine(self, out: CData, /) -> int: ...
    def coll_measure_machine(
        self, comm: CData, seconds: float, out: CData, flags: CData, /
    ) -> int: ...
    def coll_predict(self, machine: CData, task: CData, seconds: CData, /) -> int: ...
    def coll_predict_wire(self, network: CData, task: CData, seconds: CData, /) -> int: ...
    def coll_network_of_words(self, words: bytes, made: CData, /) -> int: ...
    def coll_network_of_rooms(self, rooms: CData, made: CData, /) -> int: ...
    def coll_network_free(self, network: CData, /) -> None: ...
    def coll_network_ranks(self, network: CData, /) -> int: ...
    def coll_network_classes(self, network: CData, /) -> int: ...
    def coll_network_class(self, network: CData, index: int, /) -> CData: ...
    def coll_simulate(
        self,
        network: CData,
        task: CData,
        out: CData,
        class_bytes: CData,
        moments: CData,
        capacity: int,
        count: CData,
        /,
    ) -> int: ...
    def coll_free(self, data: CData, /) -> None: ...

# Of plain.c: the addresses of a coll_door and a coll_call, x, out, and the root; of unequal parts
# their lengths, too. All return a status, or -1 where they have done nothing. rows_of_parts()
# returns how long the result of this rank is along its first axis, or -1.
def run_plain(door: int, call: int, x: object, out: object, root: int, /) -> int: ...
def run_plain_parts(
    door: int, call: int, x: object, out: object, root: int, counts: object, /
) -> int: ...

# Of plain_sparse.c: as run_plain(), with a coll_sparse_call; but what is made are new
# indices and values, or all values. dtype: of integers in the place of values; -1: the array says.
def run_plain_sparse(
    door: int, call: int, indices: object, values: object, length: object, dtype: int, /
) -> Any: ...

# Of plain_plan.c: as run_plain(), with a coll_sparse_plan, and how long the arrays must be.
def run_plain_plan(
    door: int, plan: int, values: object, out: object, given: int, asked: int, /
) -> int: ...

# So that these know arrays of dtypes that another package has: NumPy's number of it, and ours.
def meet_dtype(number: int, dtype: int, /) -> None: ...
def rows_of_parts(door: int, call: int, counts: object, /) -> int: ...

# Of plain_persistent.c: what the call works on; _door and _address are addresses.
class PlainPersistent:
    _comm: Any
    _result: Any
    _target: Any
    _door: int
    _address: int
    _kind: int
    def __call__(self) -> Any: ...

# Of plain_nccl.c: the addresses of ncclAllReduce and of a communicator, x, out, and the number of
# the operation by NCCL. Returns what NCCL does, or -1 where it has done nothing.
def run_nccl_allreduce(function: int, comm: int, x: object, out: object, op: int, /) -> int: ...

# Of dlpack.c: who owns the memory, its address, the GPU, kind and bits of the elements by DLPack,
# the shape, and whether the capsule is of version 1.
def dlpack_capsule(
    owner: object,
    address: int,
    device: int,
    kind: int,
    bits: int,
    shape: tuple[int, ...],
    versioned: bool,
    /,
) -> object: ...

ffi: _FFI
lib: _Lib
