# SPDX-License-Identifier: Apache-2.0
"""Hosts made of namespaces, for tests and benchmarks between machines.

with Hosts(4, mbit=1000) as hosts, hosts[0].counted() as traffic:
    rank = hosts[1].start([sys.executable, "rank.py", hosts[0].address])
    with faults.slow(hosts[1]):
        ...
"""

from tests.hosts.host import Host
from tests.hosts.hosts import Hosts
from tests.hosts.shape import Shape

__all__ = ["Host", "Hosts", "Shape"]
