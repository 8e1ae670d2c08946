# SPDX-License-Identifier: Apache-2.0
"""collbench verify: what it says of proofs and of what is wrong, and how it ends."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from click.testing import CliRunner, Result

import collectives as cl
from collectives import stopping
from collectives.catalogue import Proof
from collectives.cli.app import collbench
from collectives.cli.show import proofs_of


def call(*arguments: str) -> Result:
    return CliRunner().invoke(collbench, list(arguments))


def test_verify_proves() -> None:
    done = call("verify", "ring", "--ranks", "1:8", "--kind", "allreduce")
    assert done.exit_code == 0, done.output
    assert re.search(r"allreduce +ring +proved for p = 1:8 +\(16 proofs\)", done.stdout)


def test_verify_names_what_it_leaves_out() -> None:
    done = call("verify", "recursive_doubling", "--ranks", "1:8", "--kind", "allgather", "--plans")
    assert done.exit_code == 0, done.output
    assert re.search(
        r"recursive_doubling +proved for p = 1:2,4,8 +\(32 proofs\), not defined for p = 3,5:7",
        done.stdout,
    )
    assert re.search(r"^proving schedules and plans of 1 algorithm for p = 1:8", done.stdout)


def test_verify_fails_with_the_provers_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str, p: list[int], **options: Any) -> list[Proof]:
        found = real(name, p, **options)
        bad = {"proved": False, "message": "rank 1, round 0: chunk 2 is read before it is written"}
        return [Proof(**vars(proof) | bad) if p == [3] else proof for proof in found]

    real = cl.verify
    monkeypatch.setattr(cl, "verify", failing)
    done = call("verify", "ring", "--ranks", "2:4", "--kind", "allreduce")
    assert done.exit_code == 1
    assert "WRONG" in done.stdout
    assert "allreduce ring, p = 3: rank 1, round 0: chunk 2 is read before" in done.stderr


def test_verify_goes_on_where_an_algorithm_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(name: str, p: list[int], **options: Any) -> list[Proof]:
        if p == [2]:
            raise cl.InternalError("allreduce ring for 2 ranks, rank 0: no such vector")
        return real(name, p, **options)

    real = cl.verify
    monkeypatch.setattr(cl, "verify", failing)
    done = call("verify", "ring", "--ranks", "1:4", "--kind", "allreduce")
    assert done.exit_code == 1
    assert re.search(r"allreduce +ring +not proved for p = 1:4 +\(6 proofs\)", done.stdout)
    assert done.stderr == (
        "collbench: allreduce ring, p = 2: allreduce ring for 2 ranks, rank 0: no such vector\n"
    )


def test_verify_names_what_is_too_large() -> None:
    done = call("verify", "ring", "--ranks", "2,50000", "--kind", "allreduce")
    assert done.exit_code == 1
    assert "allreduce ring, p = 50000: allreduce ring for 50000 ranks has too many" in done.stderr


def test_proofs_that_go_on_end_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    began, over = threading.Event(), threading.Event()

    def verify(name: str, p: list[int], **options: Any) -> list[Proof]:
        if p == [3]:
            assert stopping._raised.wanted is not None
            began.set()
            assert stopping._raised.wanted.wait(60)
            over.set()
        return []

    monkeypatch.setattr(cl, "verify", verify)
    first, second = cl.algorithms("allreduce")[:2]
    proofs = proofs_of({first: [2], second: [3]}, False, lambda: None)
    assert next(proofs)[0] == first
    assert began.wait(60)
    proofs.close()
    assert over.wait(60)
