# SPDX-License-Identifier: Apache-2.0
# Every target does its own set-up; a second run does only what changed. See CONTRIBUTING.md.
.PHONY: help setup bench bench-agreement bench-prediction bench-simulated bench-peers bench-torch bench-hosts bench-kernels bench-sparse bench-gpu bench-nccl regret test test-sanitizers test-extras test-torch test-large soak coverage check format wheel clean distclean
MAKEFLAGS += --no-print-directory
in_venv = source scripts/environment.sh &&
SHELL := /bin/bash

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1 \t\2/p' Makefile | expand -t 22

setup: ## .venv with the tools and the package
	@scripts/setup.sh

bench: setup ## the main job: digits trained by 4 ranks, then the table and plot of its gradients
	@$(in_venv) python -m bench.main_job

bench-peers: setup ## beside Gloo, Open MPI, MPICH and Intel MPI; PEERS="--goals" measures all goals
	@mkdir -p build/peers
	@$(in_venv) python -m bench.peers --plot build/peers/peers.png $(PEERS)

bench-torch: ## the torch backend beside gloo: calls, what they cost, what DDP waits for, 10 min
	@scripts/setup.sh extras
	@$(in_venv) python -m bench.torch_call
	@$(in_venv) python -m bench.torch_messages
	@$(in_venv) python -m bench.ddp
	@$(in_venv) python -m bench.peers --ours torch --libraries gloo --goals --budget 420 --output bench/results/torch.json

bench-hosts: setup ## all between hosts with shaped links, 25 min; needs root (BENCH_HOSTS="--help": the first table)
	@$(in_venv) python -m $(if $(BENCH_HOSTS),bench.hosts $(BENCH_HOSTS),bench.hosts.all)

bench-kernels: setup ## kernels of sparse vectors beside memcpy, a read and a scalar merge, one minute
	@$(in_venv) python -m bench.kernels $(BENCH_KERNELS)

bench-sparse: setup ## sparse allreduce beside Gloo and MPICH, 5 min (BENCH_SPARSE="--hosts": between shaped hosts; needs root)
	@$(in_venv) python -m bench.sparse $(BENCH_SPARSE)

bench-gpu: ## checks and measures on a GPU, 8 min; needs no set-up, fetches nothing (BENCH_GPU="--help")
	@scripts/gpu_bench.sh $(BENCH_GPU)

bench-nccl: setup ## libnccl.so.2 beside the C interface, groups beside single calls, one minute
	@$(in_venv) python -m bench.nccl $(BENCH_NCCL)

regret: setup ## how far what a call runs is from the best plan, 2 to 8 ranks, 40 min, and its page (REGRET="--hosts 4")
	@$(in_venv) python -m bench.regret $(REGRET)

bench-agreement: setup ## 10^5 random calls of 2, 3 and 4 ranks: whether all choose alike, some minutes
	@$(in_venv) python -m bench.agreement $(BENCH_AGREEMENT)

bench-prediction: setup ## predictions beside measurements: two ranks here, and four shaped hosts (root), 7 min
	@$(in_venv) python -m bench.prediction $(BENCH_PREDICTION)
	@$(in_venv) python -m bench.prediction_hosts

bench-simulated: setup ## how long simulations take: 65,536 ranks, and every algorithm among 4,096, half an hour
	@$(in_venv) python -m bench.simulated $(BENCH_SIMULATED)

test: setup ## native tests, then pytest
	@scripts/native_tests.sh package
	@$(in_venv) python -m pytest --numprocesses 4 --dist loadfile

test-sanitizers: setup ## native tests under the address, undefined-behaviour and thread sanitizers
	@scripts/native_tests.sh asan tsan

test-extras: ## tests that need torch, NVIDIA's wheel of NCCL, or root for hosts of namespaces, or long; all cases; native ones on emulated Arm
	@scripts/setup.sh extras
	@scripts/nccl_wheels.sh
	@scripts/long_tests.sh
	@scripts/aarch64_tests.sh
	@$(in_venv) python -m pytest --numprocesses 4 -m all_cases
	@$(in_venv) python -m pytest --numprocesses 3 --dist loadfile -m "extras and not hosts and not long"
	@$(in_venv) python -m pytest -m "hosts or long"

test-torch: ## torch's own tests of backends, on ours, 3 to 5 min
	@scripts/setup.sh extras
	@$(in_venv) python -m tests.backend.torchs_own

test-large: setup ## vectors above 2^31 elements: 8 GiB of memory, a minute
	@$(in_venv) python -m pytest -m large

soak: setup ## random collectives against NumPy for SECONDS_OF_SOAK (an hour), until one is wrong
	@$(in_venv) python -m tests.soak --seconds $(or $(SECONDS_OF_SOAK),3600)

coverage: setup ## which lines of native/ and collectives/ the tests run; at least 90 %
	@scripts/setup.sh coverage
	@scripts/coverage.sh

check: ## format, lint, types; clang-tidy on changed files
	@scripts/setup.sh lint
	@scripts/check.sh

format: ## rewrite the files as `make check` wants them
	@scripts/setup.sh lint
	@scripts/check.sh format

wheel: setup ## one abi3 wheel in dist/
	@$(in_venv) pip wheel --quiet --no-build-isolation --no-deps --wheel-dir dist . && ls dist/*.whl

clean: ## what was built
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks

distclean: clean ## that, and .venv
	rm -rf .venv
