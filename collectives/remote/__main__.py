# SPDX-License-Identifier: Apache-2.0
"""The agent of ``collrun --hosts`` on one host; nobody starts it by hand."""

import sys

from collectives.remote.agent import main

if __name__ == "__main__":
    sys.exit(main())
