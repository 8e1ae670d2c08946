# SPDX-License-Identifier: Apache-2.0
"""Who this process is under whatever launcher, and a channel to exchange values with the others.

:mod:`~collectives.launchers.detect` asks one file per launcher, in the order of its table. What
they find is a :class:`~collectives.launchers.launch.Launch`; the channel that it names is opened
as a :class:`~collectives.launchers.directory.Directory`. ``python -m collectives.launchers`` under
a launcher prints what is found.
"""
