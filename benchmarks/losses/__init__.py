"""ppo_core beside its peers and beside what the memory allows: `make bench`.

1. `inputs`: the tensors of each operation, the same in every process.
2. `sides`: ours, what each peer has, and the floor, the bytes that must be moved; `operations`: who does what.
3. `goals`: what is asked, and which sizes are measured for it.
4. `check`: a process that compares the answers, value and gradient, before anything is timed.
5. `measure`: a process that times one side of one operation and measures its memory.
6. `verdict`: from the measurements to ratios, and whether each goal is met.
7. `plots` and `page`: docs/library/speed.md. `__main__`: all of it in order.
8. `cuda`: the same operations on a GPU, in one script.
"""
