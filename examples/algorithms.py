# SPDX-License-Identifier: Apache-2.0
"""Algorithms are data: list them, prove them, draw them.

Run: python examples/algorithms.py [FOLDER FOR DRAWINGS]
"""

import sys
from pathlib import Path

import collectives as cl

for algorithm in cl.algorithms("allreduce"):
    proofs = cl.verify(algorithm.name, range(1, 17))
    proved = "proved" if all(proof.proved for proof in proofs) else "NOT PROVED"
    print(f"{algorithm.name:20} {algorithm.formula('rounds', 16):4.0f} rounds at p = 16, {proved}")
    print(f"{'':20} {algorithm.paper}")

print()
print(cl.draw("circulant", p=3, format="text"))

if len(sys.argv) > 1:
    for name in ("ring", "circulant", "recursive_halving"):
        Path(sys.argv[1], f"{name}.svg").write_text(cl.draw(name, p=5))
