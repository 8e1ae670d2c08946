# SPDX-License-Identifier: Apache-2.0
"""Groups that end with calls in flight, and tensors that functional collectives still own."""

from __future__ import annotations

import pytest

from tests.backend.teams import Team

pytestmark = pytest.mark.extras


def test_sums_in_flight_are_done_before_a_group_ends(ours: Team) -> None:
    found = ours.run("endings.sums_in_flight")
    sums = [(i + 1.0) * len(found) for i in range(len(found[0]))]
    assert len(sums) > 10
    assert found == [sums] * len(found)


def test_a_receive_that_nobody_serves_does_not_keep_a_group(ours: Team) -> None:
    found = ours.run("endings.receive_in_flight")
    for rank, (took, error, came) in enumerate(found):
        assert took < 30  # of 60
        # Another rank may have closed before.
        assert error.startswith(("ClosedError: recv", "PeerLostError: recv"))
        assert "shut down" in error or "closed its communicator" in error
        assert came == [float((rank - 1) % len(found))] * 3


def test_what_a_functional_collective_returns_can_be_handed_on(ours: Team) -> None:
    found = ours.run("endings.of_functional")
    assert found == [[len(found) ** 2, len(found)]] * len(found)
