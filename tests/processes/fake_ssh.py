# SPDX-License-Identifier: Apache-2.0
"""``fake_ssh.py HOST COMMAND``: what ssh does, on this machine.

Like ssh it hands COMMAND to a shell in another folder, with another environment, and a banner; the
command lives in a session of its own, and sees no more of the end of this process than the end of
its standard input. FAKE_HOSTS, ``NAME=PID ...``, are hosts of namespaces; else every HOST but
"nowhere" is this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading


def main(host: str, command: str) -> int:
    """Return the exit code of the command, 255 where there is no such host."""
    hosts = dict(entry.split("=") for entry in os.environ.get("FAKE_HOSTS", "").split())
    if host == "nowhere" or (hosts and host not in hosts):
        sys.stderr.write(f"ssh: Could not resolve hostname {host}: Name or service not known\n")
        return 255
    enter = [f"--target={hosts[host]}", "--net", "--uts", "--mount"] if hosts else []
    words = ["nsenter", *enter, "--"] if enter else []
    remote = subprocess.Popen(
        [*words, "/bin/sh", "-c", f"echo Welcome; cd /; {command}"],
        env={"PATH": os.environ["PATH"], "HOME": "/", "RANK": "9", "COLLECTIVES_RENDEZVOUS": "/x"},
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    threading.Thread(target=pump, args=(remote,), daemon=True).start()
    return remote.wait()


def pump(remote: subprocess.Popen[bytes]) -> None:
    """Hand on standard input, and its end."""
    assert remote.stdin is not None
    try:
        while data := os.read(0, 1 << 16):
            remote.stdin.write(data)
            remote.stdin.flush()
        remote.stdin.close()
    except OSError:
        return


if __name__ == "__main__":
    sys.exit(main(sys.argv[-2], sys.argv[-1]))
