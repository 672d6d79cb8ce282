"""The laboratory: another policy's answers, weighted by ratios."""

from reference.lab_chains import answer_value


def token_ratio_estimate(first_probs, second_probs, old_first_probs, old_second_probs, scores):
    # The ratio of a token replaces its old probability by the new one.
    return [
        answer_value(first_probs, old_second_probs, scores),
        answer_value(old_first_probs, second_probs, scores),
    ]


def sequence_ratio_estimate(first_probs, second_probs, old_first_probs, old_second_probs, scores):
    return answer_value(first_probs, second_probs, scores)
