"""ppo_core beside its peers and beside what the memory allows: `make bench`.

1. `inputs`: the tensors of each operation, the same in every process.
2. `operations`: each operation as ours, as each peer has it, and as the floor, the bytes that must be moved.
3. `goals`: what is asked, and which sizes are measured for it.
4. `check`: a process that compares the answers, value and gradient, before anything is timed.
5. `measure`: a process that times one side of one operation and measures its memory.
6. `verdict`: from the measurements to ratios, and whether each goal is met.
7. `plots` and `page`: docs/library/speed.md. `__main__`: all of it in order.
8. `cuda`: the same operations on a GPU, in one script.
"""
