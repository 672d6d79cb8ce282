"""ppo_core beside the libraries that do the same: `make parity`.

1. `peers.txt` and `environment`: the peers, each of a named release, in an environment of their own.
2. `samples`: the random inputs, the same in every process.
3. `pairs` and `rows/`: one call of theirs and one of ours that must agree, written as the code that runs.
4. `differences` and `cases/`: small inputs on which we do not agree, with the right answer worked out by hand.
5. `run`: evaluates the code of one side. `peers`: how each peer is imported.
6. `record`: what a process of the peers' environment does, one process for each peer.
7. `compare`: equal or not. `pages`: the two pages of the documentation. `__main__`: all of it in order.
"""
