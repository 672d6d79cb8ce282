"""rlax: one sequence at a time, without masks, in jax."""

from benchmarks.parity.pairs import Pair, Peer

PEER = Peer(
    name="rlax",
    title="rlax",
    distribution="rlax",
    names="`jnp` is `jax.numpy`, `array` makes one of its arrays from a tensor. rlax works on one sequence; "
    "`jax.vmap` makes it a batch. It has no masks.",
    arguments=(
        ("r_t", "rewards", ""),
        ("discount_t", "gamma", "one number in ours"),
        ("lambda_", "lam", ""),
        ("values", "values", "T + 1 of them in theirs; the last is our `bootstrap`"),
        ("prob_ratios_t", "ratio", "`policy_loss` takes log-probabilities"),
        ("adv_t", "advantages", ""),
        ("epsilon", "epsilon", ""),
        ("temperature", "temperature", ""),
    ),
    pairs=(
        Pair(
            "GAE",
            "v = array(torch.cat([values, bootstrap.unsqueeze(1)], 1))\n"
            "one = lambda r, v: rlax.truncated_generalized_advantage_estimation(r, jnp.full(7, 0.9), 0.8, v)\n"
            "jax.vmap(one)(array(rewards), v)",
            "gae(rewards, values, mask, gamma=0.9, lam=0.8, bootstrap=bootstrap)",
            on="full",
        ),
        Pair(
            "Discounted returns",
            "one = lambda r: rlax.discounted_returns(r, jnp.full(7, 0.9), jnp.zeros(7))\n"
            "jax.vmap(one)(array(rewards))",
            "discounted_returns(rewards, mask, gamma=0.9)",
            on="full",
        ),
        Pair(
            "Discounted returns, cut off",
            "one = lambda r, b: rlax.discounted_returns(r, jnp.full(7, 0.9), jnp.full(7, b))\n"
            "jax.vmap(one)(array(rewards), array(bootstrap))",
            "discounted_returns(rewards, mask, gamma=0.9, bootstrap=bootstrap)",
            on="full",
        ),
        Pair(
            "Policy loss",
            "rho = jnp.exp(array(logprobs - old_logprobs)).ravel()\n"
            "rlax.clipped_surrogate_pg_loss(rho, array(advantages).ravel(), 0.2)",
            "policy_loss(logprobs, old_logprobs, advantages, epsilon=0.2).mean()",
            on="full",
        ),
        Pair(
            "Slope of the policy loss",
            "loss = lambda x: rlax.clipped_surrogate_pg_loss(\n"
            "    jnp.exp(x - array(old_logprobs)).ravel(), array(advantages).ravel(), 0.2)\n"
            "jax.grad(loss)(array(logprobs))",
            "x = logprobs.requires_grad_()\n"
            "loss = policy_loss(x, old_logprobs, advantages, epsilon=0.2).mean()\n"
            "torch.autograd.grad(loss, x)[0]",
            on="full",
        ),
        Pair(
            "KL over the vocabulary",
            "rlax.categorical_kl_divergence(array(logits), array(ref_logits))",
            "full_kl(logits, ref_logits)",
            on="full",
        ),
        Pair("Entropy", "rlax.softmax().entropy(array(logits))", "entropy(logits)", on="full"),
        Pair(
            "Log-probabilities",
            "rlax.softmax(temperature=0.7).logprob(array(tokens), array(logits))",
            "token_logprobs(logits, tokens, temperature=0.7)",
            on="full",
        ),
    ),
)
