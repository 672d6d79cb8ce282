"""Rewards per token."""

from reference.lists import runs


def shaped_rewards(scores, logprobs, ref_logprobs, mask, *, beta, slot=None, sequence_ids=None):
    if not logprobs or isinstance(logprobs[0], list | tuple):
        nothing = [None] * len(logprobs)
        answers = zip(
            scores, logprobs, ref_logprobs, mask, slot or nothing, sequence_ids or nothing, strict=True
        )
        return [shaped_rewards(*a[:4], beta=beta, slot=a[4], sequence_ids=a[5]) for a in answers]
    rewards = [
        -beta * (new - ref) if m else 0.0 for new, ref, m in zip(logprobs, ref_logprobs, mask, strict=True)
    ]
    if sequence_ids is not None:
        for places in runs(sequence_ids):
            counted = [t for t in places if mask[t]]
            if counted:
                rewards[counted[-1]] += scores[counted[-1]]
        return rewards
    if not any(mask):
        raise ValueError("an answer without a counted token")
    place = max(t for t, counts in enumerate(mask) if counts) if slot is None else slot
    if not mask[place]:
        raise ValueError("the slot is no counted token")
    rewards[place] += scores
    return rewards
