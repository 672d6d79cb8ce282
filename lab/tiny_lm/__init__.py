"""PPO on a small causal language model, made and trained here, in files that can be read in one sitting.

Read them in this order: `task` (the words, the sentences, the reward), `model` (policy and critic on one
trunk), `pretrain` (where the policy and its reference come from), `rollout` (answers and what is known of
them), `train` (the loop), `experiment` (what is asked of the run, and the answer), `plot`. Every loss term is
one of `ppo_core`. `python -m lab.tiny_lm --seeds 0 1 2` runs it.
"""
