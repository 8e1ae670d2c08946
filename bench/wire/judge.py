# SPDX-License-Identifier: Apache-2.0
"""What a measured exchange says of a link, and when it says nothing."""

from __future__ import annotations

from dataclasses import dataclass

# The payload of a full packet in its bytes on the link: 1500 less the headers of IP and TCP with
# time stamps, to 1500 and the header of Ethernet.
TCP_LIMIT = 1448 / 1514
# A share above can only be what was in the bucket.
MOST = 0.957


@dataclass(frozen=True)
class Way:
    """One direction: payload and bytes counted on the link over all blocks; measured seconds."""

    source: str
    target: str
    payload: int
    counted: int
    block: int
    seconds: float  # of the median block

    @property
    def mbit(self) -> float:
        """Payload in Mbit/s."""
        return self.block * 8 / self.seconds / 1e6

    def void(self, rate: float) -> str | None:
        """Return why this says nothing of a link of ``rate`` Mbit/s, or None."""
        if self.counted < self.payload:
            return f"{self.counted} bytes on the link, and {self.payload} of payload"
        if self.mbit / rate > MOST:
            return f"{self.mbit / rate:.3f} of the link, above {MOST}: what the bucket held"
        return None

    def sentence(self, rate: float) -> str:
        """Return the line that is printed."""
        share = self.mbit / rate
        reason = self.void(rate)
        return (
            f"{self.source} -> {self.target}: {self.mbit:.1f} Mbit/s, {share:.3f} of the link, "
            f"{share / TCP_LIMIT:.3f} of what TCP can carry on it, {self.counted} bytes for "
            f"{self.payload} of payload" + (f"; VOID: {reason}" if reason else "")
        )
