# SPDX-License-Identifier: Apache-2.0
"""What runs inside the hosts: rank programs of the commands beside this folder."""
