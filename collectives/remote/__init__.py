# SPDX-License-Identifier: Apache-2.0
"""``collrun --hosts``: ranks on several hosts, each host reached by ssh or a command like it.

:mod:`~collectives.remote.team` starts ``python -m collectives.remote`` on each host, the agent
(:mod:`~collectives.remote.agent`), which runs the ranks of that host as collrun runs those of one
machine. What they say to each other, over the standard streams of ssh, is in
:mod:`~collectives.remote.messages`.
"""
