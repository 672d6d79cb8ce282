"""Rewards per token."""


def shaped_rewards(scores, logprobs, ref_logprobs, mask, *, beta):
    if isinstance(scores, list | tuple):
        answers = zip(scores, logprobs, ref_logprobs, mask, strict=True)
        return [shaped_rewards(*answer, beta=beta) for answer in answers]
    counted = [t for t, counts in enumerate(mask) if counts]
    if not counted:
        raise ValueError("an answer without a counted token")
    rewards = [0.0] * len(mask)
    for t in counted:
        rewards[t] = -beta * (logprobs[t] - ref_logprobs[t])
    rewards[counted[-1]] += scores
    return rewards
